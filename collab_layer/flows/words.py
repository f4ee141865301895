"""The words that events refer to, read from their stores, and until when each holds.

In:   a claim's events.
Out:  the same with words and times; without those whose store does not answer, which wait.

Each store is asked once for what it has now. A version that it has no more is looked for among what
was told lately, then in the store's past where it can read it; else only its times are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import select

from collab_layer.errors import BackendError
from collab_layer.flows.observe import observe_changes, sound
from collab_layer.flows.pending import Loaded, Pending, set_ends
from collab_layer.flows.tools import Tools
from collab_layer.graph import spans
from collab_layer.graph.tables import cards
from collab_layer.ports.backend import Can, Change, MemoryBackend, ReadsAsOf
from collab_layer.types.entity import MAX_TEXT, MemoryRecord, MemoryRef
from collab_layer.types.scope import Level, Scope
from collab_layer.types.time import FOREVER, micros, moment

PASTS = 50
"""Moments of the past that one claim asks a store about."""


async def read_words(tools: Tools, loaded: Loaded) -> Loaded:
    """Ask each store once for the records that are referred to; what is gone stays without words.

    Raises:
        BackendError: No store that is needed answered, or none is attached; nothing was changed.
    """
    wanted: dict[str, list[Pending]] = {}
    for event in loaded.events:
        if event.backend and event.text is None:
            wanted.setdefault(event.backend, []).append(event)
    if not wanted:
        return loaded  # its ends were noted as it was loaded
    failed: dict[str, BackendError] = {}
    newer: list[Change] = []
    for backend, events in wanted.items():
        try:
            newer += await _read(tools, loaded, backend, events)
            tools.standing.up(loaded.claim.tenant, backend)
        except BackendError as error:
            failed[backend] = error
            if error.retryable:
                tools.standing.down(loaded.claim.tenant, backend)
    loaded = _without(loaded, failed)
    for backend in {change.ref.backend for change in newer}:
        mine = [change for change in newer if change.ref.backend == backend]
        await observe_changes(tools, Scope(tenant=loaded.claim.tenant), backend, sound(mine), current=True)
    await tools.in_thread(_set_ends, tools, loaded)
    return loaded


async def _read(tools: Tools, loaded: Loaded, backend: str, events: Sequence[Pending]) -> list[Change]:
    """Give events the words of their versions; versions that were not told of yet."""
    tenant = loaded.claim.tenant
    store = tools.backends.get((tenant, backend))
    if store is None:
        raise BackendError(backend, "it is not attached to this layer, so its memories cannot be read")
    refs = {event.native_id: MemoryRef(backend=backend, id=event.native_id, version=event.version) for event in events}
    found = {record.ref.id: record for record in await store.read(list(refs.values()))}
    newer: dict[str, Change] = {}
    for event in events:
        record = found.get(event.native_id)
        # A reference to somebody else's memory makes it nobody's own.
        if record is None or record.owner != loaded.actor:
            continue
        if event.version in ("", record.ref.version):
            event.pinned = not event.version
            event.version = record.ref.version
            _take(event, record)
        else:
            event.lost = True
            newer[event.native_id] = Change(record.ref, record)
    lost = [event for event in events if event.lost]
    if not lost:
        return []
    await _read_past(tools, loaded, store, lost)
    told = await tools.in_thread(_newest_told, tools, loaded, backend, list(newer))
    return [change for id_, change in newer.items() if told.get(id_) != change.ref.version]


async def _read_past(tools: Tools, loaded: Loaded, store: MemoryBackend, lost: Sequence[Pending]) -> None:
    """Words of versions that the store has replaced since."""
    tenant = loaded.claim.tenant
    unread: list[Pending] = []
    for event in lost:
        ref = MemoryRef(backend=event.backend, id=event.native_id, version=event.version)
        record = tools.arrived.get(tenant, ref)
        if record is not None and record.owner == loaded.actor:
            _take(event, record)
        else:
            unread.append(event)
    if not unread or Can.AS_OF not in store.can or not isinstance(store, ReadsAsOf):
        return
    known = await tools.in_thread(_worded, tools, loaded, unread)
    unread = [event for event in unread if event.id not in known]
    for at in sorted({event.at for event in unread}, reverse=True)[:PASTS]:
        held = {(one.ref.id, one.ref.version): one for one in await store.records_as_of(loaded.actor, moment(at))}
        for event in unread:
            record = held.get((event.native_id, event.version)) if event.at == at else None
            if record is not None:
                _take(event, record)


def _take(event: Pending, record: MemoryRecord) -> None:
    event.text = _clean(record.text)
    event.ends = FOREVER if record.valid_to is None else max(micros(record.valid_to), event.at)
    event.lost = False


def _clean(text: str) -> str:
    """What both databases take: no NUL, no halves of surrogate pairs, not too long."""
    return text[:MAX_TEXT].replace("\x00", " ").encode(errors="replace").decode()


def _without(loaded: Loaded, failed: dict[str, BackendError]) -> Loaded:
    """The claim without what its stores do not answer for.

    Raises:
        BackendError: Nothing else is left.
    """
    if not failed:
        return loaded
    left = [event for event in loaded.events if event.backend not in failed or event.text is not None]
    if not left:
        raise next(iter(sorted(failed.items())))[1]
    waiting = {event.id for event in loaded.events} - {event.id for event in left}
    mine = tuple(number for number in loaded.claim.interactions if number not in waiting)
    claim = replace(loaded.claim, interactions=mine, waits=tuple(sorted(failed)))
    return replace(loaded, claim=claim, events=left)


def _newest_told(tools: Tools, loaded: Loaded, backend: str, ids: Sequence[str]) -> dict[str, str]:
    """The version of each memory that its owner told as the newest."""
    with tools.store.database.read() as connection:
        told = spans.told(connection, loaded.claim.tenant, {(backend, id_) for id_ in ids})
    mine = loaded.claim.entity
    return {native_id: rows[-1].version for (_, native_id, actor), rows in told.items() if actor == mine}


def _worded(tools: Tools, loaded: Loaded, events: Iterable[Pending]) -> set[int]:
    """Those whose words are known from before, as far as they may be kept."""
    c = cards.c
    wanted = sorted(event.id for event in events)
    found: set[int] = set()
    with tools.store.database.read() as connection:
        for start in range(0, len(wanted), 400):
            query = select(c.interaction).where(
                c.tenant == loaded.claim.tenant, c.interaction.in_(wanted[start : start + 400]), c.vector.is_not(None)
            )
            if loaded.shared >= Level.RECORDS:
                query = query.where(c.text.is_not(None))
            found.update(connection.execute(query).scalars())
    return found


def _set_ends(tools: Tools, loaded: Loaded) -> None:
    now = tools.now()
    with tools.store.database.read() as connection:
        set_ends(connection, [loaded], now)


__all__ = ["PASTS", "read_words"]
