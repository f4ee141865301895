"""Grants in the database: who may read whom, at this moment.

In:   a tenant, a connection, a moment.
Out:  `Audience`s; the rules themselves are in `governance.grants`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, insert, select, update

from collab_layer.errors import UnknownIdError
from collab_layer.governance.grants import Audience, GrantRow, Reader, audience, read_by_others
from collab_layer.governance.limits import Limit, cut
from collab_layer.graph import limits
from collab_layer.graph.adjacency import Adjacency, Kind
from collab_layer.graph.among import one_of
from collab_layer.graph.lean import Lean
from collab_layer.graph.names import ensure
from collab_layer.graph.tables import cards, grants, tenants, terms
from collab_layer.types.entity import Entity
from collab_layer.types.scope import EVERYONE, Level, Reach, Sharing
from collab_layer.types.time import FOREVER

LEVELS = {"facets": Level.FACETS, "records": Level.RECORDS}
_G = grants.c
_OF_ALL = select(_G.owner, _G.audience, _G.level, _G.purpose, _G.until, _G.denied, _G.created).where(
    _G.tenant == bindparam("tenant"), _G.revoked.is_(None)
)
_ROWS, _ROWS_OF = Lean(_OF_ALL), Lean(_OF_ALL.where(one_of(_G.owner, "owners") | _G.owner.is_(None)))
_SHARING = select(tenants.c.sharing).where(tenants.c.tenant == bindparam("tenant"))
POLICY_GRANT = "tenant-policy"
BLOCK = "b"
"""How the id of a denial begins that only the operator takes back."""
_CHUNK = 400
NOBODY = -1
"""Dense id of an entity that was never seen."""


def sharing(connection: Connection, tenant: str) -> Sharing:
    """The tenant's policy; private for a tenant that is not known."""
    return parsed(connection.execute(_SHARING, {"tenant": tenant}).scalar())


@lru_cache(maxsize=64)
def parsed(text: str | None) -> Sharing:
    """A policy as it is stored; private where there is none."""
    return Sharing.private() if text is None else Sharing.model_validate_json(text)


def set_sharing(connection: Connection, tenant: str, wanted: Sharing, now: int) -> bool:
    """Record the tenant's policy as a grant by the tenant; whether anything changed."""
    ensure(connection, tenant)
    if sharing(connection, tenant) == wanted:
        return False
    connection.execute(
        update(tenants)
        .where(tenants.c.tenant == tenant)
        .values(sharing=wanted.model_dump_json(), policy=tenants.c.policy + 1)
    )
    connection.execute(delete(grants).where(grants.c.tenant == tenant, grants.c.id == POLICY_GRANT))
    if wanted.reach is Reach.TENANT:
        row = _row(tenant, POLICY_GRANT, None, EVERYONE, LEVELS[wanted.level], None, FOREVER, now)
        connection.execute(insert(grants), [row])
    return True


def rows(
    connection: Connection, tenant: str, now: int, owner: int | None = None, *, known: Sequence[Limit] | None = None
) -> list[GrantRow]:
    """The grants not revoked, as the limits of today allow them; of one owner and the tenant, if an owner is named.

    The limits are `known`, where the caller has read them.
    """
    if owner is not None:
        return rows_of(connection, tenant, now, [owner])[owner]
    return _rows(connection, tenant, now, _ROWS, {}, known)


def rows_of(
    connection: Connection, tenant: str, now: int, owners: Sequence[int], *, known: Sequence[Limit] | None = None
) -> dict[int, list[GrantRow]]:
    """The same of each of some owners, the tenant's own included."""
    found: dict[int, list[GrantRow]] = {owner: [] for owner in owners}
    for start in range(0, len(owners), _CHUNK):
        part = list(owners[start : start + _CHUNK])
        grouped: dict[int | None, list[GrantRow]] = {}
        for row in _rows(connection, tenant, now, _ROWS_OF, {"owners": part}, known):
            grouped.setdefault(row.owner, []).append(row)
        for owner in part:
            found[owner] = [*grouped.get(None, ()), *grouped.get(owner, ())]
    return found


