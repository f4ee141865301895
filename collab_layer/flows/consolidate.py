"""Nightly upkeep of one tenant: a run of pages, each one transaction.

load:   one page: the items of some readers, or the edges of some entities;
stages: in `tidying`;
save:   a reader's changes with the place the run has come to, fenced by the tenant's generation
        and policy: what moved meanwhile is planned anew.

Killed at any point, the next run goes on behind the last page that was written. The owners' own
stores are never read or written here; deliveries to them are queued for a worker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter

from sqlalchemy import Connection, select

from collab_layer.errors import CollabError, StoreConflictError
from collab_layer.flows import scrub, tidying
from collab_layer.flows.tidying import Plan
from collab_layer.flows.tools import Tools
from collab_layer.graph import mending, names, nights, receipts, upkeep
from collab_layer.graph.nights import EDGES, ITEMS, Night
from collab_layer.graph.tables import tenants
from collab_layer.plugins.specs import Event
from collab_layer.types.upkeep import CHANGES, Consolidation

PAGE_ITEMS, PAGE_OWNERS, PAGE_NODES = 2_000, 100, 500
"""Items, readers and entities that are looked at in one snapshot."""
TRIES = 8
POLL_S = 0.1
Progress = Callable[[int, int], None]
"""Called with readers and entities done, and how many there are in all."""


@dataclass(slots=True)
class Run:
    """A run on its way.

    Attributes:
        night: Where it stands; that of a dry run is never saved.
        total: Readers and entities there were when it began.
        done: How many of them were looked at.
        over: It came to its end.
    """

    tenant: str
    night: Night
    dry: bool = False
    resumed: bool = False
    total: int = 0
    done: int = 0
    over: bool = False

    def report(self, seconds: float) -> Consolidation:
        """What it changed so far."""
        pages = 0 if self.dry else self.night.pages
        counts = {kind: count for kind, count in self.night.counts.items() if count}
        return Consolidation(dry_run=self.dry, resumed=self.resumed, pages=pages, seconds=seconds, **counts)


async def consolidate(
    tools: Tools, tenant: str, *, dry_run: bool = False, progress: Progress | None = None
) -> Consolidation:
    """Tidy one tenant; waits while somebody else is at it.

    Raises:
        StaleLeaseError: Another process took it over, since this one was too slow.
    """
    begun = perf_counter()
    run = await tools.in_thread(_dry, tools, tenant) if dry_run else await _begin(tools, tenant)
    if run is None:
        return Consolidation(dry_run=dry_run)
    try:
        while not run.over:
            await tools.in_thread(page, tools, run)
            if progress is not None:
                progress(min(run.done, run.total), run.total)
    finally:
        if not run.over and not dry_run:
            with suppress(CollabError):  # what went wrong first is what is told; the lease ends by itself
                await asyncio.shield(tools.in_thread(release, tools, run))
    tell(tools, run)
    return run.report(perf_counter() - begun)


def tell(tools: Tools, run: Run) -> None:
    """Tell the sinks that a run has come to its end."""
    if not run.dry:
        tools.tell(Event("consolidated", run.tenant, "", _changes(run)))


def claim(tools: Tools, tenant: str) -> Run | None:
    """Begin a run, or go on with one; None while somebody else is at it."""
    now = tools.now()
    with tools.store.database.write() as connection:
        before = nights.load(connection, tenant)
        night = nights.claim(connection, tenant, now)
        if night is None:
            return None
        return Run(tenant, night, resumed=night.started == before.started, total=_total(connection, tenant))


def release(tools: Tools, run: Run) -> None:
    """Let the next one go on at once."""
    with tools.store.database.write() as connection:
        nights.release(connection, run.tenant, run.night.token)


def page(tools: Tools, run: Run) -> None:
    """Do the next page of a run.

    Raises:
        StaleLeaseError: Another process took it over; nothing was changed.
    """
    if run.night.half == ITEMS:
        _items(tools, run)
    elif not _edges(tools, run):
        _finish(tools, run)


async def _begin(tools: Tools, tenant: str) -> Run | None:
    if not await tools.in_thread(_known, tools, tenant):
        return None
    while True:
        run = await tools.in_thread(claim, tools, tenant)
        if run is not None:
            return run
        await asyncio.sleep(POLL_S)


def _known(tools: Tools, tenant: str) -> bool:
    with tools.store.database.read() as connection:
        return connection.execute(select(tenants.c.tenant).where(tenants.c.tenant == tenant)).first() is not None


def _dry(tools: Tools, tenant: str) -> Run:
    with tools.store.database.read() as connection:
        return Run(tenant, Night(), dry=True, total=_total(connection, tenant))


def _total(connection: Connection, tenant: str) -> int:
    return upkeep.reader_count(connection, tenant) + mending.last_node(connection, tenant)


# -- readers ---------------------------------------------------------------------------------


def _items(tools: Tools, run: Run) -> None:
    plans = _plans(tools, run)
    for plan in plans:
        _settle(tools, run, plan)
        run.done += 1
    half, after = (ITEMS, run.night.after) if plans else (EDGES, 0)
    _keep(tools, run, half, after, {})


def _plans(tools: Tools, run: Run) -> list[Plan]:
    now = tools.now()
    with tools.store.database.read() as connection:
        found = upkeep.readers(connection, run.tenant, run.night.after, owners=PAGE_OWNERS, most=PAGE_ITEMS)
        owners = [owner for owner, _ in found]
        desk = tidying.open_desk(tools, connection, run.tenant, owners, now)
        return [tidying.plan(desk, owner) for owner in owners]


def _settle(tools: Tools, run: Run, plan: Plan) -> None:
    """Write one reader's changes, planned anew as often as something moved meanwhile."""
    for tried in range(TRIES):
        if run.dry or not plan.changes:
            run.night = replace(run.night, after=plan.owner, counts=_sum(run, plan.counts))
            return
        now = tools.now()
        try:
            with tools.store.database.write() as connection:
                if tried == TRIES - 1:  # it never stands still: plan it while nobody else writes
                    plan = tidying.plan(tidying.open_desk(tools, connection, run.tenant, [plan.owner], now), plan.owner)
                if _unmoved(connection, run.tenant, plan):
                    upkeep.apply(connection, run.tenant, plan.changes, now)
                    night = run.night.on(ITEMS, plan.owner, _sum(run, plan.counts))
                    nights.keep(connection, run.tenant, night)
                else:
                    night = None
        except StoreConflictError:
            if tried == TRIES - 1:
                raise
            night = None
        if night is not None:
            run.night = night
            return
        with tools.store.database.read() as connection:
            plan = tidying.plan(tidying.open_desk(tools, connection, run.tenant, [plan.owner], now), plan.owner)


