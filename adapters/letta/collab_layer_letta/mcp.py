"""Register the layer as an MCP server of Letta, give its tools to an agent, take both away.

In:   an agent, the entity it stands for, the settings of the server.
Out:  one MCP server per entity, and its tools on each of the entity's agents.

Letta answers the registration of a server that it cannot reach as if all were well, and lists
no tools for it. Such a server is removed again, and the caller is told.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import NamedTuple

from collab_layer.errors import BackendError, InputError
from collab_layer.types.entity import Entity
from collab_layer_letta import mcp_settings as settings
from collab_layer_letta.client import Api, Json, told
from collab_layer_letta.mcp_settings import Named
from collab_layer_letta.refusals import (
    LettaConflictError,
    LettaGoneError,
    LettaRejectedError,
    McpRefusedError,
    McpTakenError,
)

PATH = "/v1/mcp-servers/"
_PRIVATE = ("Non-public IP", "Blocked internal hostname", "resolves to non-public")


class Registered(NamedTuple):
    """A server that stands in Letta.

    Attributes:
        server: Its id.
        tools: Ids of its tools.
        is_new: Whether it was made by this call.
    """

    server: str
    tools: tuple[str, ...]
    is_new: bool


class Mcp:
    """The MCP servers of one tenant.

    Args:
        api: The Letta server.
        name: Of the backend, for errors.
        mark: The tag that stands for the tenant.
    """

    def __init__(self, api: Api, name: str, mark: str) -> None:
        self._api, self._name, self._mark = api, name, mark

    def named(self, entity: Entity) -> Named:
        """The names that belong to an entity."""
        return settings.named(self._mark, entity)

    async def find(self, entity: Entity) -> Json | None:
        """The server of an entity, if there is one.

        Raises:
            McpTakenError: One of its name is somebody else's.
        """
        name = self.named(entity).server
        for row in await self._servers():
            if row.get("server_name") == name:
                if not settings.is_ours(row, self._mark):
                    raise McpTakenError(self._name, str(row["id"]), name)
                return row
        return None

    async def register(self, entity: Entity, config: Json) -> Registered:
        """Make the server of an entity, or give it these settings.

        Raises:
            InputError: It has one over another transport.
            McpTakenError: One of its name is somebody else's; nothing was changed.
            McpRefusedError: Letta does not take it, or gets no tools from it; all is as it was.
        """
        found = await self.find(entity)
        if found is None:
            try:
                return await self._make(self.named(entity).server, config)
            except LettaConflictError:  # another process was faster
                found = await self.find(entity)
                if found is None:
                    raise
        if not settings.same(found, config):
            await self._change(entity, found, config)
        tools = await self._tools(str(found["id"]))
        if not tools:
            raise _silent(self._name)
        return Registered(str(found["id"]), tools, is_new=False)

    async def drop(self, server: str) -> None:
        """Remove a server with its tools, from every agent; one that is gone is fine."""
        with suppress(LettaRejectedError):  # so Letta 0.16 answers for one that is not there
            await self._api.delete(f"{PATH}{server}")

    async def give(self, agent: Json, tools: Iterable[str]) -> None:
        """Attach tools to an agent that lacks them."""
        has = {str(row["id"]) for row in agent.get("tools") or ()}
        for tool in tools:
            if tool not in has:
                await self._api.patch(f"/v1/agents/{agent['id']}/tools/attach/{tool}")

    async def remove(self, agent: Json | None) -> tuple[str, ...]:
        """Take our tools from an agent, and remove the servers whose tools no agent has any more.

        Args:
            agent: As the API gives it, with its tools; None looks at every server of the tenant.

        Returns:
            The tokens of the servers that were removed.
        """
        ours = {settings.tag_of(row["server_name"]): row for row in await self._ours()}
        if agent is not None and ours:
            ours = await self._take(agent, ours)
        used = await self._used() if ours else frozenset[str]()
        gone = [row for tag, row in ours.items() if tag not in used]
        for row in gone:
            await self.drop(str(row["id"]))
        return tuple(token for row in gone if (token := settings.token_in(row)) is not None)

    async def _take(self, agent: Json, ours: dict[str, Json]) -> dict[str, Json]:
        """Detach an agent's tools of ours; the servers they belong to."""
        found: dict[str, Json] = {}
        for row in agent.get("tools") or ():
            tags = ours.keys() & set(row.get("tags") or ())
            if tags:
                await self._api.patch(f"/v1/agents/{agent['id']}/tools/detach/{row['id']}")
                found |= {tag: ours[tag] for tag in tags}
        return found

    async def _make(self, name: str, config: Json) -> Registered:
        with _refusals(self._name):
            made: Json = await self._api.post(PATH, {"server_name": name, "config": config})
        server = str(made["id"])
        tools = await self._tools(server)
        if not tools:
            await self.drop(server)
            raise _silent(self._name)
        return Registered(server, tools, is_new=True)

    async def _change(self, entity: Entity, row: Json, config: Json) -> None:
        """Give a server other settings; it gets its own back if Letta reaches nothing with them."""
        if row["mcp_server_type"] != config["mcp_server_type"]:
            was = settings.kind_of(row)
            raise InputError(f"`{entity}` has an MCP server over {was}: detach its agents first, or attach with {was}")
        path, held = f"{PATH}{row['id']}", {key: row.get(key) for key in config}
        with _refusals(self._name):
            await self._api.patch(path, {"server_name": row["server_name"], "config": config})
            try:
                await self._api.patch(f"{path}/refresh")
            except BackendError:
                await self._api.patch(path, {"server_name": row["server_name"], "config": held})
                raise

    async def _tools(self, server: str) -> tuple[str, ...]:
        rows: list[Json] = await self._api.get(f"{PATH}{server}/tools")
        return tuple(str(row["id"]) for row in rows)

    async def _servers(self) -> list[Json]:
        """Every registered server; none where Letta knows of no such thing. The list has no pages."""
        return await self._api.find(PATH) or []

    async def _ours(self) -> list[Json]:
        return [row for row in await self._servers() if settings.is_ours(row, self._mark)]

    async def _used(self) -> frozenset[str]:
        """The tags of all tools that some agent has."""
        rows = await self._api.all("/v1/agents/", include=["agent.tools"])
        return frozenset(str(tag) for row in rows for tool in row.get("tools") or () for tag in tool.get("tags") or ())


