"""Work claimed, settled, retried, parked.

A unit of work is an entity with pending interactions. A claim carries a lease, a fencing
token and the tenant's generation; settling checks both in the same transaction that
applies the result, so that a worker that was too slow, or whose subject was erased
meanwhile, changes nothing. Several units are claimed at once, each with a lease of its own:
some may be settled, and others given back.

Leases and delays go by the database's clock (`present`). One that lies farther ahead than any
can was told before that clock was set back, and is over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    delete,
    exists,
    false,
    func,
    not_,
    select,
    true,
    update,
)

from collab_layer.graph.among import one_of
from collab_layer.graph.engine import insert_of
from collab_layer.graph.ids import next_id
from collab_layer.graph.lean import Lean
from collab_layer.graph.names import Tenant, locked
from collab_layer.graph.present import earlier, present
from collab_layer.graph.tables import outbox, tenants, work
from collab_layer.types.time import SECOND

LEASE = 60 * SECOND
LONGEST_LEASE = 600 * SECOND
OUTAGE_DELAY = 5 * SECOND
MAX_ATTEMPTS = 5
LONGEST_DELAY = SECOND * 2 ** (MAX_ATTEMPTS - 1)
MAX_BATCH = 500
"""Interactions of one entity that one claim takes on, and of all that are claimed at once."""
AT_ONCE = 32
"""Entities that are claimed at once, unless fewer wait for each of `SHARES` workers; at least `FEW`."""
SHARES, FEW = 4, 8
REREAD = 100
"""Interactions that an entity counts for whose records are all read again: how many those are is not known before."""

# Statements of every step are built once: building one costs more than running it.
_W, _O = work.c, outbox.c
_WAITS = (_W.tenant == bindparam("tenant")) & (_W.parked == false())
_FREE = (_W.lease_until <= present()) | (_W.lease_until > present() + LONGEST_LEASE)
_ROW = (_W.entity, _W.attempts, _W.refresh, _W.stores, _W.pending)
_BUT = not_(one_of(_W.entity, "but"))
_NEXT = (
    select(*_ROW)
    .where(_WAITS, _FREE, _BUT)
    .order_by(_W.due, _W.entity)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_IS_DUE = (_W.due <= present()) | (_W.due > present() + LONGEST_DELAY)
_TAKEN, _TAKEN_DUE = Lean(_NEXT), Lean(_NEXT.where(_IS_DUE))
_SOME = exists().where(_W.tenant == tenants.c.tenant, _W.parked == false(), _FREE, _IS_DUE)
_DUE = Lean(select(tenants.c.tenant).where(_SOME).order_by(tenants.c.tenant))  # one look into the index for each
_FREE_ONES = select(_W.entity).where(_WAITS, _FREE).limit(AT_ONCE * SHARES)
_COUNT_FREE = Lean(select(func.count()).select_from(_FREE_ONES.subquery()))
_BY_PARKED = Lean(select(_W.parked, func.count()).where(_W.tenant == bindparam("tenant")).group_by(_W.parked))
_COUNT_DUE = Lean(select(func.count()).select_from(_FREE_ONES.where(_IS_DUE).subquery()))
_OURS = (_W.tenant == bindparam("whose")) & one_of(_W.entity, "which")
_TOKENS = Lean(select(_W.entity, _W.token).where(_OURS).order_by(_W.entity).with_for_update())
_LEASE = Lean(update(work).where(_OURS).values(token=bindparam("given"), lease_until=present() + bindparam("lease")))
_DONE = Lean(delete(work).where(_OURS))
_MINE = (_O.tenant == bindparam("whose")) & one_of(_O.entity, "which")
_PENDING = Lean(select(_O.entity, _O.interaction).where(_MINE).order_by(_O.entity, _O.interaction).limit(MAX_BATCH))
_LEFT = Lean(select(_O.entity, func.count()).where(_MINE).group_by(_O.entity))
_SETTLED = Lean(delete(outbox).where(_MINE, one_of(_O.interaction, "these")))
_GENERATION = Lean(select(tenants.c.generation).where(tenants.c.tenant == bindparam("tenant")))


_FEW_ROWS = 4
"""Rows up to which each is handed to the driver by itself."""
_QUEUED = ("tenant", "entity", "pending", "refresh", "lease_until", "token", "attempts", "parked")


@dataclass(frozen=True, slots=True)
class Claim:
    """One entity's pending work, leased.

    Attributes:
        refresh: Its records are to be read again.
        only: Those of these stores alone; all if empty.
        waits: Stores that do not answer: what of it needs them is left for later.
    """

    tenant: str
    entity: int
    token: int
    generation: int
    attempts: int
    refresh: bool
    interactions: tuple[int, ...]
    only: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()


def rows_of(tenant: str, pairs: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """New (entity, interaction) pairs as rows of `outbox`, to be stored before they are queued."""
    return [{"tenant": tenant, "entity": actor, "interaction": number} for actor, number in pairs]


def queue(connection: Connection, tenant: str, pairs: Sequence[tuple[int, int]]) -> None:
    """Have (entity, interaction) pairs worked off; an entity's work is one row, which keeps its place in line."""
    counts = Counter(actor for actor, _ in pairs)
    rows = [_row(tenant, actor, pending=count) for actor, count in sorted(counts.items())]
    more = _more(connection.dialect.name)
    if len(rows) <= _FEW_ROWS:
        for row in rows:
            more.run(connection, row)
    else:
        more.each(connection, rows)


