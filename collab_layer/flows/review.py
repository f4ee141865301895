"""Records held back to what a person decides about them: shown from now on, or erased.

Each decision is a row in the audit table. Erasing goes through `forget`, receipt and all.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, insert

from collab_layer.errors import BackendError
from collab_layer.flows.erase import forget_card
from collab_layer.flows.tools import Tools
from collab_layer.graph import names, outbox, policy, quarantine
from collab_layer.graph.ids import next_id
from collab_layer.graph.quarantine import Held
from collab_layer.graph.tables import audit
from collab_layer.stages import tokens
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.review import Quarantined
from collab_layer.types.scope import Level
from collab_layer.types.time import moment


async def listed(tools: Tools, tenant: str) -> list[Quarantined]:
    """Every record that is held back, newest first; words that only a store has are asked for there."""
    found = await tools.in_thread(_listed, tools, tenant)
    said = await _from_stores(tools, tenant, found)
    return [_shown(one, said) for one in found]


async def release(tools: Tools, tenant: str, id_: str) -> None:
    """Let a record be read by whom its owner's grants let.

    Raises:
        UnknownIdError: No such record is held back.
    """
    await tools.in_thread(_release, tools, tenant, id_)


async def drop(tools: Tools, tenant: str, id_: str) -> ErasureReceipt:
    """Erase a record that is held back.

    Raises:
        UnknownIdError: No such record is held back.
    """

    def noted(connection: Connection) -> None:
        _note(connection, tenant, quarantine.held(connection, tenant, id_), "drop", tools.now())

    return await tools.in_thread(forget_card, tools, tenant, id_, noted)


def _listed(tools: Tools, tenant: str) -> list[Held]:
    with tools.store.database.read() as connection:
        return quarantine.listed(connection, tenant)


async def _from_stores(tools: Tools, tenant: str, found: Sequence[Held]) -> dict[tuple[str, str], str]:
    said: dict[tuple[str, str], str] = {}
    for name in sorted({one.backend for one in found if one.text is None and one.backend}):
        backend = tools.backends.get((tenant, name))
        if backend is None:
            continue
        refs = [_ref(one) for one in found if one.text is None and one.backend == name]
        try:
            records = await backend.read(refs)
        except BackendError:
            continue  # shown without its words; `health` tells how the store is
        said.update(((name, record.ref.id), record.text) for record in records)
    return said


def _shown(one: Held, said: dict[tuple[str, str], str]) -> Quarantined:
    text = said.get((one.backend, one.native_id)) if one.text is None else one.text
    parts = [part for part in (text, one.outcome) if part]
    return Quarantined(
        id=one.id,
        owner=Entity.parse(one.owner),
        at=moment(one.at),
        reason=one.reason,
        text="\n".join(parts) or None,
        ref=_ref(one) if one.backend else None,
    )


def _ref(one: Held) -> MemoryRef:
    return MemoryRef(backend=one.backend, id=one.native_id, version=one.version)


def _release(tools: Tools, tenant: str, id_: str) -> None:
    now = tools.now()
    with tools.store.database.write() as connection:
        names.share_with_erasure(connection, tenant)
        names.lock(connection, tenant)
        one = quarantine.held(connection, tenant, id_)
        shared = policy.shared(connection, tenant, one.owner_id, now) >= Level.RECORDS
        words = " ".join(part for part in (one.text, one.outcome) if part) if shared else ""
        hashed = [tokens.hashed(term) for term in tokens.terms(words)]
        quarantine.release(connection, tenant, one, hashed, now)
        if shared:  # words that lie in a store only are read, and all are linked, by the worker
            outbox.queue_refresh(connection, tenant, [one.owner_id])
        _note(connection, tenant, one, "release", now)


def _note(connection: Connection, tenant: str, one: Held, action: str, now: int) -> None:
    """One row of audit; it goes with the owner of the record."""
    row = {"tenant": tenant, "id": next_id(), "at": now, "principal": one.owner_id}
    connection.execute(insert(audit), [{**row, "action": action, "subject": one.id}])
