"""Receipts of erasures, and what each still waits for.

In:   a receipt, inside the transaction that erased.
Out:  receipts by id; those that are to be signed, or whose last copy in a store is gone.
A receipt's state: `unsigned`, then `pending` or `complete`.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, Select, and_, delete, exists, func, insert, literal, or_, select, update

from collab_layer.errors import UnknownIdError
from collab_layer.graph.tables import awaiting, deliveries, receipts
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.time import micros

UNSIGNED, PENDING, COMPLETE = "unsigned", "pending", "complete"
RETRACT, ERASE = "retract", "erase"
"""What is awaited: a derived item taken back from a store; an owner's own record erased there."""


class Held(NamedTuple):
    """A receipt as it is stored."""

    receipt: ErasureReceipt
    state: str


def await_retractions(connection: Connection, tenant: str, id_: str) -> int:
    """Have a receipt wait for every copy that is now to be taken back from a store; how many."""
    d = deliveries.c
    columns = (d.tenant, literal(id_), literal(RETRACT), d.backend, d.item)
    rows = select(*columns).where(d.tenant == tenant, d.state == "retracting")
    names = ["tenant", "receipt", "kind", "backend", "ref"]
    connection.execute(insert(awaiting).from_select(names, rows))
    return outstanding(connection, tenant, id_)


def add(connection: Connection, tenant: str, receipt: ErasureReceipt) -> None:
    """Store a receipt that nobody has signed yet."""
    row = {"tenant": tenant, "id": receipt.id, "at": micros(receipt.at), "body": receipt.model_dump_json()}
    connection.execute(insert(receipts), [{**row, "state": UNSIGNED}])


def get(connection: Connection, tenant: str, id_: str) -> Held:
    """A receipt by its id.

    Raises:
        UnknownIdError: There is none.
    """
    r = receipts.c
    row = connection.execute(select(r.body, r.state).where(r.tenant == tenant, r.id == id_)).first()
    if row is None:
        raise UnknownIdError(id_)
    return Held(ErasureReceipt.model_validate_json(row.body), row.state)


def due(connection: Connection, tenant: str, most: int) -> list[str]:
    """Receipts that are to be signed, for the first time or as complete; oldest first."""
    r = receipts.c
    done = and_(r.state == PENDING, ~_open(tenant).where(awaiting.c.receipt == r.id).exists())
    query = select(r.id).where(r.tenant == tenant, r.state.in_((UNSIGNED, PENDING)), or_(r.state == UNSIGNED, done))
    return list(connection.execute(query.order_by(r.at, r.id).limit(most)).scalars())


def unsigned(connection: Connection, tenant: str) -> int:
    """How many wait for a signature."""
    r = receipts.c
    return connection.execute(
        select(func.count()).select_from(receipts).where(r.tenant == tenant, r.state == UNSIGNED)
    ).scalar_one()


def outstanding(connection: Connection, tenant: str, id_: str) -> int:
    """How many copies a receipt still waits for."""
    query = select(func.count()).select_from(_open(tenant).where(awaiting.c.receipt == id_).subquery())
    return connection.execute(query).scalar_one()


def put(connection: Connection, tenant: str, receipt: ErasureReceipt, before: str) -> None:
    """Replace a receipt by its signed or completed form, unless somebody else was faster."""
    r = receipts.c
    mine = (r.tenant == tenant) & (r.id == receipt.id) & (r.state == before)
    connection.execute(update(receipts).where(mine).values(body=receipt.model_dump_json(), state=receipt.status))
    if receipt.status == COMPLETE:
        a = awaiting.c
        connection.execute(delete(awaiting).where(a.tenant == tenant, a.receipt == receipt.id))


def _open(tenant: str) -> Select[tuple[str]]:
    """What still holds receipts up."""
    a, d = awaiting.c, deliveries.c
    there = exists().where(d.tenant == a.tenant, d.item == a.ref, d.backend == a.backend, d.state == "retracting")
    return select(a.ref).where(a.tenant == tenant, or_(a.kind == ERASE, there))
