"""A worker's own turn at upkeep: one page at a time, whenever there is nothing else to do.

Which tenant is due, and who is at it, is decided in the database; here is only kept when to
look again.
"""

from __future__ import annotations

import logging

from collab_layer.errors import StaleLeaseError, StoreError
from collab_layer.flows import consolidate
from collab_layer.flows.consolidate import Run
from collab_layer.flows.tools import Tools
from collab_layer.graph import nights
from collab_layer.types.time import DAY

log = logging.getLogger("collab_layer")


class Nightly:
    """The runs that one worker has begun, and when to look at which tenant again."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._again: dict[str, int] = {}

    async def turn(self, tools: Tools, tenant: str) -> bool:
        """Do one page for a tenant if its hour has come; whether anything was done.

        Raises:
            StoreError: The database refused; it is tried again when the lease has ended.
        """
        hour = tools.consolidate_hour
        if hour is None or tools.now() < self._again.get(tenant, 0):
            return False
        try:
            return await self._page(tools, tenant, hour)
        except StaleLeaseError:  # this worker was busy for long, and another one goes on
            self._forget(tenant, tools.now() + nights.LEASE)
        except StoreError:
            self._forget(tenant, tools.now() + nights.LEASE)
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            log.exception("the nightly upkeep of `%s` stopped; it is tried again the next night", tenant)
            self._forget(tenant, _tonight(tools.now(), hour))
        return False

    async def _page(self, tools: Tools, tenant: str, hour: int) -> bool:
        run = self._runs.get(tenant) or await tools.in_thread(_claim, tools, tenant, hour)
        if run is None:
            # In a minute, or at the hour if that is sooner: who is at it now may die.
            self._again[tenant] = min(tools.now() + nights.LEASE, _tonight(tools.now(), hour))
            return False
        self._runs[tenant] = run
        await tools.in_thread(consolidate.page, tools, run)
        if run.over:
            del self._runs[tenant]
            consolidate.tell(tools, run)
        return True

    def _forget(self, tenant: str, again: int) -> None:
        self._runs.pop(tenant, None)
        self._again[tenant] = again


def _claim(tools: Tools, tenant: str, hour: int) -> Run | None:
    with tools.store.database.read() as connection:
        if not nights.due(connection, tenant, tools.now(), hour):
            return None
    return consolidate.claim(tools, tenant)


def _tonight(now: int, hour: int) -> int:
    """The next time that it is that hour, UTC."""
    return (nights.night_of(now, hour) + 1) * DAY + hour * DAY // 24
