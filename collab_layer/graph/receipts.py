"""Receipts of erasures, and what each still waits for.

In:   a receipt, inside the transaction that erased.
Out:  receipts by id; those that are to be signed, or whose last copy in a store is gone.
A receipt's state: `unsigned`, then `pending` or `complete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Select, and_, delete, exists, func, insert, literal, or_, select, update

from collab_layer.errors import UnknownIdError
from collab_layer.graph.among import among, pages
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import awaiting, deliveries, receipts
from collab_layer.types.erasure import ErasureReceipt, Outcome
from collab_layer.types.time import micros

UNSIGNED, PENDING, COMPLETE = "unsigned", "pending", "complete"
RETRACT, ERASE, OWNER, PARTLY, FILE = "retract", "erase", "owner", "partly", "file"
"""What is awaited: a derived item taken back from a store; a record erased there; all of an owner; our own
file written anew, since SQLite leaves copies of rows that it moved.

`partly-…` is waited for no more: the store erased what it can, and says that it keeps something.
"""
_COLUMNS = ["tenant", "receipt", "kind", "backend", "ref"]


class Owed(NamedTuple):
    """Something to be erased at a store: a record by its native id, or all of an owner by name."""

    kind: str
    backend: str
    ref: str


class Held(NamedTuple):
    """A receipt as it is stored."""

    receipt: ErasureReceipt
    state: str


def await_retractions(connection: Connection, tenant: str, id_: str, items: Iterable[str]) -> None:
    """Have a receipt wait until these derived items are taken back from every store."""
    d = deliveries.c
    columns = (d.tenant, literal(id_), literal(RETRACT), d.backend, d.item)
    for part in pages(sorted(items)):
        mine = (d.tenant == tenant) & among(connection, d.item, part) & (d.state == "retracting")
        connection.execute(insert(awaiting).from_select(_COLUMNS, select(*columns).where(mine)))


def await_erasure(connection: Connection, tenant: str, id_: str, owed: Iterable[Owed]) -> None:
    """Have a receipt wait until these are erased where they lie."""
    rows = [{"tenant": tenant, "receipt": id_, **one._asdict()} for one in owed]
    if rows:
        connection.execute(insert(awaiting), rows)


def await_each(connection: Connection, tenant: str, owner: Owed, refs: Iterable[str]) -> None:
    """Have whatever waits for an owner at a store wait for these records of it too."""
    rows = [
        {"tenant": tenant, "receipt": id_, "kind": ERASE, "backend": owner.backend, "ref": ref}
        for id_ in sorted(waiting_for(connection, tenant, [owner]))
        for ref in refs
    ]
    upsert(connection, awaiting, rows)


def await_file(connection: Connection, tenant: str, ids: Iterable[str] = ()) -> None:
    """Have receipts wait until no byte of our file is left of what is erased (SQLite).

    Without any the file is written anew just the same: what was erased has no receipt.
    """
    if connection.dialect.name == "sqlite":
        of = list(ids) or [f"x{next_id()}"]
        rows = [{"tenant": tenant, "receipt": id_, "kind": FILE, "backend": "", "ref": ""} for id_ in of]
        upsert(connection, awaiting, rows)


def file_owed(connection: Connection) -> frozenset[tuple[str, str]]:
    """Receipts of every tenant that wait for our file, as (tenant, id)."""
    a = awaiting.c
    rows = connection.execute(select(a.tenant, a.receipt).where(a.kind == FILE))
    return frozenset((row.tenant, row.receipt) for row in rows)


def file_done(connection: Connection, done: Iterable[tuple[str, str]]) -> None:
    """Note that these wait for our file no more."""
    a = awaiting.c
    for tenant, id_ in done:
        connection.execute(delete(awaiting).where(a.tenant == tenant, a.receipt == id_, a.kind == FILE))


def waiting_for(connection: Connection, tenant: str, done: Sequence[Owed]) -> set[str]:
    """Receipts that wait for any of these at a store."""
    a, found = awaiting.c, set[str]()
    for one in done:
        mine = (a.tenant == tenant) & (a.kind == one.kind) & (a.backend == one.backend) & (a.ref == one.ref)
        found.update(connection.execute(select(a.receipt).where(mine)).scalars())
    return found


def owed(connection: Connection, tenant: str, backend: str, most: int) -> list[Owed]:
    """What is still to be erased at a store, whichever receipt waits for it; an owner as a whole comes last."""
    a = awaiting.c
    here = (a.tenant == tenant) & (a.backend == backend) & a.kind.in_((ERASE, OWNER))
    query = select(a.kind, a.backend, a.ref).where(here).distinct().order_by(a.kind, a.ref).limit(most)
    return [Owed(*row) for row in connection.execute(query)]


def is_owed(connection: Connection, tenant: str, backend: str) -> bool:
    """Whether anything is still to be erased at a store."""
    return bool(owed(connection, tenant, backend, 1))


def erased(connection: Connection, tenant: str, done: Sequence[Owed], *, partly: bool) -> None:
    """Note that a store erased these, or all that it can of them."""
    a = awaiting.c
    for one in done:
        same = (a.tenant == tenant) & (a.backend == one.backend) & (a.ref == one.ref)
        mine, kept = same & (a.kind == one.kind), f"{PARTLY}-{one.kind}"
        if partly:
            connection.execute(delete(awaiting).where(same, a.kind == kept))
            connection.execute(update(awaiting).where(mine).values(kind=kept))
        else:
            connection.execute(delete(awaiting).where(mine))


def stores(connection: Connection, tenant: str, receipt: ErasureReceipt) -> dict[str, Outcome]:
    """How far each store is that was asked to erase."""
    a = awaiting.c
    rows = connection.execute(select(a.backend, a.kind).where(a.tenant == tenant, a.receipt == receipt.id).distinct())
    found: dict[str, set[str]] = {}
    for backend, kind in rows:
        found.setdefault(backend, set()).add(kind)
    out: dict[str, Outcome] = {}
    for name, was in receipt.stores.items():
        kinds = found.get(name, set())
        if was == "unable":
            out[name] = was
        elif kinds & {ERASE, OWNER}:
            out[name] = "pending"
        else:
            out[name] = "partly" if any(kind.startswith(PARTLY) for kind in kinds) else "erased"
    return out


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


def newest(connection: Connection, tenant: str) -> Iterator[ErasureReceipt]:
    """Every receipt as it is stored, newest first."""
    r = receipts.c
    for body in connection.execute(select(r.body).where(r.tenant == tenant).order_by(r.at.desc(), r.id)).scalars():
        yield ErasureReceipt.model_validate_json(body)


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
    return select(a.ref).where(a.tenant == tenant, or_(a.kind.in_((ERASE, OWNER, FILE)), there))
