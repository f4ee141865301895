"""Lease, spread, settle, until told to stop.

One step takes some entities, or one where a model may be asked, and waited for. If they fail together
each is tried alone, so that a bad one holds up no other. A failure is retried with growing delays and
parked with its reason after five; the others go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sqlalchemy import select

from collab_layer.errors import (
    BackendError,
    CollabError,
    LayerClosedError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from collab_layer.flows import attest, consider, passing, scrub, sources
from collab_layer.flows.deliver import deliver, on_their_way
from collab_layer.flows.learning import Learning
from collab_layer.flows.nightly import Nightly
from collab_layer.flows.rounds import Rounds
from collab_layer.flows.served import look_back
from collab_layer.flows.share import lapse
from collab_layer.flows.spread import Spread, spread
from collab_layer.flows.tools import Tools
from collab_layer.graph import outbox
from collab_layer.graph.outbox import Claim
from collab_layer.graph.tables import tenants

log = logging.getLogger("collab_layer")

IDLE_S = 0.5
"""Pause of an embedded worker that found nothing; new work wakes it at once."""

LEARN_EVERY = 500
"""Passes between two looks whether to learn, of a worker that is never idle."""

LOOK_EVERY = 10
"""Tenants that are looked after between two looks whether there is work."""

FOLD_AT, FOLD_EVERY, FOLD_IDLE = 16, 50, 4
"""Deltas at which a node is packed ahead of its turn, passes between two looks, deltas when idle."""


class Step(NamedTuple):
    """Some entities' turn: how many interactions were settled, and who waits out an outage."""

    settled: int
    waits: tuple[int, ...] = ()


_ELSEWHERE = (StoreBusyError, StoreFullError, StoreReadOnlyError, StoreUnavailableError)
"""Errors that are no entity's: each alone would fare no better."""
_BROKEN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a plugin's linker, embedder or store raises that breaks its promise."""


async def step(tools: Tools, tenant: str, *, ignore_due: bool = False, but: Collection[int] = ()) -> Step | None:
    """Work off some entities; None if nothing is due."""
    claim = partial(_claim, tools, tenant, ignore_due, but)
    async with tools.taking(claim, partial(_give_back, tools)) as claims:
        done = await _work_off(tools, claims) if claims else None
    _lay_down(tools, claims)
    return done


def let_go(tools: Tools) -> None:
    """Release what the steps that the layer's closing broke off have in hand. Blocking."""
    try:
        _release(tools, list(tools.in_hand.values()))
    except StoreError as error:
        log.warning("what was in hand waits for its lease to end: %s", error)


async def _work_off(tools: Tools, claims: Sequence[Claim]) -> Step:
    so_far = Spread()
    try:
        await spread(tools, claims, so_far)
    except LayerClosedError:
        raise
    except (CollabError, OSError, *_BROKEN) as error:
        left = _left(claims, so_far)
        if len(claims) > 1 and not isinstance(error, _ELSEWHERE):
            steps = [await _work_off(tools, [claim]) for claim in left]
            waits = [entity for one in steps for entity in one.waits]
            return await _settled(tools, so_far, [], waits, sum(one.settled for one in steps))
        return await _settled(tools, so_far, [(claim, error) for claim in left])
    await tools.in_thread(_release, tools, _left(claims, so_far))
    return await _settled(tools, so_far)


def _left(claims: Sequence[Claim], so_far: Spread) -> list[Claim]:
    over = {claim.entity for claim in [*so_far.done, *(claim for claim, _ in so_far.failed)]}
    return [claim for claim in claims if claim.entity not in over]


async def _settled(
    tools: Tools,
    so_far: Spread,
    failed: Sequence[tuple[Claim, Exception]] = (),
    waits: Sequence[int] = (),
    more: int = 0,
) -> Step:
    """Note what failed, and whether it waits out an outage or is tried so many times."""
    waiting = list(waits)
    for claim, error in [*so_far.failed, *failed]:
        outage = isinstance(error, (OSError, StoreError)) or (isinstance(error, CollabError) and error.retryable)
        await _failed(tools, claim, error, outage)
        if outage:
            waiting.append(claim.entity)
    return Step(so_far.settled + more, tuple(waiting))


