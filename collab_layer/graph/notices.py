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
from sqlalchemy import Connection, bindparam, func, insert, or_, select

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
_N, _D = notices.c, derived.c
_ALL: Any = (
    select(_N.item, _N.owner, _N.audience, _N.purpose, _N.until, _N.at, _N.vector, _N.embedder, _D.text, _D.confidence)
    .join(derived, (_D.tenant == _N.tenant) & (_D.id == _N.item))
    .where(_N.tenant == bindparam("tenant"))
)
_MEANT = (
    _N.audience.in_(bindparam("names", expanding=True))
    & (_N.until > bindparam("now"))
    & (_N.purpose.is_(None) | (_N.purpose == bindparam("purpose", type_=_N.purpose.type)))
    & ~blocked(_N.tenant, _N.owner)
)
_READABLE = (
    _ALL.where(_MEANT, _N.at <= bindparam("told_by"), _N.owner != bindparam("reader"))
    .order_by(_N.at.desc(), _N.item)
    .limit(MOST)
)
_NEXT_END = select(func.min(_N.until)).where(_N.tenant == bindparam("tenant"), _N.until > bindparam("now"))


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
    given = {"tenant": tenant, "names": [EVERYONE, *sorted(who.names)], "purpose": who.purpose, "reader": who.id}
    return [
        _notice(row, embedder) for row in connection.execute(_READABLE, {**given, "now": now, "told_by": told_by}).all()
    ]


def get(connection: Connection, tenant: str, id_: str) -> NoticeRow | None:
    """A notice by its id, whoever asks."""
    row = connection.execute(_ALL.where(_N.item == id_), {"tenant": tenant}).first()
    return None if row is None else _notice(row, "")


def permits(connection: Connection, tenant: str, id_: str, who: Reader, now: int) -> bool:
    """Whether the reader may use a notice now; its owner always may."""
    given = {"tenant": tenant, "names": [EVERYONE, *sorted(who.names)], "purpose": who.purpose, "now": now}
    query = select(_N.item).where(_N.tenant == bindparam("tenant"), _N.item == id_, or_(_N.owner == who.id, _MEANT))
    return connection.execute(query, given).first() is not None


def next_end(connection: Connection, tenant: str, now: int) -> int:
    """When the next notice of the tenant ends by itself, or by how long one may hold."""
    n = notices.c
    ends = [connection.execute(_NEXT_END, {"tenant": tenant, "now": now}).scalar()]
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


def _notice(row: Any, embedder: str) -> NoticeRow:
    raw: bytes | None = row.vector if row.embedder == embedder else None
    vector = None if raw is None else np.frombuffer(raw, np.float16).astype(np.float32)
    said = (row.item, row.owner, row.text, row.confidence)
    return NoticeRow(*said, row.audience, row.purpose, row.until, row.at, vector)


__all__ = ["NoticeRow", "add", "ended", "get", "meant_for", "next_end", "of_owner", "permits", "readable"]
