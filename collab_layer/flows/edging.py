"""Edges of some claims' events, in the caller's transaction.

In:   events with the entities that their words name.
Out:  an edge to each, for as long as the event holds; those that an earlier reading of the same words
      made and this one does not are gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, or_, select, update

from collab_layer.flows.pending import Loaded, Pending, Worded
from collab_layer.graph.adjacency import Adjacency, Kind, pick
from collab_layer.graph.among import one_of
from collab_layer.graph.engine import change, insert
from collab_layer.graph.lean import Lean
from collab_layer.graph.tables import edges, entities, interactions
from collab_layer.graph.writer import edge_rows
from collab_layer.types.entity import Entity

_CHUNK = 400
_MENTIONS = (int(Kind.MENTIONS), int(Kind.MENTIONED_BY))
_E = edges.c
_HELD = Lean(
    select(_E.id, _E.src, _E.dst, _E.kind, _E.valid_to, _E.folded, _E.interaction).where(
        _E.tenant == bindparam("tenant"),
        one_of(_E.interaction, "numbers"),
        or_(*(_E.kind == kind for kind in _MENTIONS)),
    )
)


def links(worded: Worded, ids: Mapping[Entity, int]) -> list[tuple[int, ...]]:
    """What each event refers to: explicit links first, then what its words name."""
    return [
        tuple(dict.fromkeys([*_said(event), *(ids[topic] for topic, _ in topics)])) for event, topics in worded.told
    ]


def write(
    connection: Connection,
    adjacency: Adjacency,
    parts: Sequence[tuple[Loaded, Sequence[tuple[int, ...]], Sequence[int]]],
    now: int,
    *,
    touched: Collection[int],
    fold_at: int,
) -> None:
    """Bring edges to the links of events: of each claim all links, and the rows that are to be written.

    The arrays of the claims' own entities are packed with them, and of those touched that have `fold_at` deltas.
    """
    tenant = parts[0][0].claim.tenant
    # Records that are read again have edges of an earlier reading; so have those of a worker that died over them.
    worded = [loaded.events[row].id for loaded, _, rows in parts for row in rows if loaded.events[row].text is not None]
    held = _held(connection, tenant, worded)
    lines: list[dict[str, Any]] = []
    gone: list[Any] = []
    for loaded, linked, rows in parts:
        entity = loaded.claim.entity
        for row in rows:
            event, before = loaded.events[row], _by_end(held.get(loaded.events[row].id, ()), entity)
            for id_ in linked[row]:
                if id_ not in before and id_ not in _said(event) and id_ != entity:
                    lines += edge_rows(
                        tenant, entity, id_, Kind.MENTIONS, weight=1.0, at=event.at, now=now,
                        interaction=event.id, valid_to=event.valid_to,
                    )  # fmt: skip
            gone += [edge for other, both in before.items() if other not in linked[row] for edge in both]
    own = frozenset(loaded.claim.entity for loaded, _, _ in parts)
    nodes = sorted(own.union(touched))
    adjacency.fold(connection, tenant, nodes, at_least=fold_at, always=own, now=now, new=lines)
    insert(connection, edges, lines)
    _remove(connection, adjacency, tenant, gone)


def pin(connection: Connection, loaded: Sequence[Loaded]) -> None:
    """Note which version a reference without one was found to mean."""
    rows = [{"number": event.id, "found": event.version} for one in loaded for event in one.events if event.pinned]
    if rows:
        here = (interactions.c.tenant == loaded[0].claim.tenant) & (interactions.c.id == bindparam("number"))
        connection.execute(update(interactions).where(here).values(version=bindparam("found")), rows)


def count_degrees(
    connection: Connection, adjacency: Adjacency, tenant: str, nodes: Sequence[int], now: int, rev: int
) -> None:
    """Note how many distinct targets each of some entities has."""
    packed = adjacency.edges(connection, tenant, nodes, now=now)
    rows: list[dict[str, Any]] = []
    for node in nodes:
        held = pick(packed[node], Kind.INTERACTED, Kind.MENTIONS)
        rows.append({"tenant": tenant, "id": node, "degree": len(held), "rev": rev})
    change(connection, entities, rows, key=("tenant", "id"))


def _held(connection: Connection, tenant: str, numbers: Sequence[int]) -> dict[int, list[Any]]:
    """Mentions of these events, by interaction: edges in both directions."""
    found: dict[int, list[Any]] = {}
    for start in range(0, len(numbers), _CHUNK):
        given = {"tenant": tenant, "numbers": numbers[start : start + _CHUNK]}
        for row in _HELD.rows(connection, given):
            found.setdefault(row.interaction, []).append(row)
    return found


def _by_end(rows: Iterable[Any], entity: int) -> dict[int, list[Any]]:
    """Edges of one event by their other end."""
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row.dst if row.src == entity else row.src, []).append(row)
    return found


def _said(event: Pending) -> tuple[int, ...]:
    """What the caller linked himself; those edges were written when the event was told."""
    return (*event.links, *([event.target] if event.target else []))


def _remove(connection: Connection, adjacency: Adjacency, tenant: str, rows: Sequence[Any]) -> None:
    for start in range(0, len(rows), _CHUNK):
        part = edges.c.id.in_([row.id for row in rows[start : start + _CHUNK]])
        connection.execute(delete(edges).where(edges.c.tenant == tenant, part))
    adjacency.ended(connection, tenant, rows)
