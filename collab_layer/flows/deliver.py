"""Derived items to the stores that were asked to take them, and back out again.

Written at least once under the item's own id as key, so that a store that has it leaves it
alone; retracted when the item was erased or expired. Never calls `spread`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from sqlalchemy import Connection, bindparam, delete, select, update

from collab_layer.errors import BackendError
from collab_layer.flows.injections import UNKNOWN
from collab_layer.flows.tools import Tools
from collab_layer.flows.view import pseudonym
from collab_layer.governance.grants import Audience
from collab_layer.graph import derived, evidence
from collab_layer.graph.derived import Item
from collab_layer.graph.engine import upsert
from collab_layer.graph.evidence import Held
from collab_layer.graph.names import salt
from collab_layer.graph.present import present
from collab_layer.graph.tables import deliveries, entities
from collab_layer.ports.backend import Can, Writes, require
from collab_layer.types.entity import Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import Level, Scope
from collab_layer.types.time import FOREVER, micros, moment
from collab_layer.types.update import Source, Update

BATCH = 200
MAX_ATTEMPTS = 5
PARKED = "parked"
"""State of what a store refused five times; an outage does not count."""


async def deliver(tools: Tools, tenant: str, *, whole: bool = False) -> int:
    """Send what is pending and retract what was erased; how many items were settled, or are still to be looked at.

    Args:
        tools: The layer's parts.
        tenant: Whose.
        whole: Look at all that was delivered, also where there is no reason to.
    """
    settled = 0
    for name in tools.delivered_to(tenant):
        backend = tools.backends.get((tenant, name))
        if backend is None:
            continue
        require(backend, Can.WRITE)
        assert isinstance(backend, Writes)
        try:
            more = await tools.in_thread(tools.lapsing.turn, tools.store, tenant, name, tools.now(), whole=whole)
            gone = await tools.in_thread(_retracting, tools, tenant, name)
            if gone:
                await backend.retract(gone)
                more += await tools.in_thread(_forget, tools, tenant, name, gone)
            found, withheld = await tools.in_thread(_pending, tools, tenant, name)
            await tools.in_thread(_forget, tools, tenant, name, withheld)
            updates = await _write(tools, tenant, name, backend, found)
            ends = [micros(update.expires) for update in updates if update.expires is not None]
            tools.lapsing.sent(tenant, name, min(ends, default=FOREVER))
            for owner in dict.fromkeys(update.owner for update in updates):
                sent = [update.id for update in updates if update.owner == owner]
                await tools.handed(Scope(tenant=tenant), owner, "delivery", sent, UNKNOWN)
        except BackendError as error:
            if not error.retryable:
                await tools.in_thread(_failed, tools, tenant, name)
            raise
        settled += len(updates) + more
    return settled


async def _write(tools: Tools, tenant: str, name: str, backend: Writes, found: Sequence[Update]) -> Sequence[Update]:
    """Take what was found and hand it to the store; what was handed."""
    take, let_go = partial(_take, tools, tenant, name, found), partial(_let_go, tools, tenant, name)
    async with tools.taking(take, let_go) as updates:
        receipts = await backend.write(updates) if updates else []
    native = {receipt.key: receipt.native_id for receipt in receipts}
    await tools.in_thread(_settle, tools, tenant, name, [update.id for update in updates], native)
    return updates


def _retracting(tools: Tools, tenant: str, backend: str) -> list[str]:
    """What is to be taken back, and is not on its way."""
    d = deliveries.c
    with tools.store.database.read() as connection:
        here = (d.tenant == tenant) & (d.backend == backend) & (d.state == "retracting") & (d.held <= present())
        return list(connection.execute(select(d.item).where(here).limit(BATCH)).scalars())


def _pending(tools: Tools, tenant: str, backend: str) -> tuple[list[Update], list[str]]:
    """What waits, checked once more, and what is not to be sent any more.

    Meanwhile a grant may have ended, something may have taken its place, or what it rests on may be over.
    """
    d, now = deliveries.c, tools.now()
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)
        waiting = (d.tenant == tenant) & (d.backend == backend) & (d.state == "pending")
        ids = list(connection.execute(select(d.item).where(waiting).order_by(d.at).limit(BATCH)).scalars())
        items = derived.get(connection, tenant, ids)
        names = _names(connection, tenant, items.values())
        spans = evidence.held(connection, tenant, [source for item in items.values() for source, _, _ in item.sources])
        secret = salt(connection, tenant)
        out: list[Update] = []
        for item in items.values():
            span = evidence.span(item, spans)
            if item.owner not in names or item.superseded is not None or span.valid_to <= now:
                continue
            seen = tools.store.audience(connection, tenant, names[item.owner], item.owner, None, now)
            if all(seen.level(one) >= item.level for one in item.principals):
                sources = _sources(item, seen, names, secret)
                out += [_update(item, names, sources, span, now)] if sources else []
        sent = {update.id for update in out}
        return out, [id_ for id_ in ids if id_ not in sent]


def _take(tools: Tools, tenant: str, backend: str, updates: Sequence[Update]) -> list[Update]:
    """Note that these are on their way, for a lease; those that were taken back meanwhile are left out.

    If the process dies before the store has told, nobody knows whether it has the copy, or will: it is taken back only
    when the lease is over.
    """
    if not updates:
        return []
    d = deliveries.c
    with tools.store.database.write() as connection:
        mine = (d.tenant == tenant) & (d.backend == backend) & (d.state == "pending")
        here = mine & d.item.in_([update.id for update in updates])
        until = update(deliveries).where(here).values(held=present() + tools.lease).returning(d.item)
        taken = set(connection.execute(until).scalars())
    return [update for update in updates if update.id in taken]


def _let_go(tools: Tools, tenant: str, backend: str, taken: Sequence[Update]) -> None:
    """Note that these are on their way no more."""
    if not taken:
        return
    d = deliveries.c
    with tools.store.database.write() as connection:
        here = (d.tenant == tenant) & (d.backend == backend) & d.item.in_([update.id for update in taken])
        connection.execute(update(deliveries).where(here).values(held=0))


def on_their_way(tools: Tools, tenant: str) -> bool:
    """Whether items to be taken back may still reach a store of ours, since whoever sends them has not told."""
    ours = [name for name in tools.delivered_to(tenant) if (tenant, name) in tools.backends]
    if not ours:
        return False
    d = deliveries.c
    with tools.store.database.read() as connection:
        here = (d.tenant == tenant) & d.backend.in_(ours) & (d.state == "retracting") & (d.held > present())
        return connection.execute(select(d.item).where(here).limit(1)).first() is not None


def _names(connection: Connection, tenant: str, items: Iterable[Item]) -> dict[int, Entity]:
    wanted = sorted({id_ for item in items for id_ in (item.owner, *item.principals, *item.links)})
    found: dict[int, Entity] = {}
    for start in range(0, len(wanted), BATCH):
        part = entities.c.id.in_(wanted[start : start + BATCH])
        rows = connection.execute(select(entities.c.id, entities.c.name).where(entities.c.tenant == tenant, part))
        found.update((id_, Entity.parse(name)) for id_, name in rows)
    return found


def _sources(item: Item, seen: Audience, names: Mapping[int, Entity], secret: str) -> tuple[Source, ...]:
    """The lineage as its reader may see it: who shares no more than facets is not told by name, who publishes is."""
    out: dict[str, Source] = {}
    for source, whose, weight in item.sources:
        if whose not in names:
            continue
        if whose == item.owner or item.kind is FacetKind.NOTICE or seen.level(whose) >= Level.RECORDS:
            out[source] = Source(id=source, principal=names[whose], weight=weight)
        else:  # all of one owner as one: how many it has is its own
            name = pseudonym(secret, item.owner, item.id, whose)
            had = out[str(name)].weight if str(name) in out else 0.0
            out[str(name)] = Source(id="withheld", principal=name, weight=had + weight)
    return tuple(_rounded(one) for one in out.values())


def _rounded(source: Source) -> Source:
    return source.model_copy(update={"weight": round(source.weight, 1)}) if source.id == "withheld" else source


def _update(item: Item, names: Mapping[int, Entity], sources: tuple[Source, ...], span: Held, now: int) -> Update:
    """What a store is handed; the times of what is distilled would tell of single owners."""
    exact = item.level >= Level.RECORDS
    end = span.valid_to if exact else item.expires
    return Update(
        id=item.id,
        owner=names[item.owner],
        kind=item.kind,
        text=item.text,
        confidence=item.confidence,
        hop=item.hop,
        links=tuple(names[link] for link in item.links if link in names),
        sources=sources,
        at=moment(min(span.at, now)) if exact else None,
        expires=None if end >= FOREVER else moment(end),
    )


def _settle(tools: Tools, tenant: str, backend: str, ids: Sequence[str], native: dict[str, str]) -> None:
    if not ids:
        return
    d = deliveries.c
    with tools.store.database.write() as connection:
        connection.execute(
            update(deliveries)
            .where(d.tenant == tenant, d.backend == backend, d.item == bindparam("key"), d.state == "pending")
            .values(state="delivered", native_id=bindparam("native"), at=tools.now()),
            [{"key": key, "native": native.get(key)} for key in ids],
        )
        here = (d.tenant == tenant) & (d.backend == backend) & d.item.in_(ids)
        connection.execute(update(deliveries).where(here).values(held=0))
        # Erased between writing and now: the state is `retracting` and stays so.
        # Another deliverer may even have taken the row away: then it is put back, to be retracted.
        missing = sorted(set(ids) - set(derived.get(connection, tenant, ids)))
        base = {"tenant": tenant, "backend": backend, "state": "retracting", "attempts": 0, "at": tools.now()}
        upsert(connection, deliveries, [{**base, "item": id_} for id_ in missing], update=("state",))


def _forget(tools: Tools, tenant: str, backend: str, ids: Sequence[str]) -> int:
    """Remove what is in the store no more, but for what may still be on its way there; how many were."""
    if not ids:
        return 0
    d = deliveries.c
    with tools.store.database.write() as connection:
        here = (d.tenant == tenant) & (d.backend == backend) & d.item.in_(list(ids)) & (d.held <= present())
        gone = list(connection.execute(delete(deliveries).where(here).returning(d.item)).scalars())
        derived.forget_lineage(connection, tenant, gone)
    return len(gone)


def _failed(tools: Tools, tenant: str, backend: str) -> None:
    d = deliveries.c
    with tools.store.database.write() as connection:
        mine = (d.tenant == tenant) & (d.backend == backend) & (d.state == "pending")
        connection.execute(update(deliveries).where(mine).values(attempts=d.attempts + 1))
        connection.execute(update(deliveries).where(mine, d.attempts >= MAX_ATTEMPTS).values(state=PARKED))