async def drain(tools: Tools, tenant: str) -> int:
    """Work off everything that is not parked, retries included; how many interactions were settled.

    What another worker holds is waited for, at most as long as its lease. What waits for a
    store that is down is left waiting; `health` counts it.
    """
    total = 0
    waiting: set[int] = set()
    while await tools.in_thread(_fold, tools, tenant):
        pass
    await lapse(tools, tenant)
    await tools.in_thread(passing.end_records, tools, tenant)
    while True:
        done = await step(tools, tenant, ignore_due=True, but=waiting)
        if done is not None:
            total += done.settled
            waiting.update(done.waits)
        elif await tools.in_thread(passing.reread, tools, tenant):
            continue
        elif await tools.in_thread(_waiting, tools, tenant) > len(waiting):  # after it: a worker may have queued
            await asyncio.sleep(0.02)
        else:
            break
    while await tools.in_thread(_fold, tools, tenant, FOLD_IDLE):
        pass
    whole, waits = True, True
    while waits:
        waits = await tools.in_thread(on_their_way, tools, tenant)  # before it is looked: a lease may end in between
        while await _deliver(tools, tenant, whole=whole):
            whole = False
        if waits:
            await asyncio.sleep(0.02)
    await sources.erase(tools, tenant)
    await tools.in_thread(look_back, tools, tenant)
    await tools.in_thread(scrub.scrub, tools)
    while await attest.settle(tools, tenant):
        pass
    return total


async def run(tools: Tools, tenant: str | None, wake: asyncio.Event) -> None:
    """Work until cancelled or the layer is closed; `tenant` None serves every tenant of the database.

    When it is idle it also tidies each tenant once a night, and begins to learn from what is new. Now and then it
    looks at the stores. Looking and learning run beside its other work.
    """
    shift = _Shift(tools, tenant)
    try:
        await _run(shift, wake)
    finally:
        await shift.rounds.stop()
        await shift.learning.stop()


async def _run(shift: _Shift, wake: asyncio.Event) -> None:
    while True:
        wake.clear()
        busy = False
        try:
            busy = await shift.work() or await shift.upkeep()
        except LayerClosedError:
            return
        except StoreError as error:
            log.warning("the worker waits: %s", error)
        if not busy:
            try:
                async with asyncio.timeout(IDLE_S):  # `wait_for` can swallow a cancellation on Python 3.11
                    await wake.wait()
            except TimeoutError:
                continue


@dataclass(slots=True)
class _Shift:
    """What one worker does, over all tenants that it serves."""

    tools: Tools
    tenant: str | None
    rounds: Rounds = field(default_factory=Rounds)
    learning: Learning = field(default_factory=Learning)
    nightly: Nightly = field(default_factory=Nightly)
    passes: int = -1
    begin: int = 0
    """The tenant that upkeep begins with: the one it was called away from."""

    async def work(self) -> bool:
        """A step in each tenant where something is due; whether anything was done."""
        tools, busy = self.tools, False
        self.passes += 1
        if self.passes % FOLD_EVERY == 0:
            for name in await self._served():
                await tools.in_thread(_fold, tools, name)
                await lapse(tools, name)
                await tools.in_thread(passing.end_records, tools, name)
                self.rounds.turn(tools, name)
        for name in await self._due():
            if self.passes % LEARN_EVERY == LEARN_EVERY - 1:
                self.learning.turn(tools, name)
            busy |= await step(tools, name) is not None
        for name in sorted({whose for whose, _ in tools.delivering if self.tenant in (None, whose)}):
            busy |= await _deliver(tools, name) > 0
        return busy

    async def upkeep(self) -> bool:
        """Look after one tenant after the other, as long as nothing is due; whether anything was done."""
        tools, busy = self.tools, False
        await tools.in_thread(scrub.scrub, tools)
        served = await self._served()
        for looked in range(len(served)):
            if looked % LOOK_EVERY == LOOK_EVERY - 1 and await self._due():
                self.begin += looked
                return True
            name = served[(self.begin + looked) % len(served)]
            busy |= await sources.erase(tools, name) > 0
            busy |= await attest.settle(tools, name) > 0
            await tools.in_thread(look_back, tools, name)
            busy |= await tools.in_thread(passing.reread, tools, name) > 0
            busy |= await self.nightly.turn(tools, name)
            self.rounds.turn(tools, name)
            self.learning.turn(tools, name)
        return busy

    async def _served(self) -> list[str]:
        return await self.tools.in_thread(_tenants, self.tools, self.tenant)

    async def _due(self) -> list[str]:
        due = await self.tools.in_thread(_due, self.tools)
        return [name for name in due if self.tenant in (None, name)]


