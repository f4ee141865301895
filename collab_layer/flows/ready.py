"""Whether the database answers: one read of nothing."""

from __future__ import annotations

from sqlalchemy import select

from collab_layer.flows.tools import Tools
from collab_layer.graph.tables import tenants


async def ping(tools: Tools) -> None:
    """Read nothing.

    Raises:
        StoreError: The database cannot be reached, or its tables are not there.
    """
    await tools.in_thread(_ping, tools)


def _ping(tools: Tools) -> None:
    with tools.store.database.read() as connection:
        connection.execute(select(tenants.c.tenant).limit(1)).first()
