"""Work claimed, settled, retried, parked.

A unit of work is an entity with pending interactions. A claim carries a lease, a fencing
token and the tenant's generation; settling checks both in the same transaction that
applies the result, so that a worker that was too slow, or whose subject was erased
meanwhile, changes nothing.

Leases and delays go by the database's clock (`present`). One that lies farther ahead than any
can was told before that clock was set back, and is over.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, false, func, select, true, update

from collab_layer.errors import StaleLeaseError
from collab_layer.graph.engine import insert_of, upsert
from collab_layer.graph.ids import next_id
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
"""Interactions of one entity that one claim takes on."""

# Statements of every step are built once: building one costs more than running it.
_W, _O = work.c, outbox.c
_WAITS = (_W.tenant == bindparam("tenant")) & (_W.parked == false())
_FREE = (_W.lease_until <= present()) | (_W.lease_until > present() + LONGEST_LEASE)
_NEXT = select(_W.entity, _W.attempts, _W.refresh, _W.stores).where(_WAITS, _FREE).order_by(_W.due, _W.entity).limit(1)
_IS_DUE = (_W.due <= present()) | (_W.due > present() + LONGEST_DELAY)
_NEXT_DUE = _NEXT.where(_IS_DUE)
_SOME = exists().where(_W.tenant == tenants.c.tenant, _W.parked == false(), _FREE, _IS_DUE)
_DUE = select(tenants.c.tenant).where(_SOME).order_by(tenants.c.tenant)  # one look into the index for each
_ANY = select(_W.entity).where(_WAITS).limit(1)
_THIS = (_W.tenant == bindparam("whose")) & (_W.entity == bindparam("which"))
_TOKEN = select(_W.token).where(_THIS)
_LEASE = update(work).where(_THIS).values(token=bindparam("given"), lease_until=present() + bindparam("lease"))
_DONE = delete(work).where(_THIS)
_MINE = (_O.tenant == bindparam("whose")) & (_O.entity == bindparam("which"))
_PENDING = select(_O.interaction).where(_MINE).order_by(_O.interaction).limit(MAX_BATCH)
_LEFT = select(func.count()).where(_MINE)
_SETTLED = delete(outbox).where(_MINE, _O.interaction.in_(bindparam("these", expanding=True)))
_GENERATION = select(tenants.c.generation).where(tenants.c.tenant == bindparam("tenant"))


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


def queue(connection: Connection, tenant: str, pairs: Sequence[tuple[int, int]]) -> None:
    """Add (entity, interaction) pairs; an entity's work is one row, which keeps its place in line."""
    upsert(connection, outbox, [{"tenant": tenant, "entity": actor, "interaction": number} for actor, number in pairs])
    counts: dict[int, int] = {}
    for actor, _ in pairs:
        counts[actor] = counts.get(actor, 0) + 1
    rows = [_row(tenant, actor, pending=count) for actor, count in sorted(counts.items())]
    connection.execute(_more(connection.dialect.name), rows)


def queue_refresh(connection: Connection, tenant: str, owners: Sequence[int]) -> None:
    """Have the worker read these owners' records again: somebody may or may no longer read them."""
    rows = [_row(tenant, owner, refresh=True) for owner in owners]
    if rows:
        connection.execute(_again(connection.dialect.name), rows)


def claim(
    connection: Connection, tenant: str, *, lease: int = LEASE, ignore_due: bool = False, but: Collection[int] = ()
) -> Claim | None:
    """Lease the entity that has waited longest, none of `but`; None if nothing is due.

    Args:
        connection: In a write transaction.
        tenant: Whose.
        lease: For how long, microseconds, up to `LONGEST_LEASE`; then anybody may take it over.
        ignore_due: Also what is to be tried again only later.
        but: Entities to leave alone.
    """
    query = _NEXT if ignore_due else _NEXT_DUE
    if but:
        query = query.where(_W.entity.not_in(list(but)))
    if connection.dialect.name != "sqlite":
        query = query.with_for_update(skip_locked=True)
    row = connection.execute(query, {"tenant": tenant}).first()
    if row is None:
        return None
    token, this = next_id(), {"whose": tenant, "which": row.entity}
    connection.execute(_LEASE, {**this, "given": token, "lease": lease})
    pending = connection.execute(_PENDING, this).scalars()
    generation = connection.execute(_GENERATION, {"tenant": tenant}).scalar_one()
    only = tuple(json.loads(row.stores)) if row.refresh and row.stores else ()
    return Claim(tenant, row.entity, token, generation, row.attempts, row.refresh, tuple(pending), only)


