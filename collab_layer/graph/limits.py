"""Limits of a tenant and its teams in the database.

In:   a tenant, a connection, a moment.
Out:  `Limit`s with the members that each team has then; the rules are in `governance.limits`.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select

from collab_layer.governance.limits import TENANT, Limit
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import edges, entities, limits
from collab_layer.types.scope import Level

_ALL = select(limits).where(limits.c.tenant == bindparam("tenant")).order_by(limits.c.team)


def of(connection: Connection, tenant: str, now: int) -> list[Limit]:
    """Every limit; the tenant's first, then by team."""
    rows = connection.execute(_ALL, {"tenant": tenant}).all()
    teams = [row.team for row in rows if row.team != TENANT]
    members = _members(connection, tenant, teams, now) if teams else {}
    return [_limit(row, members.get(row.team, set())) for row in rows]


def put(connection: Connection, tenant: str, limit: Limit, now: int) -> None:
    """Store a limit in place of the one before; one that limits nothing is removed."""
    connection.execute(delete(limits).where(limits.c.tenant == tenant, limits.c.team == limit.team))
    row = {
        "tenant": tenant,
        "team": limit.team,
        "minimum": limit.minimum,
        "level": None if limit.level is None else int(limit.level),
        "purposes": None if limit.purposes is None else json.dumps(sorted(limit.purposes), ensure_ascii=False),
        "longest": limit.longest,
        "at": now,
    }
    if any(row[part] is not None for part in ("minimum", "level", "purposes", "longest")):
        upsert(connection, limits, [row])


def drop(connection: Connection, tenant: str, team: str) -> int:
    """A team that is erased has no limits; how many it had."""
    return connection.execute(delete(limits).where(limits.c.tenant == tenant, limits.c.team == team)).rowcount


def _members(connection: Connection, tenant: str, teams: list[str], now: int) -> dict[str, set[int]]:
    e, n = edges.c, entities.c
    named = select(n.id, n.name).where(n.tenant == tenant, n.name.in_(teams))
    ids: dict[int, str] = {row.id: row.name for row in connection.execute(named)}
    found = {name: {id_} for id_, name in ids.items()}
    inside = (e.tenant == tenant) & e.src.in_(list(ids)) & (e.kind == int(Kind.HAS_MEMBER)) & (e.valid_to > now)
    for row in connection.execute(select(e.src, e.dst).where(inside).distinct()):
        found[ids[row.src]].add(row.dst)
    return found


def _limit(row: Any, members: set[int]) -> Limit:
    return Limit(
        row.team,
        frozenset(members),
        row.minimum,
        None if row.level is None else Level(row.level),
        None if row.purposes is None else frozenset(json.loads(row.purposes)),
        row.longest,
    )


__all__ = ["drop", "of", "put"]
