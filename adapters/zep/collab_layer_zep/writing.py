"""Derived items in the reserved graph of their owner, each key once, and out of it again.

In:   updates; keys.
Out:  receipts; how many there were.

One writer at a time works on an owner, by a claim in the ledger. It looks at what is there
before it adds, and again after: what another ledger's writer added at the same time is then
seen twice, and the newer of the two goes. A graph that holds nothing any more is deleted.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

from collab_layer.errors import BackendError
from collab_layer.ports.clock import Clock
from collab_layer.types.update import Receipt, Update
from collab_layer_zep import derived
from collab_layer_zep.client import PAGE, VISIBLE_S, Api, Json
from collab_layer_zep.derived import once
from collab_layer_zep.erasing import Eraser
from collab_layer_zep.facts import Edge
from collab_layer_zep.ledger import Item, Ledger
from collab_layer_zep.mapping import Ref
from collab_layer_zep.shelf import Held, Shelf
from collab_layer_zep.together import each


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
        self._shelf = Shelf(api, ledger)

    async def write(self, updates: Sequence[Update]) -> list[Receipt]:
        """Store each update under its id; what its key has already is left alone.

        Raises:
            InputError: One of them cannot be stored; none was.
        """
        now = self._clock()
        edges = {update.id: derived.edge(update, now) for update in reversed(updates)}  # of two the first counts
        owners = {update.id: str(update.owner) for update in reversed(updates)}
        items = await self._elsewhere(owners)
        wanted: dict[str, dict[str, Edge]] = {}
        for key, owner in owners.items():
            if key not in items:
                wanted.setdefault(owner, {})[key] = edges[key]
        for found in await each(lambda owner: self._put(owner, wanted[owner]), sorted(wanted)):
            items |= found
        return [_receipt(items[update.id], self._api.name) for update in updates]

    async def retract(self, keys: Sequence[str]) -> int:
        """Take out what was written under keys, at once for whoever reads the graph; how many there were."""
        known = await self._ledger.items(keys)
        owners = {item.owner for item in known.values()}
        if len(known) < len(set(keys)):
            owners |= await self._shelf.owners_of(key for key in keys if key not in known)
        return sum(await each(lambda owner: self._take_back(owner, set(keys)), sorted(owners)))

    async def _elsewhere(self, owners: Mapping[str, str]) -> dict[str, Item]:
        """Keys that were written for somebody else, and are still there: they stay as they are."""
        known = await self._ledger.items(list(owners))
        moved = [item for item in known.values() if item.owner != owners[item.key]]
        held = [await self._api.edge(item.graph, item.edge) for item in moved]
        return {item.key: item for item, edge in zip(moved, held, strict=True) if edge is not None}

    async def _put(self, owner: str, edges: Mapping[str, Edge]) -> dict[str, Item]:
        async with self._ledger.alone(f"derived {owner}", self._wait_s):
            held = await self._shelf.look(owner)
            await self._eraser.finish(held.blank)
            missing = {key: edge for key, edge in edges.items() if key not in held.keyed}
            if missing:
                held = await self._add(owner, held, missing)
            items = {key: _item(key, owner, held.keyed[key][0]) for key in edges}
            await self._ledger.keep(items.values())
            return items

    async def _add(self, owner: str, held: Held, edges: Mapping[str, Edge]) -> Held:
        made = None if held.graphs else await self._shelf.make(owner, sorted(edges))
        try:
            after = await self._stored(owner, made or held.graphs[0], edges)
        except BackendError:
            if made is not None:
                await self._shelf.undo(owner, made)
            raise
        doubles = [row for rows in after.keyed.values() for row in rows[1:]]
        await self._remove(doubles)
        return after

    async def _stored(self, owner: str, graph: str, edges: Mapping[str, Edge]) -> Held:
        nodes = await self._shelf.nodes(owner, graph)
        _, epoch = await self._ledger.graph(owner)
        turn, missing = str(epoch), dict(edges)
        for _ in range(2):
            await self._send(graph, turn, {key: _between(edge, nodes) for key, edge in missing.items()})
            held = await self._seen(owner, missing)
            missing = {key: edge for key, edge in missing.items() if key not in held.keyed}
            if not missing:
                return held
            # The answer was that to an earlier request, whose edges are deleted by now.
            turn = f"{await self._ledger.turn(owner)} {uuid.uuid4().hex}"
        raise BackendError(self._api.name, f"Zep says that it stored {len(missing)} items, and does not show them")

    async def _send(self, graph: str, turn: str, edges: Mapping[str, Edge]) -> None:
        keys = sorted(edges)
        for start in range(0, len(keys), PAGE):
            part = keys[start : start + PAGE]
            await self._api.add_edges(graph, [edges[key] for key in part], once("edges", graph, turn, *part))

    async def _seen(self, owner: str, wanted: Collection[str]) -> Held:
        for pause in VISIBLE_S:
            held = await self._shelf.look(owner)
            if all(key in held.keyed for key in wanted):
                return held
            await asyncio.sleep(pause)
        return await self._shelf.look(owner)

    async def _take_back(self, owner: str, keys: set[str]) -> int:
        async with self._ledger.alone(f"derived {owner}", self._wait_s):
            held = await self._shelf.look(owner)
            mine = {key: rows for key, rows in held.keyed.items() if key in keys}
            empty = held.empty(mine) if mine or held.blank else []
            await self._ledger.turn(owner)
            for graph in empty:
                await self._shelf.drop(owner, graph)
            await self._remove([row for rows in mine.values() for row in rows if str(row["graph_uuid"]) not in empty])
            await self._eraser.finish([row for row in held.blank if str(row["graph_uuid"]) not in empty])
            await self._ledger.drop(keys)
            return len(mine)

    async def _remove(self, rows: Iterable[Json]) -> None:
        by_graph: dict[str, list[Json]] = {}
        for row in rows:
            by_graph.setdefault(str(row["graph_uuid"]), []).append(row)
        for graph, some in by_graph.items():
            await self._eraser.remove(graph, some, derived.blanked(self._clock()))


def _between(edge: Edge, nodes: Mapping[str, str]) -> Edge:
    ends = {end: {"uuid": nodes[cast("dict[str, str]", edge[end])["name"]]} for end in ("source_node", "target_node")}
    return {**edge, **ends}


def _item(key: str, owner: str, row: Json) -> Item:
    return Item(key, owner, str(row["graph_uuid"]), str(row["uuid"]))


def _receipt(item: Item, store: str) -> Receipt:
    return Receipt(key=item.key, native_id=str(Ref(item.graph, item.edge)), backend=store)


__all__ = ["Writer"]
