"""Merged items and their parts: what happens to the ones when the others go.

A merged item names its parts in its lineage; a part is marked with the merged item that stands
for it. The marks alone decide what is shown, and are changed in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update

from collab_layer.graph.among import among, pages
from collab_layer.graph.engine import upsert
from collab_layer.graph.names import bump
from collab_layer.graph.tables import deliveries, derived, lineage, relations
from collab_layer.types.upkeep import MERGED, SPLIT

WAITING, DELIVERED, RETRACTING = "pending", "delivered", "retracting"


def is_merged(id_: str | None) -> bool:
    """Whether an id, or a mark, is that of a merged item."""
    return id_ is not None and id_.startswith(MERGED)


def parts(connection: Connection, tenant: str, id_: str) -> list[str]:
    """The parts that a merged item stands for, by its lineage; none for any other item."""
    if not is_merged(id_):
        return []
    where = (lineage.c.tenant == tenant) & (lineage.c.item == id_) & lineage.c.source.like("d%")
    return list(connection.execute(select(lineage.c.source).where(where).order_by(lineage.c.source)).scalars())


def release(connection: Connection, tenant: str, ids: Sequence[str]) -> int:
    """Show the parts of merged items again, in stores too; how many."""
    count = 0
    for part in pages([id_ for id_ in ids if is_merged(id_)]):
        behind = (derived.c.tenant == tenant) & among(connection, derived.c.superseded, part)
        count += show_again(connection, tenant, behind)
    return count


def show_again(connection: Connection, tenant: str, behind: ColumnElement[bool]) -> int:
    """Show superseded items again, in stores too; how many."""
    _deliver_instead(connection, tenant, behind)
    return connection.execute(update(derived).where(behind).values(superseded=None)).rowcount


def split(connection: Connection, tenant: str, principal: int | None) -> int:
    """Take apart what was merged of a principal, or of anybody if None: its grants changed; how many.

    What is still permitted joins again in the next night.
    """
    d, n = derived.c, lineage.c
    query = select(d.id).where(d.tenant == tenant, d.id.like(f"{MERGED}%"), d.superseded.is_(None))
    if principal is not None:
        of = select(n.item).where(n.tenant == tenant, n.principal == principal, n.item.like(f"{MERGED}%"))
        query = query.where(d.id.in_(of))
    ids = list(connection.execute(query.order_by(d.id)).scalars())
    if not ids:
        return 0
    bump(connection, tenant)  # answers kept in memory rest on them
    release(connection, tenant, ids)
    for part in pages(ids):
        mine = (d.tenant == tenant) & among(connection, d.id, part)
        connection.execute(update(derived).where(mine).values(superseded=SPLIT))
        retract(connection, tenant, part)
    return len(ids)


def retract(connection: Connection, tenant: str, ids: Sequence[str]) -> int:
    """Have these taken back from every store that has them or is to get them; how many deliveries."""
    d = deliveries.c
    count = 0
    for part in pages(ids):
        mine = (d.tenant == tenant) & among(connection, d.item, part)
        there = update(deliveries).where(mine, d.state != RETRACTING).values(state=RETRACTING)
        count += connection.execute(there).rowcount
    return count


def send(connection: Connection, tenant: str, wanted: Sequence[tuple[str, str, int]]) -> None:
    """Have (item, store, since when) delivered, also where they were just to be taken back."""
    rows: list[dict[str, Any]] = [
        {"tenant": tenant, "item": item, "backend": backend, "state": WAITING, "attempts": 0, "at": at}
        for item, backend, at in wanted
    ]
    upsert(connection, deliveries, rows, update=("state", "attempts"))


def unrelate(connection: Connection, tenant: str, ids: Sequence[str]) -> None:
    """Remove every relation from or to these."""
    r = relations.c
    for part in pages(ids):
        for column in (r.item, r.other):  # each has its index
            connection.execute(delete(relations).where(r.tenant == tenant, among(connection, column, part)))


def _deliver_instead(connection: Connection, tenant: str, behind: ColumnElement[bool]) -> None:
    """Where a merged item is, or was to be, its parts are to be again."""
    d = deliveries.c
    there = (d.tenant == derived.c.tenant) & (d.item == derived.c.superseded) & d.state.in_((WAITING, DELIVERED))
    rows = connection.execute(select(derived.c.id, d.backend, d.at).join(deliveries, there).where(behind))
    send(connection, tenant, [(row.id, row.backend, row.at) for row in rows])
