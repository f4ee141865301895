"""Receipts to signed receipts; pending ones to completed ones.

load:   receipts that are due, the key of the deployment;
stages: sign;
save:   the signed receipt, under the same id.

The unsigned receipt is committed with the erasure it tells of. Whatever happens then, it is
signed when it is next read, or by the next worker.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from sqlalchemy import Connection

from collab_layer.errors import KeyFileError
from collab_layer.flows.tools import Tools
from collab_layer.governance import attest
from collab_layer.graph import names, policy, receipts
from collab_layer.graph.erasing import Removed
from collab_layer.graph.receipts import PENDING, UNSIGNED, Owed
from collab_layer.types.erasure import Action, ErasureReceipt, Outcome
from collab_layer.types.scope import Scope
from collab_layer.types.time import moment

log = logging.getLogger("collab_layer")

BATCH = 100


async def settle(tools: Tools, tenant: str) -> int:
    """Sign what is unsigned, complete what is done; how many receipts. A key that cannot be used waits."""
    return await tools.in_thread(_settle, tools, tenant)


async def receipt(tools: Tools, tenant: str, id_: str) -> ErasureReceipt:
    """A receipt as it stands now.

    Raises:
        UnknownIdError: No such receipt in this tenant.
        KeyFileError: It is not signed yet, and cannot be.
    """
    return await tools.in_thread(_receipt, tools, tenant, id_)


async def listed(tools: Tools, scope: Scope, limit: int) -> list[ErasureReceipt]:
    """Receipts, newest first: all, or a principal's own, as far as they are about it or its grants."""
    return await tools.in_thread(_listed, tools, scope, limit)


async def public_key(tools: Tools) -> str:
    """The public part of the key of this deployment, as PEM; made if it is not there yet.

    Raises:
        KeyFileError: The file cannot be used.
    """
    return await tools.in_thread(lambda: attest.pem(tools.keys.key()))


def issue(
    connection: Connection,
    tools: Tools,
    tenant: str,
    subject: str,
    removed: Removed,
    *,
    action: Action = "forget",
    owed: Sequence[Owed] = (),
    unable: Collection[str] = (),
    generation: int = 0,
) -> str:
    """Keep what is erased in the transaction that erases, to be signed once it is committed; the receipt's id.

    Args:
        connection: The transaction.
        tools: For the clock.
        tenant: Whose.
        subject: What was asked to be erased.
        removed: What was.
        action: By which call.
        owed: What is to be erased in the owner's own stores.
        unable: Stores that promise no erasure.
        generation: The fence.
    """
    id_, salt, now = "r" + secrets.token_hex(16), secrets.token_hex(16), tools.now()
    receipts.await_retractions(connection, tenant, id_, removed.ids.get("derived", ()))
    receipts.await_erasure(connection, tenant, id_, owed)
    if removed.rows:
        receipts.await_file(connection, tenant, [id_])
    pending = receipts.outstanding(connection, tenant, id_)
    stores: dict[str, Outcome] = dict.fromkeys(unable, "unable")
    stores.update((one.backend, "pending") for one in owed)
    receipt = ErasureReceipt(
        id=id_,
        action=action,
        status="pending" if pending else "complete",
        at=moment(now),
        completed=None if pending else moment(now),
        salt=salt,
        subject=attest.hashed(salt, subject),
        removed=removed.rows,
        erased=attest.erased(removed.ids, salt),
        generation=generation,
        stores=dict(sorted(stores.items())),
        pending=pending,
    )
    receipts.add(connection, tenant, receipt)
    return id_


def signed(tools: Tools, tenant: str, id_: str) -> ErasureReceipt:
    """Sign a receipt that was just committed; as it is where the key cannot be used, and a log line.

    Blocking: runs in a thread of the layer.
    """
    try:
        _sign(tools, tenant, [id_])
    except KeyFileError as error:
        _missed(tools, error)
    with tools.store.database.read() as connection:
        return receipts.get(connection, tenant, id_).receipt


def _listed(tools: Tools, scope: Scope, limit: int) -> list[ErasureReceipt]:
    tenant, mine = scope.tenant, list[str]()
    with tools.store.database.read() as connection:
        if scope.principal is not None:
            name = str(scope.principal)
            id_ = names.find(connection, tenant, [name]).get(name)
            mine = [name, *([] if id_ is None else policy.ids_of(connection, tenant, id_))]
        found = (
            one
            for one in receipts.newest(connection, tenant)
            if scope.principal is None or one.subject in {attest.hashed(one.salt, subject) for subject in mine}
        )
        return list(islice(found, limit))


def _settle(tools: Tools, tenant: str) -> int:
    with tools.store.database.read() as connection:
        ids = receipts.due(connection, tenant, BATCH)
    if not ids:
        return 0
    try:
        return _sign(tools, tenant, ids)
    except KeyFileError as error:
        _missed(tools, error)
        return 0


def _receipt(tools: Tools, tenant: str, id_: str) -> ErasureReceipt:
    _sign(tools, tenant, [id_])
    with tools.store.database.read() as connection:
        return receipts.get(connection, tenant, id_).receipt


def _sign(tools: Tools, tenant: str, ids: list[str]) -> int:
    """Bring receipts up to what holds now; how many were written."""
    with tools.store.database.read() as connection:
        held = [receipts.get(connection, tenant, id_) for id_ in ids]
        seen = {
            old.id: (receipts.outstanding(connection, tenant, old.id), receipts.stores(connection, tenant, old))
            for old, state in held
            if state != receipts.COMPLETE
        }
    changed = 0
    for old, state in held:
        if old.id not in seen or (state == PENDING and seen[old.id][0]):
            continue
        made = attest.sign(_as_it_stands(old, state, *seen[old.id], tools.now()), tools.keys.key())
        with tools.store.database.write() as connection:
            receipts.put(connection, tenant, made, state)
        changed += 1
    return changed


def _as_it_stands(
    old: ErasureReceipt, state: str, left: int, stores: Mapping[str, Outcome], now: int
) -> ErasureReceipt:
    """The receipt with what is still awaited; what was signed before gets the next revision."""
    news: dict[str, object] = {"stores": dict(stores), "pending": left}
    if old.status == "pending" and not left:
        news |= {"status": "complete", "completed": moment(now)}
    if state != UNSIGNED:
        news["revision"] = old.revision + 1
    return old.model_copy(update=news)


def _missed(tools: Tools, error: KeyFileError) -> None:
    if tools.keys.missed != str(error):  # once, not in every round of a worker
        log.warning("receipts wait for their signature: %s", error)
    tools.keys.missed = str(error)
