"""Attach and detach one agent: the two calls of this package, blocking and awaited.

In:   a client, an agent, and a layer if there is one in this process.
Out:  the attached agent; with a layer its signal block is filled at once and kept current.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity
from collab_layer_letta import hold as flow
from collab_layer_letta.asking import Access, checked, register, revoke
from collab_layer_letta.backend import NAME, TENANT, LettaBackend
from collab_layer_letta.client import Client
from collab_layer_letta.keeper import EVERY_S, Keeper, Layer
from collab_layer_letta.mcp_settings import COMMAND, Kind
from collab_layer_letta.signal import Settled
from collab_layer_letta.text import LIMIT

T = TypeVar("T")
EntityLike = Entity | str
_KEEPERS: WeakValueDictionary[tuple[int, int], Keeper] = WeakValueDictionary()
"""One keeper for a layer and a client; each lives as long as it runs, or somebody holds it."""


class Attachment(NamedTuple):
    """An attached agent.

    Attributes:
        agent: Its id.
        entity: Whom it stands for.
        signal: How its signal block looks.
        tool: Id of the pull tool; None without one.
        keeper: What keeps the block current; None without a layer.
        mcp: Id of the MCP server whose tools it has; None without one.
    """

    agent: str
    entity: Entity
    signal: Settled
    tool: str | None
    keeper: Keeper | None
    mcp: str | None = None


def attach(
    client: Client,
    agent_id: str,
    *,
    entity: EntityLike | None = None,
    layer: Layer | None = None,
    url: str | None = None,
    token: str | None = None,
    mcp: Kind | None = None,
    database: str | None = None,
    command: str = COMMAND,
    limit: int | None = None,
    every_s: float | None = EVERY_S,
    tenant: str | None = None,
    name: str = NAME,
) -> Attachment:
    """Give an agent what its neighbours know: a read-only signal block and, if you like, tools to ask.

    With a layer the agent's own blocks and archive are read, the block is filled at once, and
    from then on kept current: by every update that is made, and by a round every `every_s`.
    Without one, `collab letta sync` does that. Calling it again changes only what has changed.

    Args:
        client: A `Letta`.
        agent_id: As Letta has it, `agent-…`.
        entity: Whom the agent stands for; as its tag `entity:…` says, else itself, if None.
        layer: An open `CollabLayer`.
        url: Address of `collab serve`, as the Letta server reaches it; None for no tool.
        token: For the service. None issues one with the layer, in place of the agent's last one.
        mcp: Register the layer as an MCP server instead of the pull tool: `stdio` has Letta start
            `collab mcp`, where its server allows that; `http` has it call `/mcp` of `url`, which
            must be public. None registers none.
        database: Of the layer, for `stdio`: file or URL, as the Letta server reaches it.
        command: For `stdio`: the `collab` to start, a path on the machine of the Letta server.
        limit: Characters of the block, > 0; None keeps what it has, 4,000 for a new one.
        every_s: Seconds between two rounds, > 0; None for none.
        tenant: Of the layer that will fill the block, where none is given; `default` if None.
        name: Of the store within the layer.

    Raises:
        InputError: Something that cannot be used, or the agent stands for another entity.
        LettaGoneError: There is no such agent.
        LabelTakenError, ToolTakenError, McpTakenError: Something else has our name; nothing was changed.
        McpRefusedError: Letta does not take the MCP server, or gets no tools from it; nothing was changed.
        BackendError: The server did not do it; call again, or detach.
    """
    return _run(
        attach_async(
            client,
            agent_id,
            entity=entity,
            layer=layer,
            url=url,
            token=token,
            mcp=mcp,
            database=database,
            command=command,
            limit=limit,
            every_s=every_s,
            tenant=tenant,
            name=name,
        )
    )


async def attach_async(
    client: Client,
    agent_id: str,
    *,
    entity: EntityLike | None = None,
    layer: Layer | None = None,
    url: str | None = None,
    token: str | None = None,
    mcp: Kind | None = None,
    database: str | None = None,
    command: str = COMMAND,
    limit: int | None = None,
    every_s: float | None = EVERY_S,
    tenant: str | None = None,
    name: str = NAME,
) -> Attachment:
    """As `attach`, for an `AsyncLetta` and an `AsyncCollabLayer`, or in a program with an event loop."""
    if limit is not None and limit <= 0:
        raise InputError(f"limit must be above 0, not {limit}")
    access = checked(Access(url, token, mcp, database, command))
    wanted = None if entity is None else Entity.parse(entity)
    keeper = None if layer is None else keeper_of(layer, client, limit=limit or LIMIT, name=name)
    backend = keeper.backend if keeper else _backend(client, name, tenant or TENANT, limit or LIMIT)
    asks = mcp is not None or url is not None
    if asks and token is None and keeper is None:
        raise InputError("give a token for the service, or a layer that issues one")
    server = None
    if mcp is not None:
        whose = await flow.whose(backend, agent_id, wanted)
        server = await register(backend, whose, access, keeper, tenant or TENANT)
    elif url is not None:
        await flow.check_tool(backend, url)
    made = await flow.attach(backend, agent_id, wanted, limit=limit)
    tool = None
    if server is not None:
        await flow.give_mcp(backend, made.agent, server.tools)
    elif url is not None:
        tool = await _tool(backend, made, url, token, keeper)
    id_ = None if server is None else server.server
    if keeper is None:
        return Attachment(made.agent, made.entity, made.signal, tool, None, id_)
    report = await keeper.round([made.entity], again=True)
    if every_s is not None:
        keeper.start(every_s)
    signal = next((one for one in report.signals if one.entity == made.entity), made.signal)
    return Attachment(made.agent, made.entity, signal, tool, keeper, id_)


def detach(client: Client, agent_id: str, *, layer: Layer | None = None, tenant: str | None = None) -> flow.Detached:
    """Take block, tools, environment keys and tags from an agent; what no other agent uses is deleted.

    Args:
        client: A `Letta`.
        agent_id: As Letta has it; one that was deleted is tidied up after.
        layer: Revokes the tokens that the agent had alone.
        tenant: Of the layer, where none is given; `default` if None.

    Raises:
        BackendError: The server did not do it; call again.
    """
    return _run(detach_async(client, agent_id, layer=layer, tenant=tenant))


async def detach_async(
    client: Client, agent_id: str, *, layer: Layer | None = None, tenant: str | None = None
) -> flow.Detached:
    """As `detach`, for an `AsyncLetta`, or in a program with an event loop."""
    whose = tenant or (TENANT if layer is None else layer.tenant)
    keeper = None if layer is None else keeper_of(layer, client)
    backend = _backend(client, NAME, whose, LIMIT) if keeper is None else keeper.backend
    gone = await flow.detach(backend, agent_id)
    if keeper is not None:
        for token in (gone.token, *gone.mcp):
            await revoke(keeper, token)
    return gone


def keeper_of(layer: Layer, client: Client, *, limit: int = LIMIT, name: str = NAME) -> Keeper:
    """The keeper of a layer and a client; the same one while it lives."""
    key = id(layer), id(client)
    found = _KEEPERS.get(key)
    if found is None:
        found = _KEEPERS[key] = Keeper(layer, _backend(client, name, layer.tenant, limit))
    return found


def _backend(client: Client, name: str, tenant: str, limit: int) -> LettaBackend:
    return LettaBackend(client, name=name, write=True, tenant=tenant, limit=limit, attached_only=True)


async def _tool(backend: LettaBackend, made: flow.Attached, url: str, token: str | None, keeper: Keeper | None) -> str:
    """Give the tool with the token given, else with a new one in place of the agent's last one."""
    if token is not None or keeper is None:
        return (await flow.give_tool(backend, made.agent, url, token or ""))[0]
    issued = await keeper.call("issue_token", made.entity)
    tool, before = await flow.give_tool(backend, made.agent, url, issued.text)
    await revoke(keeper, before)
    return tool


def _run(call: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from a program without an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    call.close()
    raise InputError("there is a running event loop: await `attach_async` or `detach_async` instead")


__all__ = ["Attachment", "attach", "attach_async", "detach", "detach_async", "keeper_of"]
