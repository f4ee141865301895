"""What nightly upkeep reads of a reader's derived items, and how its changes are written.

In:   a tenant, a reader, a connection.
Out:  items with their marks, the events behind them, relations, deliveries; one call that
      writes a reader's changes in the caller's transaction.
Traces of what was erased are never read here, and never touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, or_, select, update

from collab_layer.graph import derived as items
from collab_layer.graph import merged
from collab_layer.graph.derived import ERASED, FORGOTTEN, Item
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import next_id
from collab_layer.graph.names import bump
from collab_layer.graph.tables import audit, deliveries, derived, lineage, relations, tenants
from collab_layer.types.facet import FacetKind

_CHUNK = 400
Stamp = tuple[tuple[str, str | None, int], ...]
"""Id, mark and end of every item of a reader."""
Pair = tuple[str, str]


@dataclass(slots=True)
class Changes:
    """What is to be written for one reader.

    Attributes:
        made: New merged items.
        marks: Item -> (superseded, expires).
        deleted: Items whose words and lineage go.
        related: (item, other) -> weight; to be written.
        unrelated: Pairs to be removed.
        queued: (item, store, since when) to be delivered.
        retracted: Items to be taken back from every store.
    """

    made: list[Item] = field(default_factory=list[Item])
    marks: dict[str, tuple[str | None, int]] = field(default_factory=dict[str, tuple[str | None, int]])
    deleted: list[str] = field(default_factory=list[str])
    related: dict[Pair, float] = field(default_factory=dict[Pair, float])
    unrelated: list[Pair] = field(default_factory=list[Pair])
    queued: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])
    retracted: list[str] = field(default_factory=list[str])

    def __bool__(self) -> bool:
        return any((self.made, self.marks, self.deleted, self.related, self.unrelated, self.queued, self.retracted))


def readers(connection: Connection, tenant: str, after: int, *, owners: int, most: int) -> list[tuple[int, int]]:
    """The next readers by id and how many items each has: at most `owners`, and `most` items after the first."""
    query = (
        select(derived.c.owner, func.count())
        .where(_kept(tenant), derived.c.owner > after)
        .group_by(derived.c.owner)
        .order_by(derived.c.owner)
        .limit(owners)
    )
    found: list[tuple[int, int]] = []
    total = 0
    for owner, count in connection.execute(query):
        total += count
        if found and total > most:
            break
        found.append((owner, count))
    return found


def reader_count(connection: Connection, tenant: str) -> int:
    """How many readers have derived items."""
    query = select(func.count(derived.c.owner.distinct())).where(_kept(tenant), derived.c.owner > 0)
    return connection.execute(query).scalar_one()


def held(connection: Connection, tenant: str, of: Stamp) -> list[tuple[Item, str | None]]:
    """The items of a stamp, each with its mark."""
    found = items.get(connection, tenant, [id_ for id_, _, _ in of])
    return [(found[id_], mark) for id_, mark, _ in of if id_ in found]


def stamp(connection: Connection, tenant: str, owner: int) -> Stamp:
    """What tells whether a reader's items are still those that were looked at."""
    d = derived.c
    rows = connection.execute(
        select(d.id, d.superseded, d.expires).where(_kept(tenant), d.owner == owner).order_by(d.id)
    )
    return tuple((row.id, row.superseded, row.expires) for row in rows)


def fence(connection: Connection, tenant: str) -> tuple[int, int]:
    """The tenant's generation and policy: raised by every erasure, and by every change of a grant."""
    row = connection.execute(select(tenants.c.generation, tenants.c.policy).where(tenants.c.tenant == tenant)).first()
    return (0, 0) if row is None else (row.generation, row.policy)


def related_to(connection: Connection, tenant: str, id_: str) -> list[str]:
    """The items that one is related to, strongest first."""
    r = relations.c
    query = select(r.other).where(r.tenant == tenant, r.item == id_).order_by(r.weight.desc(), r.other)
    return list(connection.execute(query).scalars())


