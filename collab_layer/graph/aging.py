"""A log whose heads have lines in a table of their own: removed head by head, the oldest first.

In:   ids of heads, or a moment.
Out:  rows removed, in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Table, delete, select

from collab_layer.graph.among import among, pages


class Log(NamedTuple):
    """The table of the heads, with `tenant`, `id` and `at`; the column of the lines that names a head."""

    heads: Table
    of: Column[Any]

    def prune(self, connection: Connection, tenant: str, before: int, most: int) -> int:
        """Remove the oldest heads from before a moment, at most so many; how many."""
        h = self.heads.c
        query = select(h.id).where(h.tenant == tenant, h.at < before).order_by(h.at).limit(most)
        ids = list(connection.execute(query).scalars())
        self.drop(connection, tenant, ids)
        return len(ids)

    def drop(self, connection: Connection, tenant: str, ids: Sequence[int]) -> None:
        """Remove heads with their lines."""
        lines, h = self.of.table, self.heads.c
        for part in pages(ids):
            mine = (lines.c.tenant == tenant) & among(connection, self.of, part)
            connection.execute(delete(lines).where(mine))
            connection.execute(delete(self.heads).where(h.tenant == tenant, among(connection, h.id, part)))


__all__ = ["Log"]