def queue_refresh(connection: Connection, tenant: str, owners: Sequence[int]) -> None:
    """Have the worker read these owners' records again: somebody may or may no longer read them."""
    rows = [_row(tenant, owner, refresh=True) for owner in owners]
    if rows:
        connection.execute(_again(connection.dialect.name), rows)


def free(connection: Connection, tenant: str, *, ignore_due: bool = False) -> int:
    """How many entities could be claimed now, counted up to `AT_ONCE * SHARES`."""
    ((found,),) = (_COUNT_FREE if ignore_due else _COUNT_DUE).tuples(connection, {"tenant": tenant})
    return found


def claim(
    connection: Connection,
    tenant: str,
    *,
    lease: int = LEASE,
    ignore_due: bool = False,
    but: Collection[int] = (),
    most: int = 1,
) -> list[Claim]:
    """Lease the entities that have waited longest, none of `but`; none if nothing is due.

    Args:
        connection: In a write transaction.
        tenant: Whose.
        lease: For how long, microseconds, up to `LONGEST_LEASE`; then anybody may take it over.
        ignore_due: Also what is to be tried again only later.
        but: Entities to leave alone.
        most: At most so many, and with `MAX_BATCH` interactions in all, unless the first alone has more.
    """
    taken = _TAKEN if ignore_due else _TAKEN_DUE
    rows = _light(taken.rows(connection, {"tenant": tenant, "most": most, "but": sorted(but)}))
    if not rows:
        return []
    token, these = next_id(), {"whose": tenant, "which": [row.entity for row in rows]}
    _LEASE.run(connection, {**these, "given": token, "lease": lease})
    pending: dict[int, list[int]] = {}
    for entity, number in _PENDING.tuples(connection, these):
        pending.setdefault(entity, []).append(number)
    ((generation,),) = _GENERATION.tuples(connection, {"tenant": tenant})
    out: list[Claim] = []
    for row in rows:
        only = tuple(json.loads(row.stores)) if row.refresh and row.stores else ()
        mine = tuple(pending.get(row.entity, ()))
        out.append(Claim(tenant, row.entity, token, generation, row.attempts, bool(row.refresh), mine, only))
    return out


def check(connection: Connection, held: Sequence[Claim]) -> tuple[Tenant, list[Claim]]:
    """Where the tenant stands now, and which of some claims of it are still ours.

    The others another worker has, or their grants changed; all are lost when something was erased
    since they were claimed. The tenant's row and those of the claims are ours until the commit.
    """
    tenant = held[0].tenant
    stands = locked(connection, tenant)  # always before the work rows, as writers do
    tokens = dict[int, int](_TOKENS.tuples(connection, {"whose": tenant, "which": _entities(held)}))
    return stands, [one for one in held if tokens.get(one.entity) == one.token and one.generation == stands.generation]


