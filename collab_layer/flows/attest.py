"""Receipts to signed receipts; pending ones to completed ones.

load:   receipts that are due, the key of the deployment;
stages: sign;
save:   the signed receipt, under the same id.

The unsigned receipt is committed with the erasure it tells of. Whatever happens then, it is
signed when it is next read, or by the next worker.
"""

from __future__ import annotations

import logging

from collab_layer.errors import KeyFileError
from collab_layer.flows.tools import Tools
from collab_layer.governance import attest
from collab_layer.graph import receipts
from collab_layer.graph.receipts import PENDING, UNSIGNED
from collab_layer.types.erasure import ErasureReceipt
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


async def public_key(tools: Tools) -> str:
    """The public part of the key of this deployment, as PEM; made if it is not there yet.

    Raises:
        KeyFileError: The file cannot be used.
    """
    return await tools.in_thread(lambda: attest.pem(tools.keys.key()))


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
        left = {one.receipt.id: receipts.outstanding(connection, tenant, one.receipt.id) for one in held}
    now, changed = tools.now(), 0
    for old, state in held:
        fresh = old
        if state == PENDING and not left[old.id]:
            done = {"revision": old.revision + 1, "status": "complete", "pending": 0, "completed": moment(now)}
            fresh = old.model_copy(update=done)
        elif state != UNSIGNED:
            continue
        made = attest.sign(fresh, tools.keys.key())
        with tools.store.database.write() as connection:
            receipts.put(connection, tenant, made, state)
        changed += 1
    return changed


def _missed(tools: Tools, error: KeyFileError) -> None:
    if tools.keys.missed != str(error):  # once, not in every round of a worker
        log.warning("receipts wait for their signature: %s", error)
    tools.keys.missed = str(error)
