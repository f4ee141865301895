"""Attach an agent to the layer, and detach it again without a trace.

In:   an agent, the entity it stands for, and where the service is, if it is to ask it.
Out:  tags on the agent, a signal block; with an address the pull tool.

Whatever could not be done is checked before anything is changed. What was done when a call
fails in between is completed by calling again, or undone by detaching.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity
from collab_layer_letta import mapping
from collab_layer_letta.backend import LettaBackend
from collab_layer_letta.client import Json
from collab_layer_letta.mcp import Mcp
from collab_layer_letta.plan import LABEL
from collab_layer_letta.refusals import LabelTakenError, LettaGoneError, SharedAgentError
from collab_layer_letta.signal import Settled
from collab_layer_letta.tool import Tool, checked_url, token_of

OURS = "collab-entity"
"""Tag of an agent whose `entity:` tag was put there by attaching, and is to go with it."""
WHOLE = ["agent.blocks", "agent.identities", "agent.tags", "agent.secrets", "agent.tools"]


class Attached(NamedTuple):
    """An attached agent: its id, whom it stands for, how its signal block looks."""

    agent: str
    entity: Entity
    signal: Settled


class Detached(NamedTuple):
    """What was taken from an agent.

    Attributes:
        agent: Its id.
        entity: Whom it stood for; None if it was not attached.
        tool: Whether it had the pull tool.
        token: The token it had, so that it can be revoked.
        mcp: Tokens of MCP servers that no agent used any more, which were removed.
    """

    agent: str
    entity: Entity | None
    tool: bool = False
    token: str | None = None
    mcp: tuple[str, ...] = ()


async def whose(backend: LettaBackend, agent_id: str, entity: Entity | None = None) -> Entity:
    """Whom an agent would be attached for, before anything is changed.

    Raises:
        InputError: No such kind of id, or the agent stands for another entity.
        LettaGoneError: There is no such agent.
        LabelTakenError: A block of its own has our label.
    """
    row = await _agent(backend, agent_id)
    found = _stands_for(backend, mapping.agent(row), entity)
    await _check_label(backend, row)
    return found


async def attach(
    backend: LettaBackend, agent_id: str, entity: Entity | None = None, *, limit: int | None = None
) -> Attached:
    """Tag an agent and give it its signal block.

    Raises:
        InputError: No such kind of id, or the agent stands for another entity.
        LettaGoneError: There is no such agent.
        LabelTakenError: A block of its own has our label; nothing was changed.
    """
    row = await _agent(backend, agent_id)
    stands_for = _stands_for(backend, mapping.agent(row), entity)
    await _check_label(backend, row)
    await _tag(backend, row, stands_for)
    return Attached(agent_id, stands_for, await backend.signals.settle(stands_for, limit=limit, prompts=True))


async def give_tool(backend: LettaBackend, agent_id: str, url: str, token: str) -> tuple[str, str | None]:
    """Give an agent the pull tool, with address and token; the tool's id, and the token it had before.

    Raises:
        ToolTakenError: A tool with our name is somebody else's; nothing was changed.
    """
    row = await _agent(backend, agent_id)
    made = await Tool(backend.api, backend.name).register(row, checked_url(url), token)
    return made, token_of(row)


def mcp_of(backend: LettaBackend) -> Mcp:
    """The MCP servers of a backend's tenant."""
    return Mcp(backend.api, backend.name, backend.mark)


async def give_mcp(backend: LettaBackend, agent_id: str, tools: Sequence[str]) -> None:
    """Give an agent the tools of an MCP server."""
    await mcp_of(backend).give(await _agent(backend, agent_id), tools)


async def check_tool(backend: LettaBackend, url: str) -> None:
    """See that a tool can be given, before anything is changed.

    Raises:
        InputError: The address cannot be used.
        ToolTakenError: A tool with our name is somebody else's.
    """
    checked_url(url)
    await Tool(backend.api, backend.name).check()


async def detach(backend: LettaBackend, agent_id: str) -> Detached:
    """Take block, tools, environment keys and tags from an agent; what nobody else uses is deleted.

    An agent that is gone already leaves nothing but what its entity had alone, which goes too.

    Raises:
        InputError: No such kind of id.
    """
    try:
        row = await _agent(backend, agent_id)
    except LettaGoneError:
        await backend.signals.settle_all()
        return Detached(agent_id, None, mcp=await mcp_of(backend).remove(None))
    found = mapping.agent(row)
    had = await Tool(backend.api, backend.name).remove(row)
    tokens = await mcp_of(backend).remove(row)
    if backend.mark not in found.tags:
        return Detached(agent_id, None, had, token_of(row), tokens)
    dropped = {backend.mark, OURS} | ({mapping.tag_of(found.entity)} if OURS in found.tags else set[str]())
    await backend.api.patch(f"/v1/agents/{agent_id}", {"tags": sorted(found.tags - dropped)})
    for block in found.blocks:
        if block.get("label") == LABEL and backend.mark in (await _tags(backend, str(block["id"]))):
            await backend.api.patch(f"/v1/agents/{agent_id}/core-memory/blocks/detach/{block['id']}")
    await backend.api.post(f"/v1/agents/{agent_id}/recompile")
    settled = await backend.signals.settle(found.entity)
    if not settled.agents:
        await backend.clear(found.entity)
    return Detached(agent_id, found.entity, had, token_of(row), tokens)


async def _agent(backend: LettaBackend, agent_id: str) -> Json:
    if not mapping.is_id(agent_id, "agent"):
        raise InputError(f"`{agent_id}` is no id of a Letta agent; it reads agent-<uuid>")
    return await backend.api.get(f"/v1/agents/{agent_id}", include=WHOLE)


def _stands_for(backend: LettaBackend, agent: mapping.Agent, wanted: Entity | None) -> Entity:
    """Whom an agent is to stand for: as its tags say, else as asked."""
    if wanted is not None and wanted.kind == mapping.PERSON and (others := agent.others(wanted)):
        raise SharedAgentError(backend.name, agent.id, str(wanted), others)
    tagged = mapping.tag_of(agent.entity) in agent.tags
    if wanted is None or wanted == agent.entity:
        return agent.entity
    if backend.mark in agent.tags:
        raise InputError(f"agent `{agent.id}` is attached for `{agent.entity}`; detach it first")
    if tagged:
        raise InputError(f"agent `{agent.id}` has the tag of `{agent.entity}`; attach it for that, or remove the tag")
    return wanted


async def _check_label(backend: LettaBackend, row: Json) -> None:
    for block in row.get("blocks") or ():
        if block.get("label") == LABEL and backend.mark not in await _tags(backend, str(block["id"])):
            raise LabelTakenError(backend.name, str(row["id"]), LABEL)


async def _tags(backend: LettaBackend, block: str) -> list[str]:
    """The tags of a block; within an agent, blocks come without."""
    row: Json | None = await backend.api.find(f"/v1/blocks/{block}")
    return [] if row is None else list(row.get("tags") or ())


async def _tag(backend: LettaBackend, row: Json, entity: Entity) -> None:
    before = {str(tag) for tag in row.get("tags") or ()}
    after = before | {backend.mark, mapping.tag_of(entity)}
    if mapping.tag_of(entity) not in before:
        after.add(OURS)
    if after != before:
        await backend.api.patch(f"/v1/agents/{row['id']}", {"tags": sorted(after)})


__all__ = ["OURS", "Attached", "Detached", "attach", "check_tool", "detach", "give_mcp", "give_tool", "mcp_of", "whose"]
