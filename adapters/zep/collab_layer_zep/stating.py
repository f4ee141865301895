"""Facts that an owner states itself: added as they are, ended by an attribute, each key once.

In:   an owner and facts; refs.
Out:  refs; how many there were.

No language model is asked, and nothing of Zep's own is merged or retired. Everything is checked
before anything is sent; nodes that were made for a batch that Zep refuses are deleted again.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from collab_layer.errors import BackendError
from collab_layer.ports.clock import Clock
from collab_layer.ports.stated_fact import check_order
from collab_layer.types.entity import Entity
from collab_layer_zep import facts, mapping
from collab_layer_zep.client import PAGE, VISIBLE_S, Api, Json
from collab_layer_zep.derived import once
from collab_layer_zep.facts import Edge, Fact
from collab_layer_zep.ledger import Item, Ledger
from collab_layer_zep.mapping import Ref
from collab_layer_zep.places import Places
from collab_layer_zep.reading import Reader
from collab_layer_zep.refusals import ZepGoneError
from collab_layer_zep.times import ENDED


class Stater:
    """States facts for one store.

    Args:
        api: The project.
        ledger: Which key is which edge.
        places: Who has which graph.
        reader: Reads edges.
        clock: What the store takes for now.
        wait_s: For another writer's work on the same owner.
    """

    def __init__(self, api: Api, ledger: Ledger, places: Places, reader: Reader, clock: Clock, wait_s: float) -> None:
        self._api, self._ledger, self._places, self._reader = api, ledger, places, reader
        self._clock, self._wait_s = clock, wait_s

    async def state(self, owner: Entity, stated: Sequence[Fact]) -> list[Ref]:
        """Store facts; where each lies, in order.

        Raises:
            InputError: One of them would end before it begins; none is stored.
            ZepGoneError: Zep has no user or graph for the owner.
        """
        now = self._clock()
        edges = {facts.key_of(owner, fact): facts.edge(owner, fact, now) for fact in reversed(stated)}
        if not edges:
            return []
        graphs = await self._places.of(owner)
        if not graphs:
            raise ZepGoneError(self._api.name, f"Zep has no memory of `{owner}`; {_how_to_make(owner)} first")
        async with self._ledger.alone(f"own {owner}", self._wait_s):
            known = await self._known(list(edges))
            missing = {key: edge for key, edge in edges.items() if key not in known}
            if missing:
                known |= await self._add(owner, graphs[0], missing)
        return [known[facts.key_of(owner, fact)] for fact in stated]

    async def end(self, found: Mapping[str, list[Ref]], at: datetime) -> int:
        """Say of facts that they hold no longer from a time on; how many there were.

        Raises:
            InputError: One of them begins later; none is changed.
        """
        ending: list[Ref] = []
        for graph, refs in found.items():
            owner = await self._places.owner(graph)
            if owner is None:
                continue
            page = await self._api.edges(graph, edges=[ref.edge for ref in refs])
            for record, span in self._reader.records(owner, graph, page.rows).values():
                check_order(span.begin, at)
                ref = mapping.ref_of(record.ref.id)
                ending += [ref] if ref is not None else []
        done = [await self._end(ref, at) for ref in ending]
        return sum(done)

    async def _end(self, ref: Ref, at: datetime) -> bool:
        attributes = {ENDED: at.isoformat()}
        return await self._api.change_edge(ref.graph, ref.edge, attributes=attributes)

    async def _known(self, keys: Sequence[str]) -> dict[str, Ref]:
        """Keys of this ledger whose facts are still there."""
        held: dict[str, Ref] = {}
        for key, item in (await self._ledger.items(keys)).items():
            if await self._api.edge(item.graph, item.edge) is not None:
                held[key] = Ref(item.graph, item.edge)
        return held

    async def _add(self, owner: Entity, graph: str, edges: Mapping[str, Edge]) -> dict[str, Ref]:
        keys, added = sorted(edges), dict[str, Ref]()
        for start in range(0, len(keys), PAGE):
            part = keys[start : start + PAGE]
            nodes, new = await self._nodes(owner, graph, [edges[key] for key in part])
            sent = [_between(edges[key], nodes) for key in part]
            try:
                stored = await self._send(graph, sent, *part, *sorted(nodes.values()))
            except BackendError:
                await self._undo(graph, new)
                raise
            refs = {key: Ref(graph, str(row["uuid"])) for key, row in zip(part, stored, strict=True)}
            await self._ledger.keep(Item(key, str(owner), ref.graph, ref.edge) for key, ref in refs.items())
            added |= refs
        return added

    async def _send(self, graph: str, edges: Sequence[Edge], *parts: str) -> list[Json]:
        for salt in ("", uuid.uuid4().hex):
            stored = await self._api.add_edges(graph, edges, once("facts", graph, salt, *parts))
            if await self._shown(graph, [str(row["uuid"]) for row in stored]):
                return stored
            # The answer was that to an earlier request, whose facts are deleted by now.
        raise BackendError(self._api.name, f"Zep says that it stored {len(edges)} facts, and does not show them")

    async def _shown(self, graph: str, edges: Sequence[str]) -> bool:
        for pause in VISIBLE_S:
            if len((await self._api.edges(graph, edges=edges)).rows) == len(edges):
                return True
            await asyncio.sleep(pause)
        return False

    async def _nodes(self, owner: Entity, graph: str, edges: list[Edge]) -> tuple[dict[str, str], list[str]]:
        """The nodes that edges hang between, by name, and which of them are new."""
        found: dict[str, str] = {}
        for name in facts.nodes_of(edges):
            node = await self._own_node(graph) if name == owner.id and owner.kind == mapping.USER else None
            node = node or await self._api.node_named(graph, name)
            if node is not None:
                found[name] = node
        missing = [name for name in facts.nodes_of(edges) if name not in found]
        made = await self._api.add_nodes(graph, missing) if missing else {}
        return found | made, list(made.values())

    async def _own_node(self, graph: str) -> str | None:
        held = await self._api.graph(graph)
        user = None if held is None else held.get("user_uuid")
        return await self._api.node_of_user(str(user)) if user else None

    async def _undo(self, graph: str, nodes: Sequence[str]) -> None:
        """Delete nodes that nothing hangs on yet; where that fails too, the next batch finds them by name."""
        try:
            for node in nodes:
                await self._api.drop_node(graph, node)
        except BackendError:
            return


def _between(edge: Edge, nodes: Mapping[str, str]) -> Edge:
    ends = {end: {"uuid": nodes[cast("dict[str, str]", edge[end])["name"]]} for end in ("source_node", "target_node")}
    return {**edge, **ends}


def _how_to_make(owner: Entity) -> str:
    user_id = mapping.user_id_of(owner)
    if user_id is not None:
        return f"make the user with zep.user.create(user_id={user_id!r})"
    return f"make the graph with zep.graph.create(name={str(owner)!r})"


__all__ = ["Stater"]
