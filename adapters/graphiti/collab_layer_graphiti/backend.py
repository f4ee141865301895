"""Graphiti behind the layer's port: facts with a time axis, in one graph with a group per owner.

In:   refs, owners, queries, times.
Out:  records; derived items as facts in reserved groups where that was asked for.
      Owners' own facts are read, never rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from graphiti_core.embedder.client import EmbedderClient

from collab_layer.errors import BackendError, InputError, UnsupportedError
from collab_layer.ports.backend import Can, Page, require
from collab_layer.ports.clock import Clock, system_clock
from collab_layer.ports.stated_fact import check_order
from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
from collab_layer.types.health import PartHealth
from collab_layer.types.time import utc
from collab_layer.types.update import Receipt, Update
from collab_layer_graphiti import cypher, derived, facts, mapping, words
from collab_layer_graphiti.client import Graph
from collab_layer_graphiti.embedder import GraphitiEmbedder
from collab_layer_graphiti.erasing import erase_facts
from collab_layer_graphiti.facts import Fact
from collab_layer_graphiti.place import Place, place
from collab_layer_graphiti.reading import Reader
from collab_layer_graphiti.times import window

NAME = "graphiti"
BATCH = 200
"""Facts written by one query."""
_SPARE = 4
"""How many times k is fetched in a search, since what is fetched is checked again."""
_RRF = 60.0


class GraphitiBackend:
    """Facts of a Graphiti graph on FalkorDB, or on Neo4j by the same driver port.

    May be called from any thread and any loop: the driver lives on a loop of its own. It
    connects at the first call, and again after an outage.

    Args:
        where: `falkor://host:port`, `bolt://…`, or a `Place` with a driver of your own.
        graph: The FalkorDB graph that holds all groups, or the Neo4j database. One per tenant.
        name: Unique within the layer; part of every ref.
        username: If it is not in the URL.
        password: If it is not in the URL.
        write: Promise `WRITE`: derived items go into groups that begin with `collab_for_`.
        embedder: Graphiti's, for this store alone; adds `EMBED`, and vectors to `search`.
        timeout_s: For one call, > 0.
        clock: What the store takes for now.

    Raises:
        InputError: A URL of another kind, or a setting out of range.
    """

    def __init__(
        self,
        where: str | Place,
        *,
        graph: str = "default_db",
        name: str = NAME,
        username: str | None = None,
        password: str | None = None,
        write: bool = False,
        embedder: EmbedderClient | None = None,
        timeout_s: float = 10.0,
        clock: Clock = system_clock,
    ) -> None:
        if timeout_s <= 0:
            raise InputError(f"timeout_s must be above 0, not {timeout_s}")
        if not graph:
            raise InputError("name the graph; Graphiti's own is `default_db`")
        if isinstance(where, str):
            where = place(where, graph=graph, username=username, password=password, timeout_s=timeout_s)
        self._name, self._clock = name, clock
        self._graph = Graph(where, name, timeout_s)
        self._embedder = None if embedder is None else GraphitiEmbedder(embedder, self._graph, name)
        self._can = frozenset({Can.SEARCH, Can.AS_OF, Can.LIST_OWNERS})
        falkor = not where.where.startswith(("bolt", "neo4j"))
        # Neither was run on Neo4j, where a MERGE without a constraint may store twice.
        self._can |= {Can.ERASE} if falkor else set[Can]()
        self._can |= ({Can.WRITE, Can.DEDUPE} if falkor else {Can.WRITE}) if write else set[Can]()
        self._can |= set[Can]() if embedder is None else {Can.EMBED}
        self._reader = Reader(name)

    @property
    def name(self) -> str:
        """Part of every ref."""
        return self._name

    @property
    def can(self) -> frozenset[Can]:
        """`WRITE` if asked for, `EMBED` with an embedder. Never `WATCH`: Graphiti keeps no trace of a deletion."""
        return self._can

    @property
    def embedder(self) -> GraphitiEmbedder:
        """The embedder it was given.

        Raises:
            UnsupportedError: None was.
        """
        if self._embedder is None:
            raise UnsupportedError(self._name, Can.EMBED)
        return self._embedder

    # -- reading -------------------------------------------------------------------------

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """The facts that still exist, ended ones too; `valid_to` says when they ended."""
        ids = list(dict.fromkeys(ref.id for ref in refs if ref.backend == self._name and ref.id))
        rows = await self._graph.ask(cypher.READ, ids=ids) if ids else []
        return [record for record, _ in self._reader.records(rows).values()]

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """An owner's facts by id, ended ones too; a page may be short where facts cannot be read."""
        group = mapping.group_of(owner)
        size = max(1, limit)
        rows = await self._graph.ask(cypher.PAGE, group=group, after=after or "", limit=size + 1)
        page = rows[:size]
        more = str(page[-1]["uuid"]) if len(rows) > size else None
        return Page([record for record, _ in self._reader.records(page).values()], more)

    async def records_as_of(self, owner: Entity, at: datetime, /) -> list[MemoryRecord]:
        """The owner's facts that held at a time, by what is known today; oldest first."""
        when = utc(at)
        rows = await self._graph.ask(cypher.AS_OF, group=mapping.group_of(owner), **window(when))
        held = [record for record, span in self._reader.records(rows).values() if span.holds(when)]
        return sorted(held, key=lambda record: (str(record.at), record.ref.id))

    async def search(
        self, owner: Entity, query: str, /, *, k: int = 10, at: datetime | None = None
    ) -> list[MemoryRecord]:
        """The owner's best facts for a query that hold now, or held at a time.

        Words count by their stems, in English and Russian. With an embedder its nearest
        facts count as much, by the ranks in both lists.
        """
        when = self._clock() if at is None else utc(at)
        wanted = words.stems(query)
        if not wanted or k < 1:
            return []
        asked: dict[str, Any] = {"group": mapping.group_of(owner), "limit": k * _SPARE, **window(when)}
        found = self._reader.held(await self._graph.ask(cypher.FIND, stems=wanted, **asked), when)
        scored = {record.ref.id: words.score(wanted, record.text) for record in found}
        named = sorted(found, key=lambda record: (-scored[record.ref.id], len(record.text), record.ref.id))
        named = [record for record in named if scored[record.ref.id] > 0]
        if self._embedder is None:
            return [_with_score(record, scored[record.ref.id]) for record in named[:k]]
        vector = (await self._embedder.lists([query]))[query]
        near = await self._graph.ask(cypher.near_vector(await self._graph.cosine()), **_vectored(asked, vector))
        return _joined(named, self._reader.held(near, when))[:k]

    async def owners(self) -> list[Entity]:
        """Every owner with a fact that holds now."""
        now = self._clock()
        steady = [row["group_id"] for row in await self._graph.ask(cypher.STEADY, **window(now))]
        found = {owner for group in steady if (owner := self._reader.owner(group)) is not None}
        some = self._reader.records(await self._graph.ask(cypher.CLOSE, known=steady, **window(now))).values()
        found.update(record.owner for record, span in some if span.holds(now))
        for owner in {record.owner for record, _ in some} - found:
            if await self.records_as_of(owner, now):
                found.add(owner)
        return sorted(found)

    async def health(self) -> PartHealth:
        """Ask the graph; says degraded while it holds facts that cannot be read."""
        try:
            rows = await self._graph.ask(cypher.ANY)
        except BackendError as error:
            return PartHealth(name=self._name, condition="down", detail=error.why)
        condition = "degraded" if self._reader.unread.fields else "ok" if rows else "empty"
        return PartHealth(name=self._name, condition=condition, detail=self._reader.complaint())

    async def aclose(self) -> None:
        """Close the driver and end its thread."""
        await self._graph.aclose()

    # -- writing -------------------------------------------------------------------------

    async def write(self, updates: Sequence[Update], /) -> list[Receipt]:
        """Store each update once under its id, in its owner's reserved group; 200 at a time, all or none.

        Raises:
            InputError: One cannot be stored; then none was.
        """
        require(self, Can.WRITE)
        vectors = await self._vectors([update.text for update in updates])
        rows = [derived.row(update, self._clock(), vectors.get(update.text)) for update in updates]
        await self._put(rows)
        return [
            Receipt(key=update.id, native_id=derived.native_id(update.id), backend=self._name) for update in updates
        ]

    async def retract(self, keys: Sequence[str], /) -> int:
        """Delete what was written under the keys, and nodes that nothing hangs on any more."""
        require(self, Can.WRITE)
        ids = [derived.native_id(key) for key in dict.fromkeys(keys)]
        if not ids or not await self._graph.ask(cypher.READ, ids=ids):
            return 0  # asked first: a write would make a graph that is not there
        (gone,) = await self._graph.tell(cypher.RETRACT, ids=ids)
        await self._graph.tell(cypher.SWEEP, groups=gone["groups"])
        return len(gone["ids"])

    async def erase(self, refs: Sequence[MemoryRef], /) -> int:
        """Remove facts with what they were taken from; see `erase_facts`."""
        require(self, Can.ERASE)
        ids = list(dict.fromkeys(ref.id for ref in refs if ref.backend == self._name and ref.id))
        return await erase_facts(self._graph, ids) if ids else 0

    async def remember(self, owner: Entity, stated: Sequence[Fact]) -> list[MemoryRef]:
        """Store facts of an owner itself, each once; not part of the port, and no language model is asked.

        Raises:
            InputError: One cannot be stored; then none was.
        """
        now = self._clock()
        vectors = await self._vectors([fact.text for fact in stated])
        rows = [facts.row(owner, fact, now, vectors.get(fact.text)) for fact in stated]
        await self._put(rows)
        return [MemoryRef(backend=self._name, id=row["fact"]["uuid"]) for row in rows]

    async def end(self, refs: Sequence[MemoryRef], at: datetime) -> int:
        """Close facts of owners at a time, as when another took their place; how many there were.

        Raises:
            InputError: One would end before it begins; then none was changed.
        """
        when, known = utc(at), await self.read(refs)
        for record in known:
            if record.at is not None:
                check_order(record.at, when)
        if not known:
            return 0
        ids = [record.ref.id for record in known]
        (ended,) = await self._graph.tell(cypher.END, ids=ids, at=when, now=self._clock())
        return len(ended["ids"])

    # -- inside --------------------------------------------------------------------------

    async def _put(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if not rows:
            return
        await self._graph.index()
        query = cypher.put(await self._graph.vector("row.vector"))
        once = list({row["fact"]["uuid"]: row for row in reversed(rows)}.values())[::-1]  # of doubles the first
        for start in range(0, len(once), BATCH):
            await self._graph.tell(query, rows=once[start : start + BATCH])

    async def _vectors(self, texts: Sequence[str]) -> dict[str, list[float]]:
        if self._embedder is None:
            return {}
        return await self._embedder.lists(list(dict.fromkeys(text for text in texts if text.strip())))


def _vectored(asked: Mapping[str, Any], vector: list[float]) -> dict[str, Any]:
    return {**asked, "vector": vector}


def _with_score(record: MemoryRecord, score: float) -> MemoryRecord:
    return record.model_copy(update={"score": score})


def _joined(*lists: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Several rankings in one, by reciprocal ranks."""
    scores: dict[str, float] = {}
    records: dict[str, MemoryRecord] = {}
    for ranked in lists:
        for rank, record in enumerate(ranked):
            scores[record.ref.id] = scores.get(record.ref.id, 0.0) + 1 / (_RRF + rank)
            records[record.ref.id] = record
    order = sorted(records, key=lambda id_: (-scores[id_], id_))
    return [_with_score(records[id_], scores[id_]) for id_ in order]


__all__ = ["BATCH", "NAME", "GraphitiBackend"]