def _unmoved(connection: Connection, tenant: str, plan: Plan) -> bool:
    """Whether a plan still rests on what there is; nobody else writes from now on."""
    names.lock(connection, tenant)
    fence, before = upkeep.fence(connection, tenant), upkeep.stamp(connection, tenant, plan.owner)
    return fence == plan.fence and before == plan.before


# -- edges -----------------------------------------------------------------------------------


def _edges(tools: Tools, run: Run) -> bool:
    """Compare the next entities with their edges; False behind the last of them."""
    now, tenant = tools.now(), run.tenant
    with tools.store.database.read() as connection:
        last = mending.last_node(connection, tenant)
        nodes = range(run.night.after + 1, min(run.night.after + PAGE_NODES, last) + 1)
        wrong = mending.look(connection, tenant, nodes, now)
    if not nodes:
        return False
    run.done += len(nodes)
    counts = {"nodes": len(nodes)}
    if wrong and not run.dry:
        with tools.store.database.write() as connection:
            names.lock(connection, tenant)
            wrong = mending.look(connection, tenant, nodes, now)
            mending.mend(connection, tools.store.adjacency, tenant, wrong)
            night = run.night.on(EDGES, nodes[-1], _sum(run, {**counts, **wrong.counts}))
            nights.keep(connection, tenant, night)
        run.night = night
    else:
        _keep(tools, run, EDGES, nodes[-1], {**counts, **wrong.counts})
    return True


# -- the run ---------------------------------------------------------------------------------


def _sum(run: Run, counts: Counter[str] | dict[str, int]) -> dict[str, int]:
    return dict(Counter(run.night.counts) + Counter(counts))


def _keep(tools: Tools, run: Run, half: str, after: int, counts: dict[str, int]) -> None:
    """Save the place of a page that changed nothing."""
    night = run.night.on(half, after, _sum(run, counts))
    if not run.dry:
        with tools.store.database.write() as connection:
            nights.keep(connection, run.tenant, night)
    run.night = night


def _finish(tools: Tools, run: Run) -> None:
    counts = _changes(run)
    if not run.dry:
        now = tools.now()
        with tools.store.database.write() as connection:
            nights.finish(connection, run.tenant, run.night)
            upkeep.note(connection, run.tenant, counts, now)
            if counts.get("expired"):
                receipts.await_file(connection, run.tenant)  # deleted words leave every byte
        scrub.at_once(tools)
    run.over = True


def _changes(run: Run) -> dict[str, int]:
    return {kind: run.night.counts[kind] for kind in CHANGES if run.night.counts.get(kind)}
