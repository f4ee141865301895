"""How an agent is to ask the layer: what is given is checked, tokens are issued and ended.

In:   what the caller of `attach` said, and the keeper of a layer if there is one.
Out:  the MCP server of an entity, registered with a token for that entity alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from collab_layer.errors import CollabError, InputError, TokenRefusedError, UnknownIdError
from collab_layer.types.access import Bearer
from collab_layer.types.entity import Entity
from collab_layer_letta import hold as flow
from collab_layer_letta import mcp_settings as settings
from collab_layer_letta.backend import LettaBackend
from collab_layer_letta.keeper import Keeper
from collab_layer_letta.mcp import Registered
from collab_layer_letta.mcp_settings import Kind
from collab_layer_letta.tool import checked_url


class Access(NamedTuple):
    """How an agent is to ask, beside its block.

    Attributes:
        url: Of `collab serve`.
        token: Given by the caller; None to issue one.
        mcp: As an MCP server, over which transport.
        database: Of the layer, for a process that Letta starts.
        command: What that process is.
    """

    url: str | None
    token: str | None
    mcp: Kind | None
    database: str | None
    command: str


def checked(access: Access) -> Access:
    """Settings that can be used, before anything is asked.

    Raises:
        InputError: They cannot.
    """
    if access.mcp is None:
        return access
    if access.mcp == "stdio":
        if access.url is not None:
            raise InputError("MCP over stdio has no address; leave `url` out, or say mcp='http'")
        return access._replace(database=settings.checked_database(access.database))
    if access.mcp != "http":
        raise InputError(f"mcp is 'stdio' or 'http', not {access.mcp!r}")
    if access.url is None:
        raise InputError("MCP over HTTP needs `url`: the public address of `collab serve --mcp`")
    return access._replace(url=checked_url(access.url))


async def register(
    backend: LettaBackend, entity: Entity, access: Access, keeper: Keeper | None, tenant: str
) -> Registered:
    """Register an entity's MCP server, with the token given, the one it has, or a new one."""
    servers = flow.mcp_of(backend)
    row = await servers.find(entity)
    before = None if row is None else settings.token_in(row)
    token = access.token
    if token is None and keeper is not None and before is not None and await _holds(keeper, before, entity):
        token = before
    issued = None
    if token is None and keeper is not None:
        issued = token = (await keeper.call("issue_token", entity)).text
    whose = tenant if keeper is None else keeper.layer.tenant
    try:
        made = await servers.register(entity, _settings(access, servers.named(entity).suffix, token or "", whose))
    except CollabError:
        if keeper is not None:
            await revoke(keeper, issued)
        raise
    if keeper is not None and before != token:
        await revoke(keeper, before)
    return made


def _settings(access: Access, suffix: str, token: str, tenant: str) -> dict[str, Any]:
    if access.mcp == "stdio":
        return settings.stdio(suffix, token, database=access.database or "", tenant=tenant, command=access.command)
    return settings.http(suffix, token, url=access.url or "")


async def _holds(keeper: Keeper, token: str, entity: Entity) -> bool:
    """Whether a token still lets its bearer act for an entity."""
    try:
        view = await keeper.call("open_with", token)
    except TokenRefusedError:
        return False
    return bool(view.principal == entity)


async def revoke(keeper: Keeper, token: str | None) -> None:
    """End a token of ours that is used no more; one of another tenant, or ended already, is left."""
    read = None if token is None else Bearer.read(token)
    if read is not None and read.tenant == keeper.layer.tenant:
        with suppress(UnknownIdError):
            await keeper.call("revoke_token", read.id)


__all__ = ["Access", "checked", "register", "revoke"]
