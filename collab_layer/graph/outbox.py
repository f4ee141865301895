"""Work claimed, settled, retried, parked.

A unit of work is an entity with pending interactions. A claim carries a lease, a fencing
token and the tenant's generation; settling checks both in the same transaction that
applies the result, so that a worker that was too slow, or whose subject was erased
meanwhile, changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, false, func, select, true, update

from collab_layer.errors import StaleLeaseError
from collab_layer.graph.ids import next_id
from collab_layer.graph.names import Tenant, locked
from collab_layer.graph.tables import outbox, tenants, work
from collab_layer.types.time import SECOND

LEASE = 60 * SECOND
OUTAGE_DELAY = 5 * SECOND
MAX_ATTEMPTS = 5
MAX_BATCH = 500
"""Interactions of one entity that one claim takes on."""

# Statements of every step are built once: building one costs more than running it.
_W, _O = work.c, outbox.c
_WAITS = (_W.tenant == bindparam("tenant")) & (_W.parked == false())
_NEXT = (
    select(_W.entity, _W.attempts, _W.refresh, _W.stores)
    .where(_WAITS, _W.lease_until <= bindparam("now"))
    .order_by(_W.due, _W.entity)
    .limit(1)
)
_NEXT_DUE = _NEXT.where(_W.due <= bindparam("now"))
_ANY = select(_W.entity).where(_WAITS).limit(1)
_THIS = (_W.tenant == bindparam("whose")) & (_W.entity == bindparam("which"))
_TOKEN = select(_W.token).where(_THIS)
_LEASE = update(work).where(_THIS).values(token=bindparam("given"), lease_until=bindparam("until"))
_DONE = delete(work).where(_THIS)
_MINE = (_O.tenant == bindparam("whose")) & (_O.entity == bindparam("which"))
_PENDING = select(_O.interaction).where(_MINE).order_by(_O.interaction).limit(MAX_BATCH)
_LEFT = select(func.count()).where(_MINE)
_SETTLED = delete(outbox).where(_MINE, _O.interaction.in_(bindparam("these", expanding=True)))
_GENERATION = select(tenants.c.generation).where(tenants.c.tenant == bindparam("tenant"))


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


def claim(
    connection: Connection, tenant: str, now: int, *, ignore_due: bool = False, but: Collection[int] = ()
) -> Claim | None:
    """Lease the entity that has waited longest, none of `but`; None if nothing is due."""
    query = _NEXT if ignore_due else _NEXT_DUE
    if but:
        query = query.where(_W.entity.not_in(list(but)))
    if connection.dialect.name != "sqlite":
        query = query.with_for_update(skip_locked=True)
    row = connection.execute(query, {"tenant": tenant, "now": now}).first()
    if row is None:
        return None
    token, this = next_id(), {"whose": tenant, "which": row.entity}
    connection.execute(_LEASE, {**this, "given": token, "until": now + LEASE})
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


def settle(connection: Connection, held: Claim, now: int) -> None:
    """The claim's interactions are done; what came in meanwhile stays due, what waits for a store a little later."""
    this = {"whose": held.tenant, "which": held.entity}
    for start in range(0, len(held.interactions), 500):
        connection.execute(_SETTLED, {**this, "these": held.interactions[start : start + 500]})
    left = connection.execute(_LEFT, this).scalar_one()
    row = (work.c.tenant == held.tenant) & (work.c.entity == held.entity)
    again = held.refresh and bool(held.waits)
    if left or again:
        values: dict[str, Any] = {"pending": left, "lease_until": 0, "attempts": 0, "reason": None}
        values |= {"due": now + OUTAGE_DELAY if held.waits else now, "refresh": again}
        values |= {"stores": json.dumps(held.waits) if again else None}
        connection.execute(update(work).where(row).values(values))
    else:
        connection.execute(_DONE, this)


def release(connection: Connection, held: Claim) -> None:
    """Give the lease back without a mark against it."""
    connection.execute(update(work).where(*_mine(held)).values(lease_until=0))


def fail(connection: Connection, held: Claim, now: int, reason: str, *, retryable: bool = False) -> bool:
    """Note a failure: retry with doubling delays from one second, park after five; whether it was parked.

    An outage (`retryable`) is waited out: it is tried again every few seconds and never parked.
    """
    attempts = held.attempts + (0 if retryable else 1)
    parked = attempts >= MAX_ATTEMPTS
    delay = OUTAGE_DELAY if retryable else SECOND * 2 ** min(attempts - 1, 10)
    values = {
        "attempts": attempts,
        "parked": parked,
        "reason": reason[:500],
        "due": now + delay,
        "lease_until": 0,
    }
    connection.execute(update(work).where(*_mine(held)).values(values))
    return parked


def unpark(connection: Connection, tenant: str, now: int) -> int:
    """Try everything again that was parked; how many entities."""
    values = {"parked": False, "attempts": 0, "due": now}
    return connection.execute(
        update(work).where(work.c.tenant == tenant, work.c.parked == true()).values(values)
    ).rowcount


def disturb(connection: Connection, tenant: str, entity: int) -> None:
    """Its grants changed: a plan in flight must not be applied, the entity is taken up anew."""
    row = (work.c.tenant == tenant) & (work.c.entity == entity)
    connection.execute(update(work).where(row).values(token=0, lease_until=0))


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


def _mine(held: Claim) -> tuple[ColumnElement[bool], ...]:
    return (work.c.tenant == held.tenant, work.c.entity == held.entity, work.c.token == held.token)
