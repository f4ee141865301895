"""Derived items in the reserved graph of their owner, each key once, and out of it again.

In:   updates; keys.
Out:  receipts; how many there were.

One writer at a time works on an owner, by a claim in the ledger. It looks at what the graph
holds before it adds, and again after: what another ledger's writer added at the same time is
then seen twice, and the newer of the two goes. A graph that holds nothing any more is deleted.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from collab_layer.errors import BackendError
from collab_layer.ports.clock import Clock
from collab_layer.types.entity import Entity
from collab_layer.types.update import Receipt, Update
from collab_layer_zep import derived, mapping
from collab_layer_zep.client import PAGE, Api, Json
from collab_layer_zep.derived import KEY, PEERS, once
from collab_layer_zep.erasing import Eraser
from collab_layer_zep.facts import Edge
from collab_layer_zep.ledger import Item, Ledger
from collab_layer_zep.mapping import RETRACTED, Ref
from collab_layer_zep.refusals import ZepGoneError
from collab_layer_zep.together import each

_VISIBLE_S: Final = (0.1, 0.4, 1.5)
"""How long what was stored may take to be seen, before it is taken to be missing."""


class Held(NamedTuple):
    """What a reserved graph holds.

    Attributes:
        graph: Its uuid.
        keyed: Its items by key, the oldest first.
        others: Edges without a key of ours.
    """

    graph: str
    keyed: dict[str, list[Json]]
    others: int


class Writer:
    """Writes derived items for one store.

    Args:
        api: The project.
        ledger: Which key is which edge.
        eraser: Takes edges out.
        clock: What the store takes for now.
        wait_s: For another writer's work on the same owner.
    """

    def __init__(self, api: Api, ledger: Ledger, eraser: Eraser, clock: Clock, wait_s: float) -> None:
        self._api, self._ledger, self._eraser, self._clock, self._wait_s = api, ledger, eraser, clock, wait_s

    async def write(self, updates: Sequence[Update]) -> list[Receipt]:
        """Store each update under its id; what its key has already is left alone.

        Raises:
            InputError: One of them cannot be stored; none was.
        """
        now = self._clock()
        wanted: dict[str, dict[str, Edge]] = {}
        for update in reversed(updates):  # of two with one key the first counts
            wanted.setdefault(str(update.owner), {})[update.id] = derived.edge(update, now)
        kept: dict[str, Item] = {}
        for found in await each(lambda owner: self._put(owner, wanted[owner]), wanted):
            kept |= found
        return [
            Receipt(key=one.id, native_id=str(Ref(kept[one.id].graph, kept[one.id].edge)), backend=self._api.name)
            for one in updates
        ]

    async def retract(self, keys: Sequence[str]) -> int:
        """Take out what was written under keys, at once for readers of ours; how many there were."""
        known = await self._ledger.items(keys)
        unknown = [key for key in keys if key not in known]
        owners = {item.owner for item in known.values()}
        owners |= await self._owners_of(unknown) if unknown else set()
        counts = await each(lambda owner: self._take_back(owner, set(keys)), sorted(owners))
        return sum(counts)

    # -- one owner ---------------------------------------------------------------------------

    async def _put(self, owner: str, edges: Mapping[str, Edge]) -> dict[str, Item]:
        async with self._ledger.alone(f"derived {owner}", self._wait_s):
            held = await self._find(owner)
            made = held is None
            if held is None:
                held = Held(await self._make(owner, edges), {}, 0)
            try:
                return await self._fill(owner, held, edges)
            except BackendError:
                if made:
                    await self._undo(owner, held.graph)
                raise

    async def _fill(self, owner: str, held: Held, edges: Mapping[str, Edge]) -> dict[str, Item]:
        missing = {key: edge for key, edge in edges.items() if key not in held.keyed}
        if missing:
            held = await self._add(owner, held.graph, missing)
        items = {key: Item(key, owner, held.graph, str(held.keyed[key][0]["uuid"])) for key in edges}
        await self._ledger.keep(items.values())
        return items

    async def _add(self, owner: str, graph: str, edges: Mapping[str, Edge]) -> Held:
        nodes = await self._nodes(owner, graph)
        _, epoch = await self._ledger.graph(owner)
        for tried in range(2):
            await self._send(graph, epoch, {key: _between(edge, nodes) for key, edge in edges.items()})
            held = await self._seen(graph, edges)
            edges = {key: edge for key, edge in edges.items() if key not in held.keyed}
            if not edges:
                await self._single(held)
                return held
            # The answer was that to an earlier request, whose edges are deleted by now.
            epoch = f"{await self._ledger.turn(owner)}-{uuid.uuid4().hex}" if not tried else epoch
        raise BackendError(self._api.name, f"Zep says that it stored {len(edges)} items, and does not show them")

    async def _send(self, graph: str, epoch: object, edges: Mapping[str, Edge]) -> None:
        keys = sorted(edges)
        for start in range(0, len(keys), PAGE):
            part = keys[start : start + PAGE]
            await self._api.add_edges(graph, [edges[key] for key in part], once("edges", graph, epoch, *part))

    async def _seen(self, graph: str, wanted: Iterable[str]) -> Held:
        for pause in _VISIBLE_S:
            held = await self._held(graph)
            if all(key in held.keyed for key in wanted):
                return held
            await asyncio.sleep(pause)
        return await self._held(graph)

    async def _single(self, held: Held) -> None:
        """Of two edges with one key the newer goes."""
        doubles = [row for rows in held.keyed.values() for row in rows[1:]]
        if doubles:
            await self._eraser.remove(held.graph, doubles, derived.blanked(self._clock()))

    async def _take_back(self, owner: str, keys: set[str]) -> int:
        async with self._ledger.alone(f"derived {owner}", self._wait_s):
            held = await self._find(owner)
            if held is None:
                await self._ledger.drop(keys)
                return 0
            mine = {key: rows for key, rows in held.keyed.items() if key in keys}
            rows = [row for found in mine.values() for row in found]
            if len(mine) == len(held.keyed) and not held.others:
                await self._api.drop_graph(held.graph, once("drop", held.graph))
                await self._ledger.drop_graph(owner, held.graph)
            elif rows:
                await self._ledger.turn(owner)
                await self._eraser.remove(held.graph, rows, derived.blanked(self._clock()))
            await self._ledger.drop(keys)
            return sum(any(not _retracted(row) for row in found) for found in mine.values())

    # -- the reserved graph --------------------------------------------------------------------

    async def _find(self, owner: str) -> Held | None:
        graph, _ = await self._ledger.graph(owner)
        held = None if graph is None else await self._look(graph)
        if held is not None:
            return held
        if graph is not None:
            await self._ledger.drop_graph(owner, graph)
        name = mapping.reserved_name(Entity.parse(owner))
        found = [row async for row in self._api.graphs(search=name) if row.get("name") == name]
        for row in sorted(found, key=lambda row: (str(row.get("created_at")), str(row["uuid"]))):
            held = await self._look(str(row["uuid"]))
            if held is not None:
                await self._ledger.keep_graph(owner, held.graph)
                return held
        return None

    async def _look(self, graph: str) -> Held | None:
        try:
            return await self._held(graph)
        except ZepGoneError:
            return None

    async def _held(self, graph: str) -> Held:
        keyed: dict[str, list[Json]] = {}
        others = 0
        async for row in self._api.all_edges(graph):
            key = _key(row)
            if key is None:
                others += 1
            else:
                keyed.setdefault(key, []).append(row)
        for rows in keyed.values():
            rows.sort(key=lambda row: (_retracted(row), str(row.get("created_at")), str(row["uuid"])))
        return Held(graph, keyed, others)

    async def _make(self, owner: str, edges: Mapping[str, Edge]) -> str:
        entity = Entity.parse(owner)
        for salt in ("", uuid.uuid4().hex):
            asked = once("graph", self._api.name, owner, salt, *sorted(edges))
            graph = await self._api.make_graph(mapping.reserved_name(entity), derived.description(entity), asked)
            try:
                await self._api.set_edge_types(graph, derived.edge_types(), once("types", graph, salt))
            except ZepGoneError:
                continue  # the answer was that to an earlier request, whose graph is deleted by now
            except BackendError:
                await self._undo(owner, graph)
                raise
            await self._ledger.keep_graph(owner, graph)
            return graph
        raise BackendError(self._api.name, "Zep made a graph and does not have it")

    async def _undo(self, owner: str, graph: str) -> None:
        """Leave no empty graph behind; where that fails too, the next write uses it."""
        try:
            if not (await self._held(graph)).keyed:
                await self._api.drop_graph(graph, once("undo", graph))
                await self._ledger.drop_graph(owner, graph)
        except BackendError:
            return

    async def _nodes(self, owner: str, graph: str) -> dict[str, str]:
        """The owner's node and that of its peers, made if they are not there."""
        there = {str(row.get("name")): str(row["uuid"]) async for row in self._api.nodes(graph)}
        missing = [name for name in (owner, PEERS) if name not in there]
        return there | (await self._api.add_nodes(graph, missing, once("nodes", graph, *missing)) if missing else {})

    async def _owners_of(self, keys: Sequence[str]) -> set[str]:
        """For whom keys were written that this ledger does not know: all reserved graphs are looked at."""
        wanted = set(keys)
        found: set[str] = set()
        async for row in self._api.graphs(search=mapping.RESERVED):
            owner = mapping.reserved_owner(row.get("name"))
            if owner is not None and str(owner) not in found:
                held = await self._look(str(row["uuid"]))
                if held is not None and wanted & held.keyed.keys():
                    found.add(str(owner))
        return found


def _between(edge: Edge, nodes: Mapping[str, str]) -> Edge:
    ends = {end: {"uuid": nodes[cast("dict[str, str]", edge[end])["name"]]} for end in ("source_node", "target_node")}
    return {**edge, **ends}


def _key(row: Json) -> str | None:
    attributes: Any = row.get("attributes") or {}
    return str(attributes[KEY]) if attributes.get(KEY) else None


def _retracted(row: Json) -> bool:
    return bool((row.get("attributes") or {}).get(RETRACTED))


__all__ = ["Held", "Writer"]