def _rows(
    connection: Connection,
    tenant: str,
    now: int,
    query: Lean,
    given: dict[str, Any],
    known: Sequence[Limit] | None = None,
) -> list[GrantRow]:
    found = [
        GrantRow(row.owner, row.audience, Level(row.level), row.purpose, row.until, bool(row.denied), row.created)
        for row in query.rows(connection, {"tenant": tenant, **given})
    ]
    if not found:
        return found
    return cut(limits.of(connection, tenant, now) if known is None else known, found)


def in_force(connection: Connection, tenant: str, now: int, owner: int | None = None) -> list[tuple[str, GrantRow]]:
    """Grants and denials as they were given, by id, newest first; blocks of the operator's are not among them."""
    g = grants.c
    query = select(g.id, g.owner, g.audience, g.level, g.purpose, g.until, g.denied, g.created).where(
        g.tenant == tenant, g.revoked.is_(None), g.until > now, g.id.not_like(f"{BLOCK}%")
    )
    if owner is not None:
        query = query.where(g.owner == owner)
    return [
        (row.id, GrantRow(row.owner, row.audience, Level(row.level), row.purpose, row.until, row.denied, row.created))
        for row in connection.execute(query.order_by(g.created.desc(), g.id))
    ]


def ids_of(connection: Connection, tenant: str, owner: int) -> list[str]:
    """Every grant that an owner ever gave."""
    return list(
        connection.execute(select(grants.c.id).where(grants.c.tenant == tenant, grants.c.owner == owner)).scalars()
    )


def strictest_minimum(connection: Connection, tenant: str, now: int) -> int:
    """Contributors behind what is made once for every reader: of the tenant, or of its strictest team."""
    least = sharing(connection, tenant).min_contributors
    return max([least, *(one.minimum for one in limits.of(connection, tenant, now) if one.minimum is not None)])


def shared(connection: Connection, tenant: str, owner: int, now: int) -> Level:
    """The highest level at which anybody else may use the owner."""
    return shared_by(connection, tenant, [owner], now)[owner]


def shared_by(connection: Connection, tenant: str, owners: Sequence[int], now: int) -> dict[int, Level]:
    """The same of each of some owners."""
    found = rows_of(connection, tenant, now, owners)
    return {owner: read_by_others(grants, owner, now) for owner, grants in found.items()}


def readers(
    connection: Connection,
    adjacency: Adjacency,
    tenant: str,
    ids: Sequence[int],
    purpose: str | None,
    names: Sequence[str] | Mapping[int, str],
) -> list[Reader]:
    """Who these entities are to grants: themselves, their kind, and the groups they are in now."""
    groups = adjacency.ends(connection, tenant, ids, Kind.MEMBER_OF)
    out: list[Reader] = []
    for id_ in ids:
        known: set[str] = {names[group] for group in groups[id_]}
        kind = names[id_].partition(":")[0]
        out.append(Reader(id_, frozenset({names[id_], f"kind:{kind}", *known}), purpose))
    return out


def stranger(principal: Entity, purpose: str | None) -> Reader:
    """A principal that was never seen: itself and its kind."""
    return Reader(NOBODY, frozenset({str(principal), f"kind:{principal.kind}"}), purpose)


def audience_of(connection: Connection, tenant: str, who: Reader, now: int) -> Audience:
    """What the reader may use at this moment."""
    return audience(rows(connection, tenant, now), who, now)


def add(
    connection: Connection,
    tenant: str,
    owner: int | None,
    to: str,
    level: Level,
    *,
    purpose: str | None,
    until: int,
    denied: bool,
    now: int,
    prefix: str = "g",
) -> str:
    """Store a grant and raise the policy version; its id."""
    id_ = prefix + secrets.token_hex(8)
    connection.execute(insert(grants), [{**_row(tenant, id_, owner, to, level, purpose, until, now), "denied": denied}])
    raise_version(connection, tenant)
    return id_


