"""The reserved graphs of an owner: what they hold, made when needed, deleted when empty.

In:   an owner.
Out:  its items by key, whichever graph they are in; uuids of graphs and nodes.

Zep does not keep two graphs from having one name. Where two writers with ledgers of their own
made one each at the same time, both are read, and the older one is written to.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from collab_layer.errors import BackendError
from collab_layer.types.entity import Entity
from collab_layer_zep import derived, mapping
from collab_layer_zep.client import Api, Json
from collab_layer_zep.derived import KEY, PEERS, once
from collab_layer_zep.ledger import Ledger
from collab_layer_zep.mapping import RETRACTED
from collab_layer_zep.refusals import ZepGoneError


class Held(NamedTuple):
    """What the reserved graphs of an owner hold.

    Attributes:
        graphs: Their uuids, the oldest first.
        keyed: Items by key, the oldest first; each says its `graph_uuid`.
        blank: Items that were taken back, and are to be deleted yet.
        others: Graphs with edges that are not ours.
    """

    graphs: list[str]
    keyed: dict[str, list[Json]]
    blank: list[Json]
    others: set[str]

    def empty(self, keys: Iterable[str]) -> list[str]:
        """The graphs that hold nothing but items of these keys."""
        gone = set(keys)
        kept = {str(row["graph_uuid"]) for key, rows in self.keyed.items() if key not in gone for row in rows}
        return [graph for graph in self.graphs if graph not in kept | self.others]


class Shelf:
    """The reserved graphs of one project.

    Args:
        api: The project.
        ledger: Which owner has which graph.
    """

    def __init__(self, api: Api, ledger: Ledger) -> None:
        self._api, self._ledger = api, ledger

    async def look(self, owner: str) -> Held:
        """What is there now."""
        name = mapping.reserved_name(Entity.parse(owner))
        rows = [row async for row in self._api.graphs(search=name) if row.get("name") == name]
        rows.sort(key=lambda row: (str(row.get("created_at")), str(row["uuid"])))
        known, _ = await self._ledger.graph(owner)
        graphs = [str(row["uuid"]) for row in rows]
        graphs += [known] if known is not None and known not in graphs else []
        held = Held([], {}, [], set())
        for graph in graphs:
            await self._add(held, graph)
        if known is not None and known not in held.graphs:
            await self._ledger.drop_graph(owner, known)
        if held.graphs and held.graphs[0] != known:
            await self._ledger.keep_graph(owner, held.graphs[0])
        for found in held.keyed.values():
            found.sort(key=lambda row: (str(row.get("created_at")), str(row["uuid"])))
        return held

    async def _add(self, held: Held, graph: str) -> None:
        try:
            rows = [{**row, "graph_uuid": graph} async for row in self._api.all_edges(graph)]
        except ZepGoneError:
            return
        held.graphs.append(graph)
        for row in rows:
            attributes: Any = row.get("attributes") or {}
            if not attributes.get(KEY):
                held.others.add(graph)
            elif attributes.get(RETRACTED):
                held.blank.append(row)
            else:
                held.keyed.setdefault(str(attributes[KEY]), []).append(row)

    async def make(self, owner: str, keys: Sequence[str]) -> str:
        """A new graph; its uuid."""
        entity = Entity.parse(owner)
        for salt in ("", uuid.uuid4().hex):
            asked = once("graph", self._api.name, owner, salt, *sorted(keys))
            graph = await self._api.make_graph(mapping.reserved_name(entity), derived.description(entity), asked)
            if await self._api.graph(graph) is not None:
                await self._ledger.keep_graph(owner, graph)
                return graph
            # The answer was that to an earlier request, whose graph is deleted by now.
        raise BackendError(self._api.name, "Zep made a graph and does not have it")

    async def undo(self, owner: str, graph: str) -> None:
        """Delete a graph that was made for nothing; where that fails too, the next write finds and uses it."""
        try:
            if not (await self._api.edges(graph)).rows:
                await self.drop(owner, graph)
        except BackendError:
            return

    async def drop(self, owner: str, graph: str) -> None:
        """Delete a graph with all in it."""
        await self._api.drop_graph(graph)
        await self._ledger.drop_graph(owner, graph)

    async def nodes(self, owner: str, graph: str) -> dict[str, str]:
        """The nodes of the owner and of its peers by name, made if they are not there.

        Where they are, the graph has our ontology too: it is set before.
        """
        there = {str(row.get("name")): str(row["uuid"]) async for row in self._api.nodes(graph)}
        missing = [name for name in (owner, PEERS) if name not in there]
        if missing:
            await self._api.set_edge_types(graph, derived.edge_types())
            there |= await self._api.add_nodes(graph, missing)
        return there

    async def owners_of(self, keys: Iterable[str]) -> set[str]:
        """For whom keys were written that the ledger does not know: every reserved graph is looked at."""
        wanted, found = set(keys), set[str]()
        async for row in self._api.graphs(search=mapping.RESERVED):
            owner = mapping.reserved_owner(row.get("name"))
            if owner is not None and str(owner) not in found:
                held = Held([], {}, [], set())
                await self._add(held, str(row["uuid"]))
                if wanted & held.keyed.keys():
                    found.add(str(owner))
        return found


__all__ = ["Held", "Shelf"]