@contextmanager
def _refusals(name: str) -> Generator[None]:
    """Turn what Letta says about a server's settings into `McpRefusedError`."""
    try:
        yield
    except LettaGoneError as error:  # so a refresh answers where nothing can be reached
        raise _silent(name) from error
    except LettaRejectedError as error:
        raise _refused(name, told(error)) from error


def _refused(name: str, said: str) -> McpRefusedError:
    if any(words in said for words in _PRIVATE):
        why = (
            "Letta calls no loopback or private address as an MCP server; give the public address of "
            "`collab serve --mcp`, or leave `mcp` out and `--url` registers a tool that may call it"
        )
        return McpRefusedError(name, why, reason="address")
    if "stdio" in said and "disabled" in said:
        why = (
            "this Letta server starts no MCP servers itself, as is its default; "
            "set MCP_DISABLE_STDIO=false for it, or leave `mcp` out and `--url` registers a tool instead"
        )
        return McpRefusedError(name, why, reason="stdio")
    return McpRefusedError(name, "Letta takes the settings of the MCP server for wrong", reason="settings")


def _silent(name: str) -> McpRefusedError:
    why = (
        "Letta gets no tools from the MCP server: is `collab` with its extra `serve` where Letta looks for it, "
        "can it open the database, or does the address lead to `collab serve --mcp` with this name allowed?"
    )
    return McpRefusedError(name, why, reason="silent")


__all__ = ["PATH", "Mcp", "Registered"]