def check(connection: Connection, held: Claim, name: str) -> Tenant:
    """Refuse to go on when the lease or the generation has moved on; where the tenant stands now.

    Raises:
        StaleLeaseError: Another worker has it, or something was erased since the claim.
    """
    stands = locked(connection, held.tenant)  # always before the work row, as writers do
    query = _TOKEN if connection.dialect.name == "sqlite" else _TOKEN.with_for_update()
    if connection.execute(query, {"whose": held.tenant, "which": held.entity}).scalar() != held.token:
        raise StaleLeaseError(name, "another worker has taken it over, or its grants changed")
    if stands.generation != held.generation:
        raise StaleLeaseError(name, "something was erased meanwhile; it is planned anew")
    return stands


def settle(connection: Connection, held: Claim) -> None:
    """The claim's interactions are done; what came in meanwhile stays due, what waits for a store a little later."""
    this = {"whose": held.tenant, "which": held.entity}
    for start in range(0, len(held.interactions), 500):
        connection.execute(_SETTLED, {**this, "these": held.interactions[start : start + 500]})
    left = connection.execute(_LEFT, this).scalar_one()
    row = (work.c.tenant == held.tenant) & (work.c.entity == held.entity)
    again = held.refresh and bool(held.waits)
    if left or again:
        values: dict[str, Any] = {"pending": left, "lease_until": 0, "attempts": 0, "reason": None}
        values |= {"due": present() + (OUTAGE_DELAY if held.waits else 0), "refresh": again}
        values |= {"stores": json.dumps(held.waits) if again else None}
        connection.execute(update(work).where(row).values(values))
    else:
        connection.execute(_DONE, this)


def release(connection: Connection, held: Claim) -> None:
    """Give the lease back without a mark against it."""
    connection.execute(update(work).where(*_mine(held)).values(lease_until=0))


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
    connection.execute(update(work).where(*_mine(held)).values(values))
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
    return list(connection.execute(_DUE).scalars())


def is_waiting(connection: Connection, tenant: str) -> bool:
    """Whether any entity waits, due or not, leased or not."""
    return connection.execute(_ANY, {"tenant": tenant}).first() is not None


def counts(connection: Connection, tenant: str) -> tuple[int, int]:
    """Entities waiting, and entities parked."""
    rows = connection.execute(
        select(work.c.parked, func.count()).where(work.c.tenant == tenant).group_by(work.c.parked)
    )
    found = {bool(parked): count for parked, count in rows}
    return found.get(False, 0), found.get(True, 0)


def _row(tenant: str, entity: int, *, pending: int = 0, refresh: bool = False) -> dict[str, Any]:
    values = (tenant, entity, pending, refresh, 0, 0, 0, False)
    return dict(zip(_QUEUED, values, strict=True))


@lru_cache
def _more(dialect: str) -> Any:
    statement = _put(dialect)
    kept = {"pending": _W.pending + statement.excluded.pending, "due": earlier(_W.due, statement.excluded.due)}
    return statement.on_conflict_do_update(index_elements=[_W.tenant, _W.entity], set_={**kept, "parked": False})


@lru_cache
def _again(dialect: str) -> Any:
    statement = _put(dialect)
    new = {name: statement.excluded[name] for name in ("refresh", "stores", "due", "parked", "token", "lease_until")}
    return statement.on_conflict_do_update(index_elements=[_W.tenant, _W.entity], set_=new)


def _put(dialect: str) -> Any:
    """A new row, due at once."""
    return insert_of(dialect, work).values({**{name: bindparam(name) for name in _QUEUED}, "due": present()})


def _mine(held: Claim) -> tuple[ColumnElement[bool], ...]:
    return (work.c.tenant == held.tenant, work.c.entity == held.entity, work.c.token == held.token)
