"""Which graphs hold an entity's memory, and whose a graph is.

In:   an entity; the uuid of a graph, or of its user.
Out:  uuids of graphs; an entity.

A user's `user_id` and graph never change, so that they are remembered for a minute; what was
not found is looked for again each time.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from typing import Final, TypeVar

from collab_layer.types.entity import Entity
from collab_layer_zep import mapping
from collab_layer_zep.client import Api, Json
from collab_layer_zep.mapping import USER

KEPT_S: Final = 60.0
MAX_KEPT: Final = 10_000
K = TypeVar("K")
V = TypeVar("V")


class Places:
    """The users and graphs of one project.

    Args:
        api: The project.
        named: Standalone graphs by uuid whose name does not say whose they are.
    """

    def __init__(self, api: Api, named: Mapping[str, Entity]) -> None:
        self._api, self._named = api, dict(named)
        self._graphs: dict[Entity, tuple[float, list[str]]] = {}
        self._owners: dict[str, tuple[float, Entity]] = {}
        self._names: dict[Entity, tuple[float, frozenset[str]]] = {}
        self.nameless: set[str] = set()

    async def of(self, owner: Entity) -> list[str]:
        """The graphs that hold an entity's own memory, in order; none for who has none."""
        kept = self._graphs.get(owner)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        found = sorted(await (self._user(owner) if owner.kind == USER else self._standalone(owner)))
        if found:
            _keep(self._graphs, owner, found)
        return found

    async def names(self, owner: Entity) -> frozenset[str]:
        """What a user is called in its threads, in small letters: id, names, address; nothing if it is gone."""
        kept = self._names.get(owner)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        user = await self._row(owner) or {}
        first, last = (str(user.get(field) or "").strip() for field in ("first_name", "last_name"))
        called = (str(user.get("user_id") or ""), str(user.get("email") or ""), first, f"{first} {last}")
        found = frozenset(name for one in called if (name := one.strip().casefold()))
        _keep(self._names, owner, found)
        return found

    async def owner(self, graph: str) -> Entity | None:
        """Whose a graph is; None for reserved ones, and for what Zep does not have."""
        kept = self._owners.get(graph)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        row = await self._api.graph(graph)
        found = None if row is None else await self._owner(row)
        if found is not None:
            _keep(self._owners, graph, found)
        return found

    async def all(self) -> AsyncGenerator[tuple[Entity, str]]:
        """Every owner with its graph; an owner of several graphs comes several times."""
        async for user in self._api.users():
            owner = mapping.user_entity(user.get("user_id"), user["uuid"])
            if owner is None:
                self.nameless.add(str(user["uuid"]))
            elif user.get("graph_uuid"):
                yield owner, str(user["graph_uuid"])
        async for graph in self._api.graphs():
            owner = None if _is_users(graph) else self._of_standalone(graph)
            if owner is not None:
                yield owner, str(graph["uuid"])

    def forget(self, owner: Entity) -> None:
        """Look for an owner's graphs again: one of them is gone."""
        _, graphs = self._graphs.pop(owner, (0.0, []))
        for graph in graphs:
            self._owners.pop(graph, None)

    async def _user(self, owner: Entity) -> list[str]:
        user = await self._row(owner)
        return [str(user["graph_uuid"])] if user is not None and user.get("graph_uuid") else []

    async def _row(self, owner: Entity) -> Json | None:
        user_id, uuid = mapping.user_id_of(owner), mapping.uuid_of(owner)
        if user_id is not None:
            user = await self._api.user_named(user_id)
        else:
            user = None if uuid is None else await self._api.user(uuid)
        if user is None or mapping.user_entity(user.get("user_id"), user["uuid"]) != owner:
            return None
        return user

    async def _standalone(self, owner: Entity) -> list[str]:
        found = {graph for graph, one in self._named.items() if one == owner}
        uuid = mapping.uuid_of(owner)
        if uuid is not None:
            row = await self._api.graph(uuid)
            rows = [] if row is None else [row]
        else:
            rows = [row async for row in self._api.graphs(search=str(owner))]
        return [*found, *({str(row["uuid"]) for row in rows if self._is(row, owner)} - found)]

    def _is(self, row: Json, owner: Entity) -> bool:
        return not _is_users(row) and self._of_standalone(row) == owner

    async def _owner(self, row: Json) -> Entity | None:
        if not _is_users(row):
            return self._of_standalone(row)
        user = await self._api.user(str(row.get("user_uuid")))
        return None if user is None else mapping.user_entity(user.get("user_id"), user["uuid"])

    def _of_standalone(self, row: Json) -> Entity | None:
        uuid = str(row["uuid"])
        return self._named.get(uuid) or mapping.graph_entity(row.get("graph_id") or row.get("name"), uuid)


def _is_users(graph: Json) -> bool:
    return graph.get("type") == "user" or bool(graph.get("user_uuid"))


def _keep(held: dict[K, tuple[float, V]], key: K, value: V) -> None:
    if len(held) >= MAX_KEPT:
        held.clear()
    held[key] = (time.monotonic() + KEPT_S, value)


__all__ = ["Places"]
