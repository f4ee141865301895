"""Records that a model has read once when they recurred, so that only new ones make it read again.

In the caller's transaction. A row is a card's number and a time; it goes with its card.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from collab_layer.graph.among import among, pages
from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import considered

_CHUNK = 400


def of(connection: Connection, tenant: str, cards: Sequence[int]) -> set[int]:
    """Those of the cards that a model has read."""
    found: set[int] = set()
    c = considered.c
    for start in range(0, len(cards), _CHUNK):
        part = c.card.in_(list(cards[start : start + _CHUNK]))
        found.update(connection.execute(select(c.card).where(c.tenant == tenant, part)).scalars())
    return found


def mark(connection: Connection, tenant: str, cards: Sequence[int], now: int) -> None:
    """A model has read these."""
    upsert(connection, considered, [{"tenant": tenant, "card": card, "at": now} for card in cards])


def drop(connection: Connection, tenant: str, cards: Sequence[int]) -> None:
    """Forget that these were read: they are gone, or what came of them is."""
    c = considered.c
    for part in pages(cards):
        connection.execute(delete(considered).where(c.tenant == tenant, among(connection, c.card, part)))
