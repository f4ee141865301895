"""A graph into an empty database, in bulk: the same tables, arrays and versions that single writes leave.

In:   an open store, a tenant that has a policy already, a `Graph`, notes.
Out:  rows; every node is packed and nothing waits for the worker.
Never: a second schema. Columns are those of `graph.tables`; notes go in through `cards.put`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Table, update

from collab_layer.bench.perf.graphs import Graph
from collab_layer.bench.progress import Progress
from collab_layer.graph import cards
from collab_layer.graph.adjacency import PACKED, Kind
from collab_layer.graph.cards import CardDraft
from collab_layer.graph.ids import interaction_id
from collab_layer.graph.names import ensure
from collab_layer.graph.schema import teach_planner
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import adjacency, edges, entities, interactions, tenants
from collab_layer.stages.tokens import hashed, terms
from collab_layer.types.graph import Vectors
from collab_layer.types.time import FOREVER

_ROWS = 50_000
_NOTES = 1_000


@dataclass(frozen=True, slots=True)
class Notes:
    """What the newest events said.

    Attributes:
        texts: One per event, from the newest back.
        vectors: Of each, shape (n, d).
    """

    texts: Sequence[str]
    vectors: Vectors


def fill(store: GraphStore, tenant: str, graph: Graph, notes: Notes, tell: Progress) -> None:
    """Store everything; owner i becomes `user:u<i>`, thing i `item:i<i>`."""
    with store.database.write() as connection:
        ensure(connection, tenant)
        size = graph.owners + graph.things
        values = {"next_entity": size + 1, "rev": tenants.c.rev + 1}
        connection.execute(update(tenants).where(tenants.c.tenant == tenant).values(values))
        _load(connection, entities, _entities(tenant, graph))
    with _indexed_afterwards(store, interactions, edges):
        for start in range(0, len(graph), _ROWS):
            stop = min(start + _ROWS, len(graph))
            with store.database.write() as connection:
                _load(connection, interactions, _interactions(tenant, graph, notes, start, stop))
                _load(connection, edges, _edges(tenant, graph, start, stop))
            tell(f"{len(graph):,} edges", stop, len(graph))
    with store.database.write() as connection:
        _load(connection, adjacency, _packs(tenant, graph))
    for start in range(0, len(notes.texts), _NOTES):
        with store.database.write() as connection:
            drafts = _drafts(store, graph, notes, start, min(start + _NOTES, len(notes.texts)))
            cards.put(connection, tenant, drafts, 2, int(graph.at[-1]))
        tell("notes", min(start + _NOTES, len(notes.texts)), len(notes.texts))


@contextmanager
def _indexed_afterwards(store: GraphStore, *filled: Table) -> Generator[None]:
    """Sort once at the end what would else be put in row by row, in pages all over the file."""
    indexes = [index for table in filled for index in table.indexes]
    with store.database.write() as connection:
        for index in indexes:
            index.drop(connection)
    yield
    with store.database.write() as connection:
        for index in sorted(indexes, key=lambda index: str(index.name)):
            index.create(connection)
        if store.database.sqlite:
            teach_planner(connection)


def _load(connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
    """Rows in the order of the table's columns, by the fastest way of the driver."""
    names = [column.name for column in table.columns]
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(names))
        connection.connection.executemany(  # type: ignore[attr-defined]  sqlite3 has it, and so has its proxy
            f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})", rows
        )
        return
    with connection.connection.cursor().copy(  # type: ignore[attr-defined]  psycopg's
        f"COPY {table.name} ({', '.join(names)}) FROM STDIN"
    ) as copy:
        for row in rows:
            copy.write_row(row)


def _entities(tenant: str, graph: Graph) -> Iterator[tuple[Any, ...]]:
    held = graph.activity().tolist()
    for at in range(graph.owners):
        yield tenant, 1 + at, f"user:u{at}", "user", f"u{at}", held[at], 0, 0, 1
    for at in range(graph.things):
        yield tenant, 1 + graph.owners + at, f"item:i{at}", "item", f"i{at}", 0, 0, 0, 1


def _interactions(tenant: str, graph: Graph, notes: Notes, start: int, stop: int) -> Iterator[tuple[Any, ...]]:
    last = len(graph) - 1
    for at in range(start, stop):
        text = notes.texts[last - at] if last - at < len(notes.texts) else None
        when = int(graph.at[at])
        actor, target = 1 + int(graph.owner[at]), 1 + graph.owners + int(graph.thing[at])
        parts = (tenant, 1 + at, actor, target, "liked", text, "[]", None, when, when, None, 1.0)
        yield (*parts, None, None, None, None)


def _edges(tenant: str, graph: Graph, start: int, stop: int) -> Iterator[tuple[Any, ...]]:
    part = slice(start, stop)
    columns = (graph.owner[part].tolist(), graph.thing[part].tolist(), graph.at[part].tolist())
    for at, (owner, thing, when) in enumerate(zip(*columns, strict=True), start):
        ends, common = (1 + owner, 1 + graph.owners + thing), (1.0, when, FOREVER, when, 1 + at, True)
        yield tenant, 2 * at + 1, *ends, int(Kind.INTERACTED), *common
        yield tenant, 2 * at + 2, *ends[::-1], int(Kind.HELD_BY), *common


def _packs(tenant: str, graph: Graph) -> Iterator[tuple[Any, ...]]:
    """Each node's array, newest first, as `Adjacency.fold` packs it."""
    owner, thing = 1 + graph.owner, 1 + graph.owners + graph.thing
    for src, dst, kind in ((owner, thing, Kind.INTERACTED), (thing, owner, Kind.HELD_BY)):
        order = np.lexsort((dst, -graph.at, src))
        rows = np.zeros(len(order), PACKED)
        rows["dst"], rows["kind"], rows["weight"], rows["count"] = dst[order], int(kind), 1.0, 1
        rows["last"] = graph.at[order]
        nodes, first = np.unique(src[order], return_index=True)
        for node, pack in zip(nodes.tolist(), _split(rows, first), strict=True):
            yield tenant, node, 1, pack.tobytes()


def _split(rows: NDArray[Any], first: NDArray[np.intp]) -> Iterator[NDArray[Any]]:
    for start, stop in zip(first.tolist(), [*first[1:].tolist(), len(rows)], strict=True):
        yield rows[start:stop]


def _drafts(store: GraphStore, graph: Graph, notes: Notes, start: int, stop: int) -> list[CardDraft]:
    last = len(graph) - 1
    return [
        CardDraft(
            owner=1 + int(graph.owner[last - at]),
            interaction=1 + last - at,
            backend="",
            native_id=interaction_id(1 + last - at),
            version="",
            text=notes.texts[at],
            hashed=[hashed(term) for term in terms(notes.texts[at])],
            outcome=None,
            links=(1 + graph.owners + int(graph.thing[last - at]),),
            vector=notes.vectors[at],
            embedder=store.embedder,
            at=int(graph.at[last - at]),
            thread=1 + graph.owners + int(graph.thing[last - at]),
            readable=True,
        )
        for at in range(start, stop)
    ]


__all__ = ["Notes", "fill"]
