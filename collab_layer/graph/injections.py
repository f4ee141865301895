"""The injection log: which items went into which answer.

In:   rows, in the caller's transaction; ids of what is being erased.
Out:  who received an item; the answers of a reader, newest first.
Ids only, never words. Rows go with their reader, with their items, and with time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, func, or_, select

from collab_layer.graph.aging import Log
from collab_layer.graph.among import among, one_of, pages
from collab_layer.graph.derived import ERASED, FORGOTTEN
from collab_layer.graph.engine import insert, upsert
from collab_layer.graph.ids import next_id, number_of, pair_of
from collab_layer.graph.lean import Lean
from collab_layer.graph.tables import cards, derived, edges, foreign_facets, injected, injections, interactions

LOG = Log(injections, injected.c.injection)
_CHUNK = 400


def _there(table: Table, *only: ColumnElement[bool]) -> Lean:
    c = table.c
    return Lean(select(c.id).where(c.tenant == bindparam("tenant"), one_of(c.id, "ids"), *only))


_WHY = derived.c.superseded
_NAMED = {
    "d": _there(derived, _WHY.is_(None) | ((_WHY != ERASED) & (_WHY != FORGOTTEN))),
    "f": _there(foreign_facets, foreign_facets.c.bundle != ""),
}
_NUMBERED = {"c": _there(cards), "i": _there(interactions)}
"""What tells which items are there, by the letter that their ids begin with."""


class Row(NamedTuple):
    """One answer; entities are dense ids, `at` microseconds."""

    at: int
    entity: int
    principal: int | None
    purpose: str | None
    use: str
    items: tuple[str, ...]


class Seen(NamedTuple):
    """How often an entity received something, and when."""

    entity: int
    use: str
    answers: int
    first: int
    last: int


def add(connection: Connection, tenant: str, rows: Sequence[Row]) -> None:
    """Store answers with their items."""
    heads: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for row in rows:
        id_ = next_id()
        heads.append({"tenant": tenant, "id": id_, **{n: v for n, v in row._asdict().items() if n != "items"}})
        lines += [{"tenant": tenant, "item": item, "injection": id_} for item in dict.fromkeys(row.items)]
    if heads:
        insert(connection, injections, heads)
        upsert(connection, injected, lines)


def known(connection: Connection, tenant: str, ids: Sequence[str]) -> set[str]:
    """Those of the items that are still there: derived items, cards, interactions, holdings, foreign facets."""
    alike: dict[str, list[str]] = {}
    for id_ in ids:
        alike.setdefault(id_[:1], []).append(id_)
    found = set(_held(connection, tenant, alike.get("h", [])))
    for letter, there in _NAMED.items():
        for part in pages(alike.get(letter, [])):
            found.update(id_ for (id_,) in there.tuples(connection, {"tenant": tenant, "ids": part}))
    for letter, there in _NUMBERED.items():
        for part in pages(alike.get(letter, [])):
            numbers = {number: id_ for id_ in part if (number := number_of(id_)) is not None}
            rows = there.tuples(connection, {"tenant": tenant, "ids": list(numbers)})
            found.update(numbers[number] for (number,) in rows)
    return found


def _held(connection: Connection, tenant: str, ids: Sequence[str]) -> set[str]:
    """Those of the holdings that are still there; of each owner only its own edges are read."""
    pairs = {pair: id_ for id_ in ids if (pair := pair_of(id_)) is not None}
    e = edges.c
    mine = (e.tenant == tenant) & among(connection, e.src, sorted({owner for owner, _ in pairs}))
    rows = connection.execute(select(e.src, e.dst).where(mine).distinct()) if pairs else ()
    return {pairs[src, dst] for src, dst in rows if (src, dst) in pairs}


def received(connection: Connection, tenant: str, items: Sequence[str], since: int) -> list[Seen]:
    """Who received any of the items since a moment, by entity and use."""
    total: dict[tuple[int, str], set[tuple[int, int]]] = {}
    n = injections.c
    for start in range(0, len(items), _CHUNK):
        part = injected.c.item.in_(list(items[start : start + _CHUNK]))
        joined = (injected.c.tenant == n.tenant) & (injected.c.injection == n.id)
        query = (
            select(n.id, n.entity, n.use, n.at).join(injected, joined).where(n.tenant == tenant, part, n.at >= since)
        )
        for row in connection.execute(query):
            total.setdefault((row.entity, row.use), set()).add((row.at, row.id))
    seen = [Seen(entity, use, len(of), min(of)[0], max(of)[0]) for (entity, use), of in total.items()]
    return sorted(seen, key=lambda one: (one.first, one.entity, one.use))


def received_each(connection: Connection, tenant: str, items: Sequence[str], since: int) -> dict[str, list[Seen]]:
    """Who received each of the items itself since a moment."""
    n = injections.c
    found: dict[str, list[Seen]] = {}
    for start in range(0, len(items), _CHUNK):
        part = injected.c.item.in_(list(items[start : start + _CHUNK]))
        joined = (injected.c.tenant == n.tenant) & (injected.c.injection == n.id)
        columns = (injected.c.item, n.entity, n.use, func.count(), func.min(n.at), func.max(n.at))
        query = select(*columns).join(injected, joined).where(n.tenant == tenant, part, n.at >= since)
        for row in connection.execute(query.group_by(injected.c.item, n.entity, n.use)):
            found.setdefault(row[0], []).append(Seen(*row[1:]))
    return {item: sorted(seen, key=lambda one: (one.first, one.entity, one.use)) for item, seen in found.items()}


def listed(connection: Connection, tenant: str, of: int | None, since: int, limit: int) -> list[Row]:
    """Answers since a moment, newest first; of one entity, as reader or as who asked, if it is named."""
    n = injections.c
    where: list[ColumnElement[bool]] = [n.tenant == tenant, n.at >= since]
    if of is not None:
        where.append(or_(n.entity == of, n.principal == of))
    heads = connection.execute(select(injections).where(*where).order_by(n.at.desc(), n.id.desc()).limit(limit)).all()
    items: dict[int, list[str]] = {}
    for start in range(0, len(heads), _CHUNK):
        part = injected.c.injection.in_([head.id for head in heads[start : start + _CHUNK]])
        query = select(injected.c.injection, injected.c.item).where(injected.c.tenant == tenant, part)
        for row in connection.execute(query.order_by(injected.c.item)):
            items.setdefault(row.injection, []).append(row.item)
    return [
        Row(head.at, head.entity, head.principal, head.purpose, head.use, tuple(items.get(head.id, ())))
        for head in heads
    ]


def drop_items(connection: Connection, tenant: str, items: Sequence[str]) -> None:
    """Forget that these were ever handed out; answers of which nothing is left go too."""
    i, n = injected.c, injections.c
    for part in pages(items):
        mine = (i.tenant == tenant) & among(connection, i.item, part)
        of = list(connection.execute(select(i.injection).where(mine).distinct()).scalars())
        if not of:
            continue
        connection.execute(delete(injected).where(mine))
        for told in pages(of):
            left = select(i.item).where(i.tenant == tenant, i.injection == n.id).exists()
            connection.execute(delete(injections).where(n.tenant == tenant, among(connection, n.id, told), ~left))


def drop_reader(connection: Connection, tenant: str, entity: int) -> None:
    """Remove what an entity was told, and what it asked."""
    n = injections.c
    for column in (n.entity, n.principal):
        query = select(n.id).where(n.tenant == tenant, column == entity)
        LOG.drop(connection, tenant, list(connection.execute(query).scalars()))
