"""A Graphiti driver that keeps every group in one FalkorDB graph; use it for your own Graphiti too.

In:   the arguments of Graphiti's `FalkorDriver`.
Out:  a driver whose group ids are a filter on records, and whose time filters are exact.

Graphiti's own driver gives each group a graph. Some of its calls then look into the wrong
one, and a search for an unknown group makes one. And it indexes the times, which it stores
as text: FalkorDB gives wrong rows for `<` and `<=` there. Here clones are the driver itself
and the times have no index. The index on `uuid` stays, so Graphiti's `uuid_cursor` does too
what it did: do not page with it.
"""

from __future__ import annotations

import asyncio
import re
from typing import cast

from graphiti_core.driver.driver import GraphDriver
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.graph_queries import get_fulltext_indices, get_range_indices

TIME_FIELDS = frozenset({"created_at", "expired_at", "valid_at", "invalid_at"})
_RANGE_INDEX = re.compile(r"(?P<head>CREATE INDEX FOR .+ ON )\((?P<fields>[^()]+)\)")


def without_time_fields(query: str) -> str | None:
    """A range index query without its time fields; None if no field is left.

    Raises:
        ValueError: It is none.
    """
    match = _RANGE_INDEX.fullmatch(query.strip())
    if match is None:
        raise ValueError(f"not a range index query: {query}")
    fields = [field.strip() for field in match["fields"].split(",")]
    kept = [field for field in fields if field.partition(".")[2] not in TIME_FIELDS]
    return f"{match['head']}({', '.join(kept)})" if kept else None


class SharedFalkorDriver(FalkorDriver):
    """One physical graph for all groups, with exact time filters."""

    def clone(self, database: str) -> GraphDriver:
        """The driver itself: there is no graph per group."""
        return self

    async def ready(self) -> None:
        """Wait for the index build that making the driver schedules where a loop runs."""
        building = cast("asyncio.Task[None] | None", self._init_task)  # pyright: ignore[reportUnknownMemberType]
        if building is not None:
            await building

    def index_queries(self) -> list[str]:
        """Graphiti's indices except those on times."""
        ranges = [without_time_fields(query) for query in get_range_indices(self.provider)]
        return [*(query for query in ranges if query is not None), *get_fulltext_indices(self.provider)]

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
        """Make the indices.

        Args:
            delete_existing: Drop all others first.
        """
        if delete_existing:
            await self.delete_all_indexes()
        for query in self.index_queries():
            await self.execute_query(query)


__all__ = ["TIME_FIELDS", "SharedFalkorDriver", "without_time_fields"]
