"""What can go wrong with Letta, as types a program can act on.

    BackendError
    ├── LettaAuthError        401, 403: the key is missing, wrong, or may not do that
    ├── LettaGoneError        404: the agent, block or tool was deleted
    ├── LettaRejectedError    400, 422: the server takes the request for wrong
    ├── LettaConflictError    (retryable) 409, or somebody else keeps writing the same block
    ├── LettaBusyError        (retryable) 429: asks to wait
    ├── SharedAgentError      the agent is to stand for one person, and others use it too
    ├── LabelTakenError       the agent has a block of its own under our label
    ├── ToolTakenError        a tool with our name exists and is not ours
    ├── McpTakenError         an MCP server with our name exists and is not ours
    ├── McpRefusedError       Letta does not take the MCP server, or gets no tools from it
    └── MemFsError            a memory folder of Letta Code cannot be written now
        ├── MemFsDirtyError   something is staged, or the signal file was edited by hand
        ├── MemFsBusyError    (retryable) a merge, rebase or another git process is under way
        └── MemFsRefusedError a hook or the remote refused the commit

A server that fails (5xx), cannot be reached or is too slow is `BackendDownError` or
`BackendTimeoutError` of the core. No error carries any text of a memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from collab_layer.errors import BackendError


class LettaAuthError(BackendError):
    """The key is missing, wrong, or does not allow the request."""

    code = "letta_auth"


class LettaGoneError(BackendError):
    """What the request was about does not exist any more."""

    code = "letta_gone"


class LettaRejectedError(BackendError):
    """The server takes the request for wrong; sending it again will not help."""

    code = "letta_rejected"


class SharedAgentError(BackendError):
    """An agent that several people use stands for none of them: Letta does not say whose words it noted.

    Attributes:
        agent: Its id.
        entity: Whom it was to stand for.
        others: Who uses it too, by entity, or by the id of an identity whose key is no name.
    """

    code = "letta_shared_agent"

    def __init__(self, store: str, agent: str, entity: str, others: Sequence[str]) -> None:
        self.agent, self.entity, self.others = agent, entity, tuple(others)
        named = ", ".join(f"`{one}`" for one in self.others)
        why = f"agent `{agent}` cannot stand for `{entity}`: {named} use it too, and Letta does not tell whose words "
        super().__init__(store, f"{why}it noted; attach it for itself, an `agent:` or a `team:`")


class LettaConflictError(BackendError):
    """The block was changed at the same time, or is changed again and again; try again later."""

    code = "letta_conflict"
    retryable = True


class LettaBusyError(BackendError):
    """The server asks to wait; `after_s` says how long, where it said so."""

    code = "letta_busy"
    retryable = True

    def __init__(self, store: str, why: str, *, after_s: float | None = None) -> None:
        self.after_s = after_s
        super().__init__(store, why)


class LabelTakenError(BackendError):
    """An agent has a block of its own under the label of the signal block; it was left as it is."""

    code = "letta_label_taken"

    def __init__(self, store: str, agent: str, label: str) -> None:
        self.agent, self.label = agent, label
        super().__init__(store, f"agent `{agent}` has a block `{label}` that is not ours; rename or detach it first")


class ToolTakenError(BackendError):
    """A tool with the name of the pull tool exists and is not ours; it was left as it is."""

    code = "letta_tool_taken"

    def __init__(self, store: str, tool: str, name: str) -> None:
        self.tool, self.name = tool, name
        super().__init__(
            store, f"a tool `{name}` ({tool}) exists that is not ours; rename it, or attach without a tool"
        )


class McpTakenError(BackendError):
    """An MCP server with the name of ours exists and is not ours; it was left as it is."""

    code = "letta_mcp_taken"

    def __init__(self, store: str, server: str, name: str) -> None:
        self.server, self.name = server, name
        super().__init__(
            store, f"an MCP server `{name}` ({server}) exists that is not ours; rename it, or attach without MCP"
        )


class McpRefusedError(BackendError):
    """Letta does not take the MCP server, or gets no tools from it; nothing of it is left.

    Attributes:
        reason: `stdio`: Letta starts none itself, its default; `address`: it calls no private address;
            `silent`: it got no tools from there; `settings`: anything else it takes for wrong.
    """

    code = "letta_mcp_refused"

    def __init__(self, store: str, why: str, *, reason: Literal["stdio", "address", "silent", "settings"]) -> None:
        self.reason = reason
        super().__init__(store, why)


class MemFsError(BackendError):
    """A memory folder of Letta Code cannot be read or written as it is."""

    code = "memfs"


class MemFsDirtyError(MemFsError):
    """Something is staged, or the signal file was edited by hand; commit or undo that first."""

    code = "memfs_dirty"


class MemFsBusyError(MemFsError):
    """A merge, a rebase or another git process is under way; try again when it is over."""

    code = "memfs_busy"
    retryable = True


class MemFsRefusedError(MemFsError):
    """A hook or the remote refused the commit; nothing was changed."""

    code = "memfs_refused"


__all__ = [
    "LabelTakenError",
    "LettaAuthError",
    "LettaBusyError",
    "LettaConflictError",
    "LettaGoneError",
    "LettaRejectedError",
    "McpRefusedError",
    "McpTakenError",
    "MemFsBusyError",
    "MemFsDirtyError",
    "MemFsError",
    "MemFsRefusedError",
    "SharedAgentError",
    "ToolTakenError",
]