def mark_of(connection: Connection, tenant: str, id_: str) -> str | None:
    """The item that stands in one's place, or a mark; None if it stands itself, or is not there."""
    query = select(derived.c.superseded).where(derived.c.tenant == tenant, derived.c.id == id_)
    return connection.execute(query).scalar()


def relations_of(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[Pair, float]:
    """The stored relations from these items."""
    r = relations.c
    found: dict[Pair, float] = {}
    for part in _chunks(ids):
        rows = connection.execute(select(r.item, r.other, r.weight).where(r.tenant == tenant, r.item.in_(part)))
        found.update(((row.item, row.other), row.weight) for row in rows)
    return found


def deliveries_of(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[Pair, tuple[str, int]]:
    """(item, store) -> state and since when, of these items."""
    d = deliveries.c
    found: dict[Pair, tuple[str, int]] = {}
    for part in _chunks(ids):
        rows = connection.execute(select(d.item, d.backend, d.state, d.at).where(d.tenant == tenant, d.item.in_(part)))
        found.update(((row.item, row.backend), (row.state, row.at)) for row in rows)
    return found


def apply(connection: Connection, tenant: str, changes: Changes, now: int) -> None:
    """Write one reader's changes; answers kept in memory are made anew."""
    items.store(connection, tenant, changes.made)
    if changes.marks:
        rows = [{"this": id_, "by": by, "until": end} for id_, (by, end) in sorted(changes.marks.items())]
        this = (derived.c.tenant == tenant) & (derived.c.id == bindparam("this"))
        written = update(derived).where(this).values(superseded=bindparam("by"), expires=bindparam("until"))
        connection.execute(written, rows)
    merged.retract(connection, tenant, changes.retracted)
    merged.send(connection, tenant, changes.queued)
    _delete(connection, tenant, changes.deleted)
    _relate(connection, tenant, changes, now)
    if changes.made or changes.marks or changes.deleted:
        bump(connection, tenant)


def note(connection: Connection, tenant: str, counts: Mapping[str, int], now: int) -> None:
    """One row of audit for a run."""
    row: dict[str, Any] = {"tenant": tenant, "id": next_id(), "at": now, "principal": None}
    connection.execute(insert(audit), [{**row, "action": "consolidate", "subject": json.dumps(counts)}])


def _delete(connection: Connection, tenant: str, ids: Sequence[str]) -> None:
    merged.unrelate(connection, tenant, ids)
    for part in _chunks(ids):
        connection.execute(delete(lineage).where(lineage.c.tenant == tenant, lineage.c.item.in_(part)))
        connection.execute(delete(derived).where(derived.c.tenant == tenant, derived.c.id.in_(part)))


def _relate(connection: Connection, tenant: str, changes: Changes, now: int) -> None:
    if changes.unrelated:
        gone = (
            (relations.c.tenant == tenant)
            & (relations.c.item == bindparam("one"))
            & (relations.c.other == bindparam("two"))
        )
        connection.execute(delete(relations).where(gone), [{"one": one, "two": two} for one, two in changes.unrelated])
    rows = [
        {"tenant": tenant, "item": item, "other": other, "weight": weight, "at": now}
        for (item, other), weight in sorted(changes.related.items())
    ]
    upsert(connection, relations, rows, update=("weight", "at"))


def _kept(tenant: str) -> ColumnElement[bool]:
    """All but notices, which end by themselves, and traces of what was erased; of distilled facets those stay."""
    d = derived.c
    own = d.kind != FacetKind.NOTICE.value
    return (d.tenant == tenant) & own & or_(d.superseded.is_(None), d.superseded.not_in((ERASED, FORGOTTEN)))


def _chunks(ids: Iterable[str]) -> Iterable[list[str]]:
    listed = list(ids)
    return (listed[start : start + _CHUNK] for start in range(0, len(listed), _CHUNK))
