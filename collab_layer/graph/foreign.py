"""What other organisations said: candidates under their own tables, found by the names of things.

In:   a tenant, a bundle that holds; names; inside the caller's transaction.
Out:  what is taken, what may be shown now. Nothing of it becomes an entity, an edge, a card or a
      derived item, so that no index, no curation and no propagation ever sees it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import foreign_bundles, foreign_facets, foreign_things
from collab_layer.types.time import FOREVER

_CHUNK = 400


@dataclass(frozen=True, slots=True)
class Taken:
    """One foreign facet; of one that was forgotten only the id is left, and no bundle."""

    id: str
    bundle: str
    things: tuple[str, ...]
    support: float
    trust: float
    contributors: int
    issuer: str
    at: int
    expires: int


@dataclass(frozen=True, slots=True)
class Series:
    """What is known of one series of an issuer: the newest that was taken, and what is revoked."""

    newest: tuple[int, str] | None
    revoked: frozenset[str]


def series(connection: Connection, tenant: str, issuer: str, name: str) -> Series:
    """The state of a series."""
    b = foreign_bundles.c
    query = select(b.id, b.sequence, b.revoked).where(b.tenant == tenant, b.issuer == issuer, b.series == name)
    rows = connection.execute(query).all()
    taken = max(((row.sequence, row.id) for row in rows if row.sequence), default=None)
    return Series(taken, frozenset(row.id for row in rows if row.revoked))


def knows(connection: Connection, tenant: str, issuer: str) -> bool:
    """Whether anything of the issuer was ever taken."""
    b = foreign_bundles.c
    query = select(b.id).where(b.tenant == tenant, b.issuer == issuer, b.sequence > 0).limit(1)
    return connection.execute(query).first() is not None


def revoke(connection: Connection, tenant: str, issuer: str, name: str, ids: Iterable[str], now: int) -> int:
    """Note bundles of a series as revoked, known or not, and drop what they said; how many facets."""
    wanted = sorted(set(ids))
    rows = [{**_blank(tenant, issuer, name, id_, now), "revoked": True} for id_ in wanted]
    upsert(connection, foreign_bundles, rows, update=("revoked",))
    b, mine = foreign_bundles.c, list[str]()
    for start in range(0, len(wanted), _CHUNK):
        part = b.id.in_(wanted[start : start + _CHUNK])
        query = select(b.id).where(b.tenant == tenant, b.issuer == issuer, b.series == name, part, b.sequence > 0)
        mine += connection.execute(query).scalars()
    return sum(_drop(connection, tenant, issuer, id_) for id_ in mine)


def take(
    connection: Connection, tenant: str, name: str, id_: str, sequence: int, facets: Sequence[Taken], head: Taken
) -> tuple[int, int]:
    """Store a bundle in the place of the earlier ones of its series.

    Returns:
        Facets of earlier bundles that went, and those that were forgotten here and not taken again.
    """
    b = foreign_bundles.c
    query = select(b.id).where(b.tenant == tenant, b.issuer == head.issuer, b.series == name, b.sequence > 0)
    dropped = sum(_drop(connection, tenant, head.issuer, old) for old in connection.execute(query).scalars().all())
    values = {"sequence": sequence, "trust": head.trust, "contributors": head.contributors, "expires": head.expires}
    row = {**_blank(tenant, head.issuer, name, id_, head.at), **values}
    upsert(connection, foreign_bundles, [row], update=("sequence", "trust", "contributors", "at", "expires"))
    forgotten = set(get(connection, tenant, [one.id for one in facets]))
    fresh = [one for one in facets if one.id not in forgotten]
    if fresh:
        connection.execute(insert(foreign_facets), [_row(tenant, one) for one in fresh])
        lines = [{"tenant": tenant, "thing": thing, "facet": one.id} for one in fresh for thing in one.things]
        connection.execute(insert(foreign_things), lines)
    return dropped, len(facets) - len(fresh)


def get(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, Taken]:
    """Facets by id, forgotten ones included."""
    f, found = foreign_facets.c, dict[str, Taken]()
    for start in range(0, len(ids), _CHUNK):
        query = select(foreign_facets).where(f.tenant == tenant, f.id.in_(list(ids[start : start + _CHUNK])))
        found.update((row.id, _taken(row)) for row in connection.execute(query))
    return found


def about(connection: Connection, tenant: str, names: Sequence[str], now: int) -> list[Taken]:
    """What may be shown now of any of these things, the surest first."""
    f, t = foreign_facets.c, foreign_things.c
    found: dict[str, Taken] = {}
    for start in range(0, len(names), _CHUNK):
        mine = (t.tenant == f.tenant) & (t.facet == f.id)
        query = select(foreign_facets).join(foreign_things, mine).where(
            t.tenant == tenant, t.thing.in_(list(names[start : start + _CHUNK])), f.expires > now, f.bundle != ""
        )  # fmt: skip
        found.update((row.id, _taken(row)) for row in connection.execute(query))
    return sorted(found.values(), key=lambda one: (-one.trust * one.support, one.things, one.id))


def of_bundle(connection: Connection, tenant: str, bundle: str) -> list[str]:
    """Ids of the facets of a bundle that are there."""
    f = foreign_facets.c
    return list(connection.execute(select(f.id).where(f.tenant == tenant, f.bundle == bundle)).scalars())


def naming(connection: Connection, tenant: str, thing: str) -> list[str]:
    """Ids of the facets that name a thing."""
    t = foreign_things.c
    return list(connection.execute(select(t.facet).where(t.tenant == tenant, t.thing == thing)).scalars())


def forget(connection: Connection, tenant: str, ids: Sequence[str]) -> int:
    """Erase facets; an empty row stays, so that a later bundle does not bring them back."""
    f, t, count = foreign_facets.c, foreign_things.c, 0
    for start in range(0, len(ids), _CHUNK):
        part = list(ids[start : start + _CHUNK])
        connection.execute(delete(foreign_things).where(t.tenant == tenant, t.facet.in_(part)))
        blank = {"bundle": "", "things": "[]", "support": 0.0, "issuer": "", "expires": FOREVER}
        count += connection.execute(
            update(foreign_facets).where(f.tenant == tenant, f.id.in_(part), f.bundle != "").values(**blank)
        ).rowcount
    return count


def prune(connection: Connection, tenant: str, now: int) -> int:
    """Remove what has ended; how many facets."""
    f, t = foreign_facets.c, foreign_things.c
    over = select(f.id).where(f.tenant == tenant, f.expires <= now)
    connection.execute(delete(foreign_things).where(t.tenant == tenant, t.facet.in_(over)))
    return connection.execute(delete(foreign_facets).where(f.tenant == tenant, f.expires <= now)).rowcount


def count(connection: Connection, tenant: str) -> int:
    """Facets that are there."""
    f = foreign_facets.c
    return connection.execute(select(func.count()).where(f.tenant == tenant, f.bundle != "")).scalar_one()


def _drop(connection: Connection, tenant: str, issuer: str, bundle: str) -> int:
    f, t = foreign_facets.c, foreign_things.c
    mine = (f.tenant == tenant) & (f.bundle == bundle) & (f.issuer == issuer)
    connection.execute(delete(foreign_things).where(t.tenant == tenant, t.facet.in_(select(f.id).where(mine))))
    return connection.execute(delete(foreign_facets).where(mine)).rowcount


def _blank(tenant: str, issuer: str, name: str, id_: str, at: int) -> dict[str, Any]:
    head = {"tenant": tenant, "issuer": issuer, "series": name, "id": id_, "at": at}
    return {**head, "sequence": 0, "trust": 0.0, "contributors": 0, "expires": 0, "revoked": False}


def _row(tenant: str, one: Taken) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "id": one.id,
        "bundle": one.bundle,
        "things": json.dumps(one.things),
        "support": one.support,
        "trust": one.trust,
        "contributors": one.contributors,
        "issuer": one.issuer,
        "at": one.at,
        "expires": one.expires,
    }


def _taken(row: Any) -> Taken:
    things = tuple(json.loads(row.things))
    said = (row.support, row.trust, row.contributors, row.issuer, row.at, row.expires)
    return Taken(row.id, row.bundle, things, *said)