async def _deliver(tools: Tools, tenant: str, *, whole: bool = False) -> int:
    if not tools.delivered_to(tenant):
        return 0
    try:
        return await deliver(tools, tenant, whole=whole)
    except BackendError as error:
        log.warning("delivery waits: %s", error)
        return 0


async def _failed(tools: Tools, claim: Claim, error: Exception, waits: bool) -> None:
    reason = f"{type(error).__name__}: {error}"
    if await tools.in_thread(_fail, tools, claim, reason, waits):
        log.error("work of entity %d was parked after %d tries: %s", claim.entity, outbox.MAX_ATTEMPTS, reason)


def unpark(tools: Tools, tenant: str) -> int:
    """A store came back: what was parked is tried again."""
    with tools.store.database.read() as connection:
        if outbox.counts(connection, tenant)[1] == 0:
            return 0
    with tools.store.database.write() as connection:
        return outbox.unpark(connection, tenant)


def _claim(tools: Tools, tenant: str, ignore_due: bool, but: Collection[int]) -> list[Claim]:
    with tools.store.database.read() as connection:
        free = outbox.free(connection, tenant, ignore_due=ignore_due)
    if not free:  # most looks find nothing: do not take the write lock
        return []
    share = 1 if tools.store.database.sqlite else outbox.SHARES  # there other workers would wait for this one anyway
    # A model is waited for: meanwhile others may take what this one does not.
    most = 1 if consider.asks(tools) else min(max(-(-free // share), outbox.FEW), outbox.AT_ONCE)
    with tools.store.database.write() as connection:
        claims = outbox.claim(connection, tenant, lease=tools.lease, ignore_due=ignore_due, but=but, most=most)
    tools.in_hand.update(((claim.tenant, claim.entity), claim) for claim in claims)
    return claims


def _lay_down(tools: Tools, claims: Sequence[Claim]) -> None:
    for claim in claims:
        tools.in_hand.pop((claim.tenant, claim.entity), None)


def _fold(tools: Tools, tenant: str, at_least: int = FOLD_AT) -> int:
    """Pack nodes that a large batch left with many deltas, before each neighbour reads them all."""
    adjacency = tools.store.adjacency
    now = tools.now()
    with tools.store.database.read() as connection:
        nodes = adjacency.crowded(connection, tenant, at_least, now=now)
    if not nodes:
        return 0
    with tools.store.database.write() as connection:
        return adjacency.fold(connection, tenant, nodes, at_least=at_least, now=now)


def _waiting(tools: Tools, tenant: str) -> int:
    with tools.store.database.read() as connection:
        return outbox.counts(connection, tenant)[0]


def _give_back(tools: Tools, claims: Sequence[Claim]) -> None:
    _release(tools, claims)
    _lay_down(tools, claims)


def _release(tools: Tools, claims: Sequence[Claim]) -> None:
    if claims:
        with tools.store.database.write() as connection:
            outbox.release(connection, claims)


def _fail(tools: Tools, claim: Claim, reason: str, waits: bool) -> bool:
    with tools.store.database.write() as connection:
        return outbox.fail(connection, claim, reason, retryable=waits)


def _due(tools: Tools) -> list[str]:
    """Tenants in which something can be taken on now."""
    with tools.store.database.read() as connection:
        return outbox.due(connection)


def _tenants(tools: Tools, tenant: str | None) -> list[str]:
    if tenant is not None:
        return [tenant]
    with tools.store.database.read() as connection:
        return list(connection.execute(select(tenants.c.tenant).order_by(tenants.c.tenant)).scalars())
