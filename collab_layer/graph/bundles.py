"""Bundles that were issued, and what the graph knows of things that several owners have.

In:   a tenant, owners that consent, inside a snapshot or the caller's transaction.
Out:  bundles as stored; who has which thing, and by which interactions.
A bundle's row names no owner: its items are derived items, whose lineage dies with what it rests on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from collab_layer.errors import UnknownIdError
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.ids import interaction_id
from collab_layer.graph.reader import holding_id
from collab_layer.graph.tables import bundles, edges, entities
from collab_layer.types.entity import OWNER_KINDS
from collab_layer.types.time import FOREVER

_CHUNK = 400
_HAS = (int(Kind.INTERACTED), int(Kind.MENTIONS))


@dataclass(frozen=True, slots=True)
class IssuedRow:
    """One bundle as stored."""

    id: str
    audience: int
    sequence: int
    expires: int
    items: tuple[str, ...]
    revoked: int | None


@dataclass(frozen=True, slots=True)
class Has:
    """That an owner has a thing, and the source that says so."""

    owner: int
    thing: int
    source: str


def add(connection: Connection, tenant: str, row: IssuedRow) -> None:
    """Store a bundle."""
    connection.execute(
        insert(bundles),
        [
            {
                "tenant": tenant,
                "id": row.id,
                "audience": row.audience,
                "sequence": row.sequence,
                "expires": row.expires,
                "holds": json.dumps(list(row.items)),
                "revoked": row.revoked,
            }
        ],
    )


def listed(connection: Connection, tenant: str, audience: int | None = None) -> list[IssuedRow]:
    """Bundles, newest first; of one audience, if it is named."""
    b = bundles.c
    query = select(b.id, b.audience, b.sequence, b.expires, b.holds, b.revoked).where(b.tenant == tenant)
    if audience is not None:
        query = query.where(b.audience == audience)
    rows = connection.execute(query.order_by(b.sequence.desc(), b.id))
    return [IssuedRow(r.id, r.audience, r.sequence, r.expires, tuple(json.loads(r.holds)), r.revoked) for r in rows]


def revoke(connection: Connection, tenant: str, id_: str, now: int) -> int:
    """Mark a bundle as revoked; its audience.

    Raises:
        UnknownIdError: No such bundle was issued.
    """
    b = bundles.c
    audience = connection.execute(select(b.audience).where(b.tenant == tenant, b.id == id_)).scalar()
    if audience is None:
        raise UnknownIdError(id_)
    mine = (b.tenant == tenant) & (b.id == id_) & b.revoked.is_(None)
    connection.execute(update(bundles).where(mine).values(revoked=now))
    return audience


def holdings(connection: Connection, tenant: str, owners: Iterable[int], now: int) -> list[Has]:
    """What each of the owners has at this moment, by each interaction that says so.

    No owners are among the things, and none that only words of texts have made: some caller named each.
    """
    e, n = edges.c, entities.c
    found: list[Has] = []
    every = sorted(owners)
    thing = (n.tenant == e.tenant) & (n.id == e.dst) & n.kind.not_in(sorted(OWNER_KINDS)) & (n.named < FOREVER)
    for start in range(0, len(every), _CHUNK):
        where = (e.tenant == tenant) & e.src.in_(every[start : start + _CHUNK]) & e.kind.in_(_HAS)
        query = select(e.src, e.dst, e.kind, e.interaction).join(entities, thing)
        for row in connection.execute(query.where(where, e.weight > 0, e.at <= now, e.valid_to > now)):
            told = row.kind == int(Kind.INTERACTED) or not row.interaction
            source = holding_id(row.src, row.dst) if told else interaction_id(row.interaction)
            found.append(Has(row.src, row.dst, source))
    return found


def words_of_owners(connection: Connection, tenant: str) -> list[tuple[str, str]]:
    """Id and display name of every owner."""
    n = entities.c
    query = select(n.name, n.display).where(n.tenant == tenant, n.kind.in_(sorted(OWNER_KINDS)))
    return [(row.name.partition(":")[2], row.display) for row in connection.execute(query)]