def revoke(connection: Connection, tenant: str, id_: str, now: int) -> int | None:
    """End a grant at once; the owner it was of.

    Raises:
        UnknownIdError: No such grant is in force.
    """
    row = connection.execute(
        update(grants)
        .where(grants.c.tenant == tenant, grants.c.id == id_, grants.c.revoked.is_(None))
        .values(revoked=now)
        .returning(grants.c.owner)
    ).first()
    if row is None:
        raise UnknownIdError(id_)
    raise_version(connection, tenant)
    return row.owner


def ended(connection: Connection, tenant: str, now: int) -> list[tuple[str, int | None]]:
    """Grants whose time is over but that were not closed yet: id and owner."""
    g = grants.c
    rows = connection.execute(select(g.id, g.owner).where(g.tenant == tenant, g.revoked.is_(None), g.until <= now))
    return [(row.id, row.owner) for row in rows]


def close(connection: Connection, tenant: str, id_: str, now: int) -> None:
    """Note that a grant's time is over."""
    connection.execute(update(grants).where(grants.c.tenant == tenant, grants.c.id == id_).values(revoked=now))


def owner_of_grant(connection: Connection, tenant: str, id_: str) -> int | None:
    """Whose grant it is; None if unknown or the tenant's own."""
    return connection.execute(select(grants.c.owner).where(grants.c.tenant == tenant, grants.c.id == id_)).scalar()


def blocks(connection: Connection, tenant: str, owner: int | None = None) -> list[tuple[str, int, int]]:
    """Owners that nobody else may read, by the operator's word: grant id, owner, since when; oldest first."""
    g = grants.c
    query = select(g.id, g.owner, g.created).where(g.tenant == tenant, g.id.like(f"{BLOCK}%"), g.revoked.is_(None))
    if owner is not None:
        query = query.where(g.owner == owner)
    return [tuple(row) for row in connection.execute(query.order_by(g.created, g.id))]


def blocked(tenant: Any, owner: Any) -> ColumnElement[bool]:
    """Whether an owner is blocked, as a condition of a query over columns of it."""
    g = grants.c
    return exists().where(g.tenant == tenant, g.owner == owner, g.id.like(f"{BLOCK}%"), g.revoked.is_(None))


def drop_texts(connection: Connection, tenant: str, owner: int, rev: int) -> list[int]:
    """Nobody else may read this owner any more: its cards lose text and index at once; which cards."""
    c = cards.c
    held = select(c.id).where(c.tenant == tenant, c.owner == owner, c.text.is_not(None))
    connection.execute(delete(terms).where(terms.c.tenant == tenant, terms.c.card.in_(held)))
    lost = update(cards).where(c.tenant == tenant, c.owner == owner, c.text.is_not(None))
    return list(connection.execute(lost.values(text=None, length=0, rev=rev).returning(c.id)).scalars())


def owners_with_cards(connection: Connection, tenant: str) -> list[int]:
    """Every owner that the layer has cards of."""
    return list(connection.execute(select(cards.c.owner).where(cards.c.tenant == tenant).distinct()).scalars())


def raise_version(connection: Connection, tenant: str) -> None:
    """Have every answer kept in memory, in every process, looked at anew: who may read what has changed."""
    connection.execute(update(tenants).where(tenants.c.tenant == tenant).values(policy=tenants.c.policy + 1))


def _row(
    tenant: str, id_: str, owner: int | None, to: str, level: Level, purpose: str | None, until: int, now: int
) -> dict[str, object]:
    return {
        "tenant": tenant,
        "id": id_,
        "owner": owner,
        "audience": to,
        "level": int(level),
        "purpose": purpose,
        "until": until,
        "denied": False,
        "created": now,
        "revoked": None,
    }
