"""Who was in which group from when to when.

In:   joins and leaves that were just stored, in the caller's transaction.
Out:  each join's edge ends with the first leave that is not before it, told earlier or later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from collab_layer.graph.adjacency import Adjacency, Kind
from collab_layer.graph.tables import edges, interactions
from collab_layer.types.time import FOREVER

LEFT = "left"
_KINDS = (int(Kind.MEMBER_OF), int(Kind.HAS_MEMBER))
Moved = tuple[int, int, int]
"""Member, group, time."""


def settle(
    connection: Connection, adjacency: Adjacency, tenant: str, joined: Sequence[Moved], left: Sequence[Moved]
) -> None:
    """End what is to end."""
    i, gone = interactions.c, list(left)
    for member, group, at in joined:
        mine = (i.tenant == tenant) & (i.actor == member) & (i.target == group)
        first = select(func.min(i.at)).where(mine, i.verb == LEFT, i.at >= at)
        end = connection.execute(first).scalar()
        if end is not None:
            gone.append((member, group, end))
    rows: dict[int, Any] = {}
    for member, group, at in gone:
        for row in _end(connection, tenant, member, group, at):
            rows.setdefault(row.id, row)
    adjacency.ended(connection, tenant, [row for row in rows.values() if row.valid_to == FOREVER])


def _end(connection: Connection, tenant: str, member: int, group: int, at: int) -> list[Any]:
    """Edges that held longer, as they were, in both directions; each is given its end."""
    e = edges.c
    forth = (e.tenant == tenant) & (e.src == member) & (e.dst == group) & (e.kind == int(Kind.MEMBER_OF))
    joins = connection.execute(select(e.interaction).where(forth, e.at <= at, e.valid_to > at)).scalars()
    # By interaction: the group may have many members.
    both = (e.tenant == tenant) & e.interaction.in_(list(joins)) & e.kind.in_(_KINDS)
    rows = list(connection.execute(select(e.id, e.src, e.dst, e.kind, e.valid_to, e.folded).where(both)))
    if rows:
        here = (e.tenant == tenant) & (e.id == bindparam("edge"))
        # Folded: what was left counts no more, also where a clock ran ahead of ours.
        values = {"valid_to": at, "folded": True}
        connection.execute(update(edges).where(here).values(values), [{"edge": row.id} for row in rows])
    return rows
