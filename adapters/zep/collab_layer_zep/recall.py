"""What owners remember, read from Zep: by ref, page by page, as of a time, by a query.

In:   refs, owners, times, queries.
Out:  records.

A graph that is gone is looked for once more: a user who was deleted and made again has another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from collab_layer.ports.backend import Page
from collab_layer.types.entity import Entity, MemoryRecord
from collab_layer_zep import pages
from collab_layer_zep.client import Api, Json
from collab_layer_zep.mapping import Ref
from collab_layer_zep.places import Places
from collab_layer_zep.reading import Reader
from collab_layer_zep.refusals import ZepGoneError
from collab_layer_zep.times import window
from collab_layer_zep.together import each
from collab_layer_zep.voices import Voices

IDS: Final = 50
"""Edges asked for at once."""
SEARCH_PAGES: Final = 4
T = TypeVar("T")


class Recall:
    """Reads one project.

    Args:
        api: The project.
        places: Who has which graph.
        reader: Reads edges.
        voices: Tells whose words facts rest on.
    """

    def __init__(self, api: Api, places: Places, reader: Reader, voices: Voices) -> None:
        self._api, self._places, self._reader, self._voices = api, places, reader, voices

    async def read(self, found: Mapping[str, Sequence[Ref]]) -> list[MemoryRecord]:
        """The facts that still exist."""

        async def of_graph(graph: str) -> list[MemoryRecord]:
            owner = await self._places.owner(graph)
            rows = [] if owner is None else await self.rows(graph, found[graph])
            return [] if owner is None else await self._records(owner, graph, rows)

        return [record for records in await each(of_graph, found) for record in records]

    async def rows(self, graph: str, refs: Sequence[Ref]) -> list[Json]:
        """The edges that still exist."""
        rows: list[Json] = []
        for start in range(0, len(refs), IDS):
            wanted = {ref.edge for ref in refs[start : start + IDS]}
            try:
                page = await self._api.edges(graph, edges=sorted(wanted))
            except ZepGoneError:
                return rows
            rows += [row for row in page.rows if str(row["uuid"]) in wanted]
        return rows

    async def page(self, owner: Entity, after: str | None, limit: int) -> Page:
        """An owner's facts by graph and id."""
        start, _, mark = (after or "").partition("/")

        async def read(graphs: Sequence[str]) -> Page:
            records: list[MemoryRecord] = []
            size = max(1, limit)
            for graph in [graph for graph in graphs if graph >= start]:
                if size <= 0:
                    return Page(records, f"{graph}/")
                rows, more = await self._part(graph, pages.mark_of(mark if graph == start else ""), size)
                records += await self._records(owner, graph, rows)
                size -= len(rows)
                if more is not None:
                    return Page(records, f"{graph}/{more}")
            return Page(records, None)

        return await self._of(owner, read, Page([], None))

    async def held(self, owner: Entity, at: datetime) -> list[MemoryRecord]:
        """The owner's facts that held at an aware time, oldest first."""

        async def read(graphs: Sequence[str]) -> list[MemoryRecord]:
            found: list[MemoryRecord] = []
            for graph in graphs:
                rows = [row async for row in self._api.all_edges(graph, at=window(at))]
                found += self._reader.held(owner, graph, await self._voices.own(owner, graph, rows), at)
            return sorted(found, key=lambda record: (str(record.at), record.ref.id))

        return await self._of(owner, read, [])

    async def search(self, owner: Entity, query: str, k: int, at: datetime) -> list[MemoryRecord]:
        """The owner's best facts for a query that held at an aware time."""

        async def read(graphs: Sequence[str]) -> list[MemoryRecord]:
            found = [record for graph in graphs for record in await self._found(owner, graph, query, k, at)]
            return sorted(found, key=lambda record: (-(record.score or 0.0), record.ref.id))[:k]

        return await self._of(owner, read, [])

    async def owners(self) -> list[Entity]:
        """Every owner with a fact."""
        places = [place async for place in self._places.all()]
        known = await each(self._has_any, places)
        return sorted({owner for (owner, _), any_ in zip(places, known, strict=True) if any_})

    async def _records(self, owner: Entity, graph: str, rows: Sequence[Json]) -> list[MemoryRecord]:
        own = await self._voices.own(owner, graph, rows)
        return [record for record, _ in self._reader.records(owner, graph, own).values()]

    async def _of(self, owner: Entity, read: Callable[[Sequence[str]], Awaitable[T]], nothing: T) -> T:
        for _ in range(2):
            try:
                return await read(await self._places.of(owner))
            except ZepGoneError:
                self._places.forget(owner)
        return nothing

    async def _found(self, owner: Entity, graph: str, query: str, k: int, at: datetime) -> list[MemoryRecord]:
        found: list[MemoryRecord] = []
        cursor: str | None = None
        for _ in range(SEARCH_PAGES):
            page = await self._api.search(graph, query, cursor, at=window(at))
            found += self._reader.held(owner, graph, await self._voices.own(owner, graph, page.rows), at)
            cursor = page.cursor
            if cursor is None or len(found) >= k:
                break
        return [_scored(record, place) for place, record in enumerate(found)]

    async def _part(self, graph: str, mark: pages.Mark, limit: int) -> tuple[list[Json], pages.Mark | None]:
        async def fetch(cursor: str | None) -> tuple[list[Json], str | None]:
            return await self._api.edges(graph, cursor)

        return await pages.after(fetch, mark, limit)

    async def _has_any(self, place: tuple[Entity, str]) -> bool:
        owner, graph = place
        mark: pages.Mark | None = pages.Mark()
        while mark is not None:
            try:
                rows, mark = await self._part(graph, mark, IDS)
            except ZepGoneError:
                return False
            if await self._records(owner, graph, rows):
                return True
        return False


def _scored(record: MemoryRecord, place: int) -> MemoryRecord:
    """With the place in Zep's own order where it gave no score."""
    return record if record.score is not None else record.model_copy(update={"score": 1.0 / (1 + place)})


__all__ = ["Recall"]
