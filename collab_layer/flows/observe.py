"""Interactions to one commit each batch; changes seen in a store to interactions.

What the layer wrote itself into a store comes back as news: it is turned away here, by
the delivery it matches. A memory that changed keeps its older versions, each until the next.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import select

from collab_layer.errors import InputError, NotPermittedError, StoreConflictError
from collab_layer.flows.erase import forget_cards
from collab_layer.flows.gather import Told, store_group
from collab_layer.flows.tools import Tools
from collab_layer.graph import names, spans, writer
from collab_layer.graph.tables import deliveries
from collab_layer.ports.backend import Change
from collab_layer.types.entity import Entity, MemoryRecord
from collab_layer.types.interaction import MAX_LINKS, Interaction
from collab_layer.types.scope import Scope
from collab_layer.types.time import micros, moment

TRIES = 4
MAX_BATCH = 50_000

log = logging.getLogger("collab_layer")


async def observe(tools: Tools, scope: Scope, batch: Sequence[Interaction]) -> list[str]:
    """Store interactions; returns after the commit with the id of each. What others tell meanwhile shares a commit.

    Raises:
        InputError: More than 50,000 at once, or one replaces what happened later.
        UnknownIdError: One replaces what its actor never said.
        NotPermittedError: The acting principal speaks for somebody else.
    """
    if len(batch) > MAX_BATCH:
        raise InputError(f"{len(batch)} interactions at once, at most {MAX_BATCH} are allowed; pass them in parts")
    for item in batch:
        if not isinstance(item, Interaction):  # pyright: ignore[reportUnnecessaryIsInstance]  callers pass anything
            raise InputError(f"a {type(item).__name__} is no Interaction; pass Interaction(actor=..., ...)")
        _may_speak(scope, item)

    def write(group: Sequence[Told]) -> Awaitable[None]:
        return tools.in_thread(store_group, group, partial(_store, tools))

    return await tools.gathering.add(scope.tenant, batch, write)


async def observe_changes(
    tools: Tools, scope: Scope, backend: str, changes: Sequence[Change], *, current: bool = False
) -> int:
    """Take in what changed in a store: records are remembered, vanished ones forgotten; how many.

    Args:
        tools: The layer's parts.
        scope: Whose tenant.
        backend: The store's name.
        changes: Oldest first; of one memory there may be several versions.
        current: The store was just asked: each record is what it holds now. Otherwise they may
            come late, and their times say which version is the newest.

    Raises:
        InputError: A record ends before it begins; nothing was stored.
    """
    for change in changes:
        if change.record is not None and not _is_sound(change.record):
            raise InputError(f"memory `{change.ref.id[:80]}` ends before it begins; correct its `valid_to` or its `at`")
    own = await tools.in_thread(_own_writes, tools, scope.tenant, backend, [change.ref.id for change in changes])
    gone, records = _sorted([change for change in changes if change.ref.id not in own])
    if gone:
        await tools.in_thread(forget_cards, tools, scope.tenant, backend, gone)
        tools.arrived.forget(scope.tenant)
    if records:
        for record in records:
            tools.arrived.put(scope.tenant, record)
        batch = await tools.in_thread(_as_told, tools, scope.tenant, backend, records, current)
        await observe(tools, scope, batch)
    return len(gone) + len(records)


def sound(changes: Sequence[Change]) -> list[Change]:
    """Those that a store may be believed; one that ends before it begins never held, and is named in the log."""
    out: list[Change] = []
    for change in changes:
        if change.record is None or _is_sound(change.record):
            out.append(change)
        else:
            log.warning("memory `%s` of `%s` ends before it begins: it is left out", change.ref.id, change.ref.backend)
    return out


def _is_sound(record: MemoryRecord) -> bool:
    return record.at is None or record.valid_to is None or record.valid_to >= record.at


def _sorted(changes: Sequence[Change]) -> tuple[list[str], list[MemoryRecord]]:
    """Memories that vanished, and the versions told after that, each once."""
    gone: list[str] = []
    records: dict[tuple[str, str], MemoryRecord] = {}
    for change in changes:
        if change.record is not None:
            key = (change.ref.id, change.record.ref.version)
            records.pop(key, None)
            records[key] = change.record
        else:
            gone.append(change.ref.id)
            records = {key: record for key, record in records.items() if key[0] != change.ref.id}
    return list(dict.fromkeys(gone)), list(records.values())


def _as_told(
    tools: Tools, tenant: str, backend: str, records: Sequence[MemoryRecord], current: bool
) -> list[Interaction]:
    """Each record as what its owner remembered, at a time that puts it in its place among its versions."""
    now = tools.now()
    with tools.store.database.read() as connection:
        ids = names.find(connection, tenant, {str(record.owner) for record in records})
        told = spans.told(connection, tenant, {(backend, record.ref.id) for record in records})
    newest: dict[tuple[str, Entity], _Newest] = {}
    versions: set[tuple[str, Entity, str]] = set()
    owners = {(record.ref.id, record.owner) for record in records}
    for native_id, owner in owners:
        rows = told.get((backend, native_id, ids.get(str(owner), -1)), ())
        versions.update((native_id, owner, row.version) for row in rows)
        if rows:
            newest[native_id, owner] = _Newest(rows[-1].version, rows[-1].at, rows[-1].at == rows[-1].recorded_at)
    out: list[Interaction] = []
    for record in records:
        memory = (record.ref.id, record.owner)
        known = (*memory, record.ref.version) in versions
        at, again = _time(record, newest.get(memory), known, current, now)
        key = f"{backend}:{record.ref.id}:{record.ref.version}"
        out.append(
            Interaction(
                actor=record.owner,
                verb="remembered",
                links=record.links[:MAX_LINKS],
                at=at,
                key=f"{key}@{at.isoformat()}" if again and at is not None else key,
                ref=record.ref,
            )
        )
        began = now if at is None else micros(at)
        if memory not in newest or began >= newest[memory].at:
            newest[memory] = _Newest(record.ref.version, began, began == now)
        versions.add((*memory, record.ref.version))
    return out


class _Newest(NamedTuple):
    """The newest version told of a memory, from when on it holds, and whether that is by our clock alone."""

    version: str
    at: int
    ours: bool


def _time(
    record: MemoryRecord, newest: _Newest | None, known: bool, current: bool, now: int
) -> tuple[datetime | None, bool]:
    """From when on a version holds, and whether it is one that the memory has come back to.

    Where the store gives no time that is later than the version before, it holds from when it
    became known; unless all that is new is its end. Nor is a store's time earlier than one that
    we gave because the store gave none: two clocks are not compared.
    """
    if newest is None or newest.version == record.ref.version:
        return record.at, False
    later = record.at is not None and micros(record.at) > newest.at
    if later:
        return record.at, known
    current = current or (newest.ours and not known)
    if known and not current:
        return record.at, False  # told once more
    same = record.at is not None and micros(record.at) == newest.at
    corrected = same and record.valid_to is not None and not known
    if not corrected and (current or same or record.at is None):
        return moment(max(now, newest.at)), known
    return record.at, False


def _store(tools: Tools, tenant: str, batch: Sequence[Interaction]) -> list[str]:
    for tried in range(TRIES):
        try:
            with tools.store.database.write() as connection:
                return writer.observe(connection, tools.store.adjacency, tenant, batch, tools.now())
        except StoreConflictError:
            # Another process made the same entity or key first; the second look finds it.
            if tried == TRIES - 1:
                raise
    return []


def _may_speak(scope: Scope, item: Interaction) -> None:
    if scope.principal is not None and item.actor != scope.principal:
        raise NotPermittedError(str(scope.principal), "speak for", str(item.actor))
    joins = item.verb in (writer.JOINED, writer.LEFT)
    if joins and item.verb == writer.JOINED and scope.principal is not None:
        # Membership opens what was granted to the group: only the operator lets somebody in.
        raise NotPermittedError(str(scope.principal), "join by itself", str(item.target or Entity("team", "none")))


def _own_writes(tools: Tools, tenant: str, backend: str, ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    with tools.store.database.read() as connection:
        for start in range(0, len(ids), 400):
            found.update(
                connection.execute(
                    select(deliveries.c.native_id).where(
                        deliveries.c.tenant == tenant,
                        deliveries.c.backend == backend,
                        deliveries.c.native_id.in_(list(ids[start : start + 400])),
                    )
                ).scalars()
            )
    return found
