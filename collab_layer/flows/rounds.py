"""A worker's own look at the stores: what was written or deleted there past us is taken in by itself.

A store with a feed is asked for its news every `watch_every_s`; any other is compared record by record
every `sweep_every_s`, and so rarely that it is compared for a twentieth of the time at most. Of several
workers over one database one goes. A store that was down is looked at as soon as it answers again.

Runs beside the worker's other work, one look at each store at a time. Never raises into it.
"""

from __future__ import annotations

import asyncio
import logging
import time

from collab_layer.errors import BackendError, CollabError, LayerClosedError
from collab_layer.flows import bring
from collab_layer.flows.tools import Tools
from collab_layer.graph.engine import upsert
from collab_layer.graph.names import lock
from collab_layer.graph.tables import cursors
from collab_layer.ports.backend import Can, MemoryBackend
from collab_layer.types.scope import Scope

log = logging.getLogger("collab_layer")

RETRY_S = 2.0
"""After a look at a store that did not answer."""
PAUSE = 20.0
"""A store is left alone for so many times as long as the last look took."""
LOOKED = "*"
"""Stands in `cursors` where an owner's name stands otherwise: when a worker last looked, microseconds."""
Key = tuple[str, str]


class Rounds:
    """The looks of one worker, by (tenant, store name)."""

    def __init__(self) -> None:
        self._looks: dict[Key, asyncio.Task[None]] = {}
        self._ended: dict[Key, tuple[float, float]] = {}  # when, and for how long the store is left alone
        self._told: set[Key] = set()

    def turn(self, tools: Tools, tenant: str) -> None:
        """Begin to look at each store that is due; returns at once."""
        for store in tools.stores_of(tenant):
            key = (tenant, store.name)
            every = tools.watch_every_s if Can.WATCH in store.can else tools.sweep_every_s
            running = self._looks.get(key)
            if every and (running is None or running.done()) and self._is_due(tools, key):
                self._looks[key] = asyncio.ensure_future(self._look(tools, key, store, every))

    async def stop(self) -> None:
        """End what is under way; what was not taken in is found the next time."""
        looks = list(self._looks.values())
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    def _is_due(self, tools: Tools, key: Key) -> bool:
        ended, pause = self._ended.get(key, (0.0, 0.0))
        return time.monotonic() >= ended + (min(pause, RETRY_S) if key in tools.standing.missed else pause)

    async def _look(self, tools: Tools, key: Key, store: MemoryBackend, every: float) -> None:
        began, pause, (tenant, name) = time.monotonic(), every, key
        try:
            missed = tools.standing.caught_up(tenant, name)
            wait = 0.0 if missed else await tools.in_thread(_claim, tools, tenant, name, every)
            if wait:
                pause = wait
            else:
                await bring.reconcile(tools, Scope(tenant=tenant), store)
                tools.standing.up(tenant, name)
                self._told.discard(key)
                pause = max(every, PAUSE * (time.monotonic() - began))
        except LayerClosedError:
            return
        except BackendError as error:
            if error.retryable:
                tools.standing.down(tenant, name)
            self._tell(key, error)
        except (CollabError, OSError) as error:
            self._tell(key, error)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            log.exception("looking at `%s` stopped; it is tried again", name)  # an adapter broke its promise
        self._ended[key] = time.monotonic(), pause

    def _tell(self, key: Key, error: Exception) -> None:
        """Say once what is wrong, until it is well again."""
        if key not in self._told:
            self._told.add(key)
            log.warning("what changed in `%s` is not known: %s", key[1], error)


def _claim(tools: Tools, tenant: str, backend: str, every_s: float) -> float:
    """Seconds to wait, since another worker looked lately; 0 if it is ours to look."""
    with tools.store.database.read() as connection:
        wait = _wait(tools, bring.cursor_of(connection, tenant, backend, LOOKED), every_s)
    if wait:
        return wait
    with tools.store.database.write() as connection:
        lock(connection, tenant)
        wait = _wait(tools, bring.cursor_of(connection, tenant, backend, LOOKED), every_s)
        if not wait:
            row = {"tenant": tenant, "backend": backend, "owner": LOOKED, "cursor": str(tools.now()), "done": False}
            upsert(connection, cursors, [row], update=("cursor",))
        return wait


def _wait(tools: Tools, last: str | None, every_s: float) -> float:
    """A look that lies ahead of now was told by another clock, and counts for nothing."""
    passed = every_s if last is None else (tools.now() - int(last)) / 1_000_000
    return every_s - passed if 0 <= passed < every_s else 0.0


__all__ = ["Rounds"]
