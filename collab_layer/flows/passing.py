"""What time itself changes: records that end by themselves, and names that texts were read too early for.

In:   a tenant, the present.
Out:  what is over is noted, with its edges closed and what rests on it dropped; owners whose texts
      may name what became known only afterwards are queued to be read again.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from collab_layer.flows.edging import count_degrees
from collab_layer.flows.tools import Tools
from collab_layer.graph import latecomers, names, outbox, spans
from collab_layer.graph.tables import cards


def end_records(tools: Tools, tenant: str) -> int:
    """Note which records have run out; how many."""
    now, count = tools.now(), 0
    while True:
        with tools.store.database.read() as connection:
            if not spans.run_out(connection, tenant, now, most=1):
                return count
        with tools.store.database.write() as connection:
            names.lock(connection, tenant)
            over = spans.run_out(connection, tenant, now)
            spans.bring(connection, tools.store.adjacency, tenant, spans.ends(connection, tenant, over), now)
            _, rev = names.bump(connection, tenant)
            count_degrees(connection, tools.store.adjacency, tenant, _owners(connection, tenant, over), now, rev)
            count += len(over)


def reread(tools: Tools, tenant: str) -> int:
    """Queue the owners of texts that were said when a name was known, and read before it was told; how many."""
    with tools.store.database.read() as connection:
        if latecomers.since(connection, tenant) is None:
            return 0
    index = tools.store.index(tenant)
    with tools.store.database.write() as connection:
        names.lock(connection, tenant)
        at = latecomers.since(connection, tenant)
        if at is None:
            return 0
        with index.lock:
            index.refresh(connection)
            owners = sorted(index.said_after(at))
        latecomers.done(connection, tenant)
        outbox.queue_refresh(connection, tenant, owners)
        return len(owners)


def _owners(connection: Connection, tenant: str, numbers: list[int]) -> list[int]:
    mine = (cards.c.tenant == tenant) & cards.c.interaction.in_(numbers)
    return list(connection.execute(select(cards.c.owner).where(mine).distinct()).scalars())
