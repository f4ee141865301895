"""What was delivered to a store and may no longer be shown there: a page of it at a time.

In:   a tenant, a store's name.
Out:  deliveries that are to be taken back, marked so.

Grants that end and items that something takes the place of mark what they concern themselves. All is looked at
again when the tenant's policy or generation changed, when an item has run out, and now and then, for a twentieth
of the time at most, since another process may have delivered, or somebody left a team.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from collab_layer.governance.grants import Audience
from collab_layer.graph import derived, upkeep
from collab_layer.graph.derived import Item
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.merged import DELIVERED, RETRACTING
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import deliveries
from collab_layer.types.entity import Entity
from collab_layer.types.time import FOREVER

PAGE = 200
EVERY_S, PAUSE = 60.0, 20.0
"""Between two rounds without a reason: at least so long, and so many times as long as the last one took."""


@dataclass(slots=True)
class Round:
    """How far one process has looked through one store's deliveries.

    Attributes:
        after: The last item looked at; None when the round is over.
        fence: The tenant's generation and policy as the round began.
        ends: When the first item runs out that is still there.
        again: When to look without a reason, by the process's steady clock.
        spent: Seconds that the round took so far.
    """

    after: str | None = ""
    fence: tuple[int, int] = (-1, -1)
    ends: int = FOREVER
    again: float = 0.0
    spent: float = 0.0


class Rounds:
    """The rounds of one process, by (tenant, store name)."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], Round] = {}

    def turn(self, store: GraphStore, tenant: str, backend: str, now: int, *, whole: bool = False) -> bool:
        """Look at the next page, if there is a reason to look; whether there is more to look at.

        Args:
            store: The layer's own.
            tenant: Whose.
            backend: Where it was delivered.
            now: Microseconds.
            whole: Begin a round whether there is a reason or not.
        """
        round_, begun = self._of.setdefault((tenant, backend), Round()), time.monotonic()
        with store.database.read() as connection:
            fence = upkeep.fence(connection, tenant)
            due = whole or now >= round_.ends or begun >= round_.again
            if fence != round_.fence or (round_.after is None and due):
                round_.after, round_.fence, round_.ends, round_.spent = "", fence, FOREVER, 0.0
            if round_.after is None:
                return False
            page = _look(store, connection, tenant, backend, round_.after, now)
        _mark(store, tenant, backend, page.over)
        round_.after, round_.ends = page.last, min(round_.ends, page.ends)
        round_.spent += time.monotonic() - begun
        if page.last is None:
            round_.again = time.monotonic() + max(EVERY_S, PAUSE * round_.spent)
        return page.last is not None

    def sent(self, tenant: str, backend: str, ends: int) -> None:
        """Something was delivered that runs out then."""
        round_ = self._of.setdefault((tenant, backend), Round())
        round_.ends = min(round_.ends, ends)


class _Page(NamedTuple):
    """What is to be taken back, the last item if there are more, and when the first of the others runs out."""

    over: list[str]
    last: str | None
    ends: int


def _look(store: GraphStore, connection: Connection, tenant: str, backend: str, after: str, now: int) -> _Page:
    d = deliveries.c
    mine = (d.tenant == tenant) & (d.backend == backend) & (d.state == DELIVERED) & (d.item > after)
    ids = list(connection.execute(select(d.item).where(mine).order_by(d.item).limit(PAGE)).scalars())
    items = derived.get(connection, tenant, ids)
    seen: dict[int, Audience] = {}
    index = store.index(tenant)
    with index.lock:
        index.refresh(connection)
        stand = {id_ for id_, item in items.items() if _stands(store, connection, index, item, seen, now)}
    last = ids[-1] if len(ids) == PAGE else None
    ends = min((items[id_].expires for id_ in stand), default=FOREVER)
    return _Page([id_ for id_ in ids if id_ not in stand], last, ends)


def _stands(
    store: GraphStore, connection: Connection, index: TenantIndex, item: Item, seen: dict[int, Audience], now: int
) -> bool:
    """Whether an item is still shown to its owner, who may read everybody behind it."""
    if item.superseded is not None or item.expires <= now or not index.named(item.owner):
        return False
    if item.owner not in seen:
        reader = Entity.parse(index.names[item.owner])
        seen[item.owner] = store.audience(connection, index.tenant, reader, item.owner, None, now)
    return all(seen[item.owner].level(one) >= item.level for one in item.principals)


def _mark(store: GraphStore, tenant: str, backend: str, over: list[str]) -> None:
    if over:
        d = deliveries.c
        mine = (d.tenant == tenant) & (d.backend == backend) & (d.state == DELIVERED) & d.item.in_(over)
        with store.database.write() as connection:
            connection.execute(update(deliveries).where(mine).values(state=RETRACTING))


__all__ = ["Rounds"]
