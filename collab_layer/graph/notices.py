"""Notices: what owners published, each with whom it is for and until when.

In:   a tenant, a connection, who reads, a moment.
Out:  the notices that may be read then; the words are those of the derived item.
A notice is a grant of its own: no other grant opens it, and ending another one does not close it.
`derived.drop` removes its row with the item, whatever the item dies of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, func, insert, or_, select

from collab_layer.governance.grants import Reader
from collab_layer.graph import derived as items
from collab_layer.graph import limits
from collab_layer.graph.derived import Item
from collab_layer.graph.policy import blocked
from collab_layer.graph.tables import derived, notices
from collab_layer.types.graph import Vectors
from collab_layer.types.scope import EVERYONE
from collab_layer.types.time import FOREVER

MOST = 500
"""Notices that one read looks at, newest first."""


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """One notice as stored; `vector` is raw, None if it is of another embedder than asked for."""

    id: str
    owner: int
    text: str
    confidence: float
    audience: str
    purpose: str | None
    until: int
    at: int
    vector: Vectors | None = None


def add(
    connection: Connection,
    tenant: str,
    item: Item,
    audience: str,
    purpose: str | None,
    vector: Vectors | None,
    embedder: str,
) -> None:
    """Store a notice: the item with its lineage, and whom it is for."""
    items.store(connection, tenant, [item])
    row: dict[str, Any] = {
        "tenant": tenant,
        "item": item.id,
        "owner": item.owner,
        "audience": audience,
        "purpose": purpose,
        "until": item.expires,
        "at": item.at,
        "vector": None if vector is None else vector.astype(np.float16).tobytes(),
        "embedder": embedder,
    }
    connection.execute(insert(notices), [row])


def readable(
    connection: Connection, tenant: str, who: Reader, now: int, *, told_by: int, embedder: str
) -> list[NoticeRow]:
    """Notices of others that the reader may use now and that were published by `told_by`, newest first."""
    query = _all(tenant).where(_meant(who, now), notices.c.at <= told_by, notices.c.owner != who.id)
    query = query.order_by(notices.c.at.desc(), notices.c.item).limit(MOST)
    return [_notice(row, embedder) for row in connection.execute(query)]


def get(connection: Connection, tenant: str, id_: str) -> NoticeRow | None:
    """A notice by its id, whoever asks."""
    row = connection.execute(_all(tenant).where(notices.c.item == id_)).first()
    return None if row is None else _notice(row, "")


def permits(connection: Connection, tenant: str, id_: str, who: Reader, now: int) -> bool:
    """Whether the reader may use a notice now; its owner always may."""
    n = notices.c
    query = select(n.item).where(n.tenant == tenant, n.item == id_, or_(n.owner == who.id, _meant(who, now)))
    return connection.execute(query).first() is not None


def next_end(connection: Connection, tenant: str, now: int) -> int:
    """When the next notice of the tenant ends by itself, or by how long one may hold."""
    n = notices.c
    ends = [connection.execute(select(func.min(n.until)).where(n.tenant == tenant, n.until > now)).scalar()]
    for longest in {one.longest for one in limits.of(connection, tenant, now) if one.longest is not None}:
        first = connection.execute(select(func.min(n.at)).where(n.tenant == tenant, n.at > now - longest)).scalar()
        ends.append(None if first is None else first + longest)
    return min((end for end in ends if end is not None), default=FOREVER)


def ended(connection: Connection, tenant: str, now: int) -> list[str]:
    """Notices whose time is over and that are still there."""
    n = notices.c
    return list(connection.execute(select(n.item).where(n.tenant == tenant, n.until <= now)).scalars())


def of_owner(connection: Connection, tenant: str, owner: int) -> list[str]:
    """What an owner published."""
    n = notices.c
    return list(connection.execute(select(n.item).where(n.tenant == tenant, n.owner == owner)).scalars())


def meant_for(connection: Connection, tenant: str, audience: str) -> list[str]:
    """Notices for exactly that audience."""
    n = notices.c
    return list(connection.execute(select(n.item).where(n.tenant == tenant, n.audience == audience)).scalars())


def _meant(who: Reader, now: int) -> ColumnElement[bool]:
    n = notices.c
    mine = n.audience.in_([EVERYONE, *sorted(who.names)])
    return mine & (n.until > now) & (n.purpose.is_(None) | (n.purpose == who.purpose)) & ~blocked(n.tenant, n.owner)


def _all(tenant: str) -> Select[Any]:
    n, d = notices.c, derived.c
    same = (d.tenant == n.tenant) & (d.id == n.item)
    columns = (n.item, n.owner, n.audience, n.purpose, n.until, n.at, n.vector, n.embedder, d.text, d.confidence)
    query: Any = select(*columns).join(derived, same)
    return query.where(n.tenant == tenant)


def _notice(row: Any, embedder: str) -> NoticeRow:
    raw: bytes | None = row.vector if row.embedder == embedder else None
    vector = None if raw is None else np.frombuffer(raw, np.float16).astype(np.float32)
    said = (row.item, row.owner, row.text, row.confidence)
    return NoticeRow(*said, row.audience, row.purpose, row.until, row.at, vector)


__all__ = ["NoticeRow", "add", "ended", "get", "meant_for", "next_end", "of_owner", "permits", "readable"]
