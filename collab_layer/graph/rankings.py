"""Rankings that were served, what their owners chose afterwards, and whom neighbours are muted for.

In:   rows, in the caller's transaction; a moment, and how long a choice may come after a ranking.
Out:  choices with the ranking each is owed to; the owners that are served by their own memory.
Dense ids and places only, never words. Rows go with their owner, with each thing, and with time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert, select

from collab_layer.graph.aging import Log
from collab_layer.graph.among import among, pages
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import interactions, offered, rankings, verdicts

TENANT = 0
"""Stands for the tenant as a whole among owners; no entity has this id."""
LOG = Log(rankings, offered.c.ranking)
NEWEST = 20_000
"""Rankings that are looked at, at most: the newest."""


class Row(NamedTuple):
    """One ranking: `at` microseconds; each thing's place from 0, and the one it has in the other arm."""

    at: int
    entity: int
    arm: str
    request: int
    version: str
    things: Mapping[int, tuple[int, int | None]]


class Served(NamedTuple):
    """Of rankings of one request the newest, and the first choice that followed from one of them.

    `place` is None where nothing was chosen; `other` also where the other arm's order is not known.
    """

    at: int
    entity: int
    arm: str
    place: int | None = None
    other: int | None = None


class Verdict(NamedTuple):
    """Whether neighbours are muted for an owner; what was served before `at` counts no more."""

    muted: bool
    at: int


def add(connection: Connection, tenant: str, rows: Sequence[Row]) -> None:
    """Store rankings with what they offered."""
    heads: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for row in rows:
        id_ = next_id()
        heads.append({"tenant": tenant, "id": id_, **{n: v for n, v in row._asdict().items() if n != "things"}})
        lines += [
            {"tenant": tenant, "ranking": id_, "thing": thing, "place": place, "other": other}
            for thing, (place, other) in row.things.items()
        ]
    if heads:
        connection.execute(insert(rankings), heads)
        connection.execute(insert(offered), lines)


def served(connection: Connection, tenant: str, entity: int | None, since: int, within: int) -> list[Served]:
    """What was served since a moment, to one owner or to all, with what was chosen: one for each request.

    A choice is owed to the newest ranking that had offered the thing, at most `within` microseconds
    before it; an interaction of weight 0 is no choice.
    """
    r = rankings.c
    where = [r.tenant == tenant, r.at >= since, *([] if entity is None else [r.entity == entity])]
    query = select(r.id, r.at, r.entity, r.arm, r.request).where(*where).order_by(r.at.desc(), r.id.desc())
    heads = {row.id: row for row in connection.execute(query.limit(NEWEST))}
    found = {(row.entity, row.request, row.arm): Served(row.at, row.entity, row.arm) for row in heads.values()}
    for ranking, place, other in _chosen(connection, tenant, list(heads), within):
        row = heads[ranking]
        unit = (row.entity, row.request, row.arm)
        if found[unit].place is None:
            found[unit] = Served(row.at, row.entity, row.arm, place, other)
    return list(found.values())


def _chosen(
    connection: Connection, tenant: str, heads: Sequence[int], within: int
) -> list[tuple[int, int, int | None]]:
    """Each choice with the ranking it is owed to, as ranking, place and other place; the earliest choice first."""
    r, o, i = rankings.c, offered.c, interactions.c
    acted = (i.tenant == r.tenant) & (i.actor == r.entity) & (i.at > r.at) & (i.at <= r.at + within) & (i.weight > 0)
    there = (o.tenant == r.tenant) & (o.ranking == r.id) & (o.thing == i.target)
    joined = rankings.join(interactions, acted).join(offered, there)
    query = select(i.at, i.id, r.at.label("served"), r.id.label("ranking"), o.place, o.other).select_from(joined)
    newest: dict[tuple[int, int], tuple[int, int, int, int | None]] = {}
    for part in pages(heads, 2_000):
        for row in connection.execute(query.where(r.tenant == tenant, among(connection, r.id, part))):
            owed = (row.served, row.ranking, row.place, row.other)
            choice = (row.at, row.id)
            newest[choice] = max(newest.get(choice, owed), owed, key=lambda one: one[:2])
    return [newest[choice][1:] for choice in sorted(newest)]


def verdicts_of(connection: Connection, tenant: str) -> dict[int, Verdict]:
    """What was decided of owners, and of the tenant."""
    v = verdicts.c
    query = select(v.entity, v.muted, v.at).where(v.tenant == tenant)
    return {row.entity: Verdict(row.muted, row.at) for row in connection.execute(query)}


def muted(connection: Connection, tenant: str, entity: int) -> frozenset[int]:
    """Which of an owner and the tenant are muted."""
    v = verdicts.c
    query = select(v.entity).where(v.tenant == tenant, v.entity.in_((TENANT, entity)), v.muted)
    return frozenset(connection.execute(query).scalars())


def decide(connection: Connection, tenant: str, decided: Mapping[int, Verdict]) -> None:
    """Keep what was decided."""
    rows = [{"tenant": tenant, "entity": entity, **one._asdict()} for entity, one in decided.items()]
    if rows:
        upsert(connection, verdicts, rows, update=("muted", "at"))


def drop(connection: Connection, tenant: str, entity: int) -> None:
    """Forget what an entity was served, and where it was offered itself."""
    r, v = rankings.c, verdicts.c
    ids = connection.execute(select(r.id).where(r.tenant == tenant, r.entity == entity)).scalars()
    LOG.drop(connection, tenant, list(ids))
    drop_offered(connection, tenant, [entity])
    connection.execute(delete(verdicts).where(v.tenant == tenant, v.entity == entity))


def drop_offered(connection: Connection, tenant: str, things: Sequence[int]) -> None:
    """Forget where things were offered."""
    for part in pages(things):
        mine = (offered.c.tenant == tenant) & among(connection, offered.c.thing, part)
        connection.execute(delete(offered).where(mine))


__all__ = [
    "LOG",
    "TENANT",
    "Row",
    "Served",
    "Verdict",
    "add",
    "decide",
    "drop",
    "drop_offered",
    "muted",
    "served",
    "verdicts_of",
]
