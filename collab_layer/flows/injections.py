"""Answers that carried something of others, and rankings that are compared, kept for a while.

An answer only appends to a queue in memory. The queue is written half a second later, in one
batch off the event loop, and once more when the layer is closed. A process that is killed loses
what it had not written. Where the database refuses for so long that the queue is full, an answer
waits for the write and fails with it: nothing is handed out that could not be told of.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from sqlalchemy import Connection, select

from collab_layer.errors import StoreError
from collab_layer.graph import injections, names, rankings
from collab_layer.graph.engine import Database
from collab_layer.graph.injections import Row
from collab_layer.graph.tables import tenants
from collab_layer.types.entity import Entity
from collab_layer.types.injection import Use
from collab_layer.types.lift import Arm
from collab_layer.types.time import DAY, SECOND

log = logging.getLogger("collab_layer")

WRITE_AFTER_S, RETRY_AFTER_S = 0.5, 5.0
MOST = 10_000
"""Answers that wait in memory at most."""
PRUNE_EVERY, PRUNE_MOST = 3_600 * SECOND, 5_000
UNKNOWN = -1
"""Generation of an answer that was made outside a snapshot: its reader must be known already."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a ranking offered.

    Attributes:
        arm: How it was made.
        request: The owner's request on that day, as `stages.experiment.request`.
        version: Of the weights.
        places: Of each candidate, from 0, and the one it has in the other arm, None if that is not known.
    """

    arm: Arm
    request: int
    version: str
    places: Mapping[Entity, tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class Entry:
    """One answer; `at` microseconds, `generation` the tenant's when it was made."""

    tenant: str
    at: int
    entity: Entity
    principal: Entity | None
    purpose: str | None
    use: Use
    items: tuple[str, ...]
    generation: int
    offer: Offer | None = None


class InjectionLog:
    """One process's queue of answers, and its writer. `add` and `room` belong to the event loop."""

    def __init__(self, database: Database, threads: ThreadPoolExecutor, days: int, ranking_days: int) -> None:
        self.days, self.ranking_days = days, ranking_days
        self._database, self._threads = database, threads
        self._queue: deque[Entry] = deque()
        self._writing = threading.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._pruned: dict[str, int] = {}
        self._closed = False

    def since(self, now: int) -> int:
        """The moment before which no answer is told of any more, microseconds."""
        return now - self.days * DAY

    def rankings_since(self, now: int) -> int:
        """The same of rankings."""
        return now - self.ranking_days * DAY

    async def room(self) -> None:
        """Wait until there is room for an answer.

        Raises:
            StoreError: The queue is full and cannot be written.
        """
        if len(self._queue) >= MOST:
            await asyncio.get_running_loop().run_in_executor(self._threads, self.flush)

    def add(self, entry: Entry) -> None:
        """Keep an answer; it is written soon."""
        kept = replace(entry, items=entry.items if self.days else (), offer=entry.offer if self.ranking_days else None)
        if kept.items or kept.offer is not None:
            self._queue.append(kept)
            self._soon(WRITE_AFTER_S)

    def flush(self) -> None:
        """Write what waits. Blocking.

        Raises:
            StoreError: The database refused; nothing of the batch was written, all of it waits on.
        """
        with self._writing:
            batch = [self._queue.popleft() for _ in range(len(self._queue))]
            while batch:
                tenant = batch[0].tenant
                mine = [entry for entry in batch if entry.tenant == tenant]
                try:
                    self._write(tenant, mine)
                except BaseException:
                    self._queue.extendleft(reversed(batch))
                    raise
                batch = [entry for entry in batch if entry.tenant != tenant]

    def close(self) -> None:
        """Write what waits, and take no more. Blocking; called after the last answer."""
        self._closed = True
        try:
            self.flush()
        except StoreError as error:
            log.error("%d answers are missing in the injection log: %s", len(self._queue), error)

    def prune(self, tenant: str, now: int) -> bool:
        """Once an hour, remove what is kept long enough; whether it was time. Blocking."""
        if now < self._pruned.get(tenant, -DAY) + PRUNE_EVERY:
            return False
        self._pruned[tenant] = now
        for kept, since in ((injections.LOG, self.since(now)), (rankings.LOG, self.rankings_since(now))):
            more = PRUNE_MOST
            while more == PRUNE_MOST:
                with self._database.write() as connection:
                    more = kept.prune(connection, tenant, since, PRUNE_MOST)
        return True

    def _soon(self, after_s: float) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(after_s, self._start)

    def _start(self) -> None:
        self._timer = None
        if not self._closed:
            loop = asyncio.get_running_loop()
            try:
                loop.run_in_executor(self._threads, self.flush).add_done_callback(self._done)
            except RuntimeError:  # the layer is closing: `close` writes
                return

    def _done(self, written: asyncio.Future[None]) -> None:
        error = None if written.cancelled() else written.exception()
        if error is not None:
            log.warning("the injection log waits: %s", error)
            self._soon(RETRY_AFTER_S)

    def _write(self, tenant: str, entries: Sequence[Entry]) -> None:
        with self._database.write() as connection:
            names.share_with_erasure(connection, tenant)
            injections.add(connection, tenant, _rows(connection, tenant, entries))
            rankings.add(connection, tenant, _offers(connection, tenant, entries))


def _offers(connection: Connection, tenant: str, entries: Sequence[Entry]) -> list[rankings.Row]:
    """What was offered to owners that are known, of what is known."""
    made = [(entry, entry.offer) for entry in entries if entry.offer is not None]
    wanted = {str(one) for entry, offer in made for one in (entry.entity, *offer.places)}
    ids = names.find(connection, tenant, sorted(wanted))
    rows: list[rankings.Row] = []
    for entry, offer in made:
        places = {ids[str(one)]: place for one, place in offer.places.items() if str(one) in ids}
        if str(entry.entity) in ids and places:
            entity = ids[str(entry.entity)]
            rows.append(rankings.Row(entry.at, entity, offer.arm, offer.request, offer.version, places))
    return rows


def _rows(connection: Connection, tenant: str, entries: Sequence[Entry]) -> list[Row]:
    """Entries as rows; what was erased since they were made is left out, whole answers too."""
    entries = [entry for entry in entries if entry.items]
    query = select(tenants.c.generation).where(tenants.c.tenant == tenant)
    generation = connection.execute(query).scalar()
    wanted = {str(one) for entry in entries for one in (entry.entity, entry.principal) if one is not None}
    ids = names.find(connection, tenant, sorted(wanted))
    # A reader that was told something becomes known by it; one that was erased meanwhile does not.
    fresh = {
        reader
        for entry in entries
        if entry.generation == generation and not {str(entry.entity), str(entry.principal)} & ids.keys()
        for reader in [entry.principal or entry.entity]
    }
    if fresh:
        made = names.resolve(connection, tenant, sorted(fresh))
        ids.update((str(entity), id_) for entity, id_ in made.items())
    there = injections.known(connection, tenant, sorted({item for entry in entries for item in entry.items}))
    rows: list[Row] = []
    for entry in entries:
        principal = None if entry.principal is None else ids.get(str(entry.principal))
        entity = ids.get(str(entry.entity), principal)
        items = tuple(item for item in entry.items if item in there)
        gone = entity is None or (entry.principal is not None and principal is None)
        if entity is not None and not gone and items:
            rows.append(Row(entry.at, entity, principal, entry.purpose, entry.use, items))
    return rows