def settle(connection: Connection, held: Sequence[Claim]) -> None:
    """The claims' interactions are done; what came in meanwhile stays due, what waits for a store a little later."""
    if not held:
        return
    these = {"whose": held[0].tenant, "which": _entities(held)}
    numbers = [number for one in held for number in one.interactions]
    for start in range(0, len(numbers), MAX_BATCH):
        _SETTLED.run(connection, {**these, "these": numbers[start : start + MAX_BATCH]})
    left = dict[int, int](_LEFT.tuples(connection, these))
    done: list[Claim] = []
    for one in held:
        again = one.refresh and bool(one.waits)
        if not again and one.entity not in left:
            done.append(one)
            continue
        values: dict[str, Any] = {"pending": left.get(one.entity, 0), "lease_until": 0, "attempts": 0, "reason": None}
        values |= {"due": present() + (OUTAGE_DELAY if one.waits else 0), "refresh": again}
        values |= {"stores": json.dumps(one.waits) if again else None}
        connection.execute(update(work).where(*_held(one)).values(values))
    if done:
        _DONE.run(connection, {**these, "which": _entities(done)})


def release(connection: Connection, held: Sequence[Claim]) -> None:
    """Give leases back without a mark against them."""
    for one in held:
        connection.execute(update(work).where(*_held(one)).values(lease_until=0))


def fail(connection: Connection, held: Claim, reason: str, *, retryable: bool = False) -> bool:
    """Note a failure: retry with doubling delays from one second, park after five; whether it was parked.

    An outage (`retryable`) is waited out: it is tried again every few seconds and never parked.
    """
    attempts = held.attempts + (0 if retryable else 1)
    parked = attempts >= MAX_ATTEMPTS
    delay = OUTAGE_DELAY if retryable else min(SECOND * 2 ** (attempts - 1), LONGEST_DELAY)
    values = {
        "attempts": attempts,
        "parked": parked,
        "reason": reason[:500],
        "due": present() + delay,
        "lease_until": 0,
    }
    connection.execute(update(work).where(*_held(held)).values(values))
    return parked


def unpark(connection: Connection, tenant: str) -> int:
    """Try everything again that was parked; how many entities."""
    values = {"parked": False, "attempts": 0, "due": present()}
    return connection.execute(
        update(work).where(work.c.tenant == tenant, work.c.parked == true()).values(values)
    ).rowcount


def disturb(connection: Connection, tenant: str, entity: int) -> None:
    """Its grants changed: a plan in flight must not be applied, the entity is taken up anew."""
    row = (work.c.tenant == tenant) & (work.c.entity == entity)
    connection.execute(update(work).where(row).values(token=0, lease_until=0))


def due(connection: Connection) -> list[str]:
    """The tenants that have something to take on now, in order."""
    return [tenant for (tenant,) in _DUE.tuples(connection, {})]


def counts(connection: Connection, tenant: str) -> tuple[int, int]:
    """Entities waiting, and entities parked."""
    found = {bool(parked): count for parked, count in _BY_PARKED.tuples(connection, {"tenant": tenant})}
    return found.get(False, 0), found.get(True, 0)


def _row(tenant: str, entity: int, *, pending: int = 0, refresh: bool = False) -> dict[str, Any]:
    values = (tenant, entity, pending, refresh, 0, 0, 0, False)
    return dict(zip(_QUEUED, values, strict=True))


@lru_cache
def _more(dialect: str) -> Lean:
    statement = _put(dialect)
    kept = {"pending": _W.pending + statement.excluded.pending, "due": earlier(_W.due, statement.excluded.due)}
    return Lean(statement.on_conflict_do_update(index_elements=[_W.tenant, _W.entity], set_={**kept, "parked": False}))


@lru_cache
def _again(dialect: str) -> Any:
    statement = _put(dialect)
    new = {name: statement.excluded[name] for name in ("refresh", "stores", "due", "parked", "token", "lease_until")}
    return statement.on_conflict_do_update(index_elements=[_W.tenant, _W.entity], set_=new)


def _put(dialect: str) -> Any:
    """A new row, due at once."""
    return insert_of(dialect, work).values({**{name: bindparam(name) for name in _QUEUED}, "due": present()})


def _light(rows: Sequence[Any]) -> list[Any]:
    """The first of them that together are no more than one claim may take on; one at least."""
    taken, size = list[Any](), 0
    for row in rows:
        size += max(row.pending, REREAD if row.refresh else 1)
        if taken and size > MAX_BATCH:
            break
        taken.append(row)
    return taken


def _entities(held: Sequence[Claim]) -> list[int]:
    return [one.entity for one in held]


def _held(held: Claim) -> tuple[ColumnElement[bool], ...]:
    return (work.c.tenant == held.tenant, work.c.entity == held.entity, work.c.token == held.token)
