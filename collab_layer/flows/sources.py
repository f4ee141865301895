"""Memories erased at the stores where they lie, for the receipts that wait for it.

In:   what a receipt is owed, in the database since the erasure was committed here.
Out:  calls of the stores; rows settled. A store that is down, or not attached, is asked again by
      the next worker, also after a restart.
Never erases what somebody else told of too, where a principal asks.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from sqlalchemy import select

from collab_layer.errors import BackendError, ErasedPartlyError
from collab_layer.flows.tools import Tools
from collab_layer.graph import receipts
from collab_layer.graph.among import among
from collab_layer.graph.erasing import Removed, fence, interactions_gone
from collab_layer.graph.receipts import ERASE, OWNER, Owed
from collab_layer.graph.tables import interactions
from collab_layer.ports.backend import Can, Erases, ErasesOwners
from collab_layer.types.entity import Entity, MemoryRef

log = logging.getLogger("collab_layer")

BATCH = 100
ROUNDS = 3
"""Times that an owner is listed: a store may show what was just erased for a moment."""


def may_lie_there(tools: Tools, tenant: str, what: Entity | MemoryRef | str) -> bool:
    """Whether an attached store could hold something that we know nothing of."""
    able = [store.name for store in tools.stores_of(tenant) if Can.ERASE in store.can]
    return what.backend in able if isinstance(what, MemoryRef) else ":" in str(what) and bool(able)


def owed(
    tools: Tools, tenant: str, what: Entity | MemoryRef | str, removed: Removed, mine: int | None
) -> tuple[list[Owed], list[str]]:
    """What is to be erased at stores for this, and the stores that promise no erasure.

    Args:
        tools: The layer's parts.
        tenant: Whose.
        what: What was asked to be forgotten.
        removed: What was removed here.
        mine: The principal that asks; None for the operator.
    """
    attached = {store.name: store for store in tools.stores_of(tenant)}
    wanted = [Owed(ERASE, *ref) for ref, owners in sorted(removed.owners.items()) if mine is None or owners == {mine}]
    if isinstance(what, MemoryRef):
        wanted.append(Owed(ERASE, what.backend, what.id))
    elif ":" in str(what):  # of an entity its own memories alone, and all of them, told to us or not
        told = {store for (store, _), owners in removed.owners.items() if owners == {removed.entity}}
        wanted = [Owed(OWNER, name, str(Entity.parse(what))) for name in sorted({*attached, *told})]
    unable = {one.backend for one in wanted if (store := attached.get(one.backend)) and Can.ERASE not in store.can}
    return list(dict.fromkeys(one for one in wanted if one.backend not in unable)), sorted(unable)


async def erase(tools: Tools, tenant: str) -> int:
    """Erase what is owed at every store that answers; how many records or owners."""
    done = 0
    for store in tools.stores_of(tenant):
        if Can.ERASE in store.can and isinstance(store, Erases):
            listed: Counter[str] = Counter()
            try:
                while some := await _some(tools, tenant, store, listed):
                    done += some
            except BackendError as error:
                log.warning("erasing at `%s` waits: %s", store.name, error.why)
    return done


async def _some(tools: Tools, tenant: str, store: Erases, listed: Counter[str]) -> int:
    """Erase records that are owed; where none are left, name those of an owner; in the end what no record tells."""
    rows = await tools.in_thread(_owed, tools, tenant, store.name)
    if not rows:
        return 0
    refs = [MemoryRef(backend=store.name, id=row.ref) for row in rows if row.kind == ERASE]
    if refs:
        partly = await _erased(store, refs)
        await tools.in_thread(_settle, tools, tenant, [row for row in rows if row.kind == ERASE], refs, partly)
        return len(refs)
    owner = rows[0]
    held = await _listed(store, Entity.parse(owner.ref))
    if held and listed[owner.ref] < ROUNDS:
        listed[owner.ref] += 1
        await tools.in_thread(_name, tools, tenant, owner, held)
    else:
        if Can.ERASE_OWNER in store.can and isinstance(store, ErasesOwners):
            await store.erase_owner(Entity.parse(owner.ref))
        await tools.in_thread(_settle, tools, tenant, [owner], [], bool(held))
    return 1


async def _listed(store: Erases, owner: Entity) -> list[MemoryRef]:
    found: list[MemoryRef] = []
    after: str | None = None
    while True:
        page = await store.records(owner, after=after)
        found += [MemoryRef(backend=store.name, id=record.ref.id) for record in page.records]
        if page.after is None:
            return list(dict.fromkeys(found))
        after = page.after


async def _erased(store: Erases, refs: Sequence[MemoryRef]) -> bool:
    """Erase; whether the store keeps something."""
    try:
        await store.erase(refs)
    except ErasedPartlyError as error:
        log.warning("erased in part: %s", error)
        return True
    return False


def _owed(tools: Tools, tenant: str, store: str) -> list[Owed]:
    with tools.store.database.read() as connection:
        return receipts.owed(connection, tenant, store, BATCH)


def _name(tools: Tools, tenant: str, owner: Owed, held: Sequence[MemoryRef]) -> None:
    """An owner's records by their ids, before any is erased: a store that breaks off may list it no more."""
    with tools.store.database.write() as connection:
        receipts.await_each(connection, tenant, owner, [ref.id for ref in held])


def _settle(tools: Tools, tenant: str, rows: Sequence[Owed], refs: Sequence[MemoryRef], partly: bool) -> None:
    """Note it, and remove what was read again from the store before it was erased there."""
    i, refs_of = interactions.c, [ref.id for ref in refs]
    with tools.store.database.write() as connection:
        told = (i.tenant == tenant) & (i.backend == rows[0].backend) & among(connection, i.native_id, refs_of)
        back = list(connection.execute(select(i.id).where(told)).scalars())
        if back:
            fence(connection, tenant)
            interactions_gone(connection, tools.store.adjacency, tenant, back, Removed(), tools.now())
        receipts.await_file(connection, tenant, receipts.waiting_for(connection, tenant, rows))  # they hold names
        receipts.erased(connection, tenant, rows, partly=partly)


__all__ = ["erase", "may_lie_there", "owed"]
