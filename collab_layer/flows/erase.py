"""What is to be forgotten to a signed receipt: one transaction, descendants included.

The generation fence makes every plan that was in flight start over; every process reloads
its index at its next read; the file is written anew, so that erased bytes leave it, and until
then the receipt is pending.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, insert, select

from collab_layer.errors import NotPermittedError, UnknownIdError
from collab_layer.flows import attest, scrub, share, sources
from collab_layer.flows.tools import Tools
from collab_layer.graph import aliases, derived, foreign, merged, names, receipts, spans
from collab_layer.graph.cards import card_id, of_memories
from collab_layer.graph.derived import Item
from collab_layer.graph.erasing import (
    Removed,
    cards_gone,
    derived_gone,
    entity_gone,
    fence,
    foreign_gone,
    influence_gone,
    interactions_gone,
    name_gone,
)
from collab_layer.graph.ids import next_id, number_of
from collab_layer.graph.tables import cards, interactions, removals
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.scope import Scope


async def forget(tools: Tools, scope: Scope, what: Entity | MemoryRef | str, *, source: bool = False) -> ErasureReceipt:
    """Erase an entity, a memory, an interaction or a derived item with all that rests on it.

    Args:
        tools: The layer's parts.
        scope: Who asks.
        what: What is to be forgotten.
        source: Also at the stores where it lies; what a store does not do now, a worker finishes.

    Raises:
        UnknownIdError: Nothing is known under it.
        NotPermittedError: The acting principal is not whose it is.
    """
    await tools.in_thread(tools.log.flush)  # or it would write the name of who was told something just now
    id_ = await tools.in_thread(_forget, tools, scope, what, source)
    if source:
        await sources.erase(tools, scope.tenant)
    await tools.in_thread(scrub.at_once, tools)
    return await tools.in_thread(attest.signed, tools, scope.tenant, id_)


async def forget_influence(tools: Tools, scope: Scope, entity: Entity, *, block: bool) -> ErasureReceipt:
    """Take back all that was derived for others of a principal, whose own memories stay.

    Args:
        tools: The layer's parts.
        scope: Who asks.
        entity: The principal.
        block: Nobody else reads it any more, whatever it granted, until the operator lets it.

    Raises:
        UnknownIdError: It was never seen.
        NotPermittedError: The acting principal is another.
    """
    return await tools.in_thread(_influence, tools, scope, entity, block)


def forget_card(tools: Tools, tenant: str, id_: str, first: Callable[[Connection], None]) -> ErasureReceipt:
    """Erase a card after `first`, which may refuse, in one transaction. Blocking."""
    receipt = _forget(tools, Scope(tenant=tenant), id_, False, first)
    scrub.at_once(tools)
    return attest.signed(tools, tenant, receipt)


def forget_cards(tools: Tools, tenant: str, backend: str, native_ids: Sequence[str]) -> int:
    """Memories that vanished from their store: every version goes; that one is gone stays known to its readers."""
    with tools.store.database.write() as connection:
        removed = Removed()
        found = spans.told(connection, tenant, {(backend, id_) for id_ in native_ids})
        numbers = [version.id for versions in found.values() for version in versions]
        if not numbers:
            return 0
        fence(connection, tenant)
        interactions_gone(connection, tools.store.adjacency, tenant, numbers, removed, tools.now())
        rows = [
            {"tenant": tenant, "id": next_id(), "owner": owner, "backend": backend, "at": tools.now()}
            for _, _, owner in found
        ]
        connection.execute(insert(removals), rows)
        receipts.await_file(connection, tenant)
    return len(numbers)


def _forget(
    tools: Tools,
    scope: Scope,
    what: Entity | MemoryRef | str,
    source: bool,
    first: Callable[[Connection], None] | None = None,
) -> str:
    tenant = scope.tenant
    subject = what.id if isinstance(what, MemoryRef) else str(what)
    with tools.store.database.write() as connection:
        generation = fence(connection, tenant)
        removed = Removed()
        if first is not None:
            first(connection)
        try:
            _remove(tools, connection, scope, what, removed)
        except UnknownIdError:
            if not source or scope.principal is not None or not sources.may_lie_there(tools, tenant, what):
                raise
        mine = None if scope.principal is None else _mine(connection, scope)
        owed, unable = sources.owed(tools, tenant, what, removed, mine) if source else ([], [])
        return attest.issue(
            connection, tools, tenant, subject, removed, owed=owed, unable=unable, generation=generation
        )


def _influence(tools: Tools, scope: Scope, entity: Entity, block: bool) -> ErasureReceipt:
    tenant, removed = scope.tenant, Removed()
    with tools.store.database.write() as connection:
        generation = fence(connection, tenant)
        number = names.find(connection, tenant, [str(entity)]).get(str(entity))
        if number is None:
            raise UnknownIdError(str(entity))
        _own(connection, scope, [number], str(entity))
        for one in aliases.together(connection, tenant, number):
            if block:
                share.block(tools, connection, tenant, one)
            influence_gone(connection, tenant, one, removed)
        id_ = attest.issue(connection, tools, tenant, str(entity), removed, action="influence", generation=generation)
    scrub.at_once(tools)
    return attest.signed(tools, tenant, id_)


def _remove(
    tools: Tools, connection: Connection, scope: Scope, what: Entity | MemoryRef | str, removed: Removed
) -> None:
    tenant, adjacency, now = scope.tenant, tools.store.adjacency, tools.now()
    if isinstance(what, MemoryRef):
        numbers = _of_refs(connection, tenant, what.backend, [what.id])
        if not numbers:
            raise UnknownIdError(what.id)
        _own(connection, scope, _actors(connection, tenant, numbers), what.id)
        interactions_gone(connection, adjacency, tenant, numbers, removed, now)
        left = of_memories(connection, tenant, [(what.backend, what.id)])
        rest = [card.id for versions in left.values() for card in versions]
        derived_gone(connection, tenant, [card_id(card) for card in rest], frozenset(), removed)
        cards_gone(connection, tenant, rest, removed)
        return
    text = str(what)
    number = number_of(text)
    if ":" in text:
        entity = Entity.parse(what)
        id_ = names.find(connection, tenant, [str(entity)]).get(str(entity))
        if id_ is None:
            if scope.principal in (None, entity):
                name_gone(connection, tenant, str(entity), removed)
            if not removed.rows:
                raise UnknownIdError(text)
            return
        _own(connection, scope, [id_], text)
        entity_gone(connection, adjacency, tenant, id_, removed, now)
    elif text.startswith("i") and number is not None and (actors := _actors(connection, tenant, [number])):
        _own(connection, scope, actors, text)
        versions = spans.versions_of(connection, tenant, number)
        interactions_gone(connection, adjacency, tenant, versions, removed, now)
    elif text.startswith("c") and number is not None and (card := _card(connection, tenant, number)):
        _own(connection, scope, [card[0]], text)
        if card[1]:
            versions = spans.versions_of(connection, tenant, card[1])
            interactions_gone(connection, adjacency, tenant, versions, removed, now)
        else:
            derived_gone(connection, tenant, [text], frozenset([card[0]]), removed)
            cards_gone(connection, tenant, [number], removed)
    elif text.startswith("d") and (item := derived.get(connection, tenant, [text]).get(text)):
        _own(connection, scope, [item.owner, *item.principals], text)
        gone = [*_parts(connection, scope, item), text]
        derived_gone(connection, tenant, gone, frozenset(), removed)
        removed.name("derived", gone)
        removed.add("derived", sum(derived.suppress(connection, tenant, one) for one in gone))
    elif text.startswith(("f", "b")) and (taken := _foreign(connection, tenant, text)):
        if scope.principal is not None:
            raise NotPermittedError(str(scope.principal), "forget", text)
        foreign_gone(connection, tenant, taken, removed)
    else:
        raise UnknownIdError(text)


def _foreign(connection: Connection, tenant: str, id_: str) -> list[str]:
    """A candidate of another organisation, or all of one bundle."""
    if id_.startswith("b"):
        return foreign.of_bundle(connection, tenant, id_)
    return [one.id for one in foreign.get(connection, tenant, [id_]).values() if one.bundle]


def _own(connection: Connection, scope: Scope, owners: Sequence[int], subject: str) -> None:
    """The operator may erase anything; a principal only what is its own."""
    if scope.principal is None:
        return
    if _mine(connection, scope) not in owners:
        raise NotPermittedError(str(scope.principal), "forget", subject)


def _mine(connection: Connection, scope: Scope) -> int | None:
    name = str(scope.principal)
    return names.find(connection, scope.tenant, [name]).get(name)


def _parts(connection: Connection, scope: Scope, item: Item) -> list[str]:
    """What a merged item was made of goes with it, as far as it is the principal's to erase."""
    parts = derived.get(connection, scope.tenant, merged.parts(connection, scope.tenant, item.id))
    if scope.principal is None:
        return list(parts)
    mine = _mine(connection, scope)
    return [id_ for id_, part in parts.items() if mine == part.owner or mine in part.principals]


def _actors(connection: Connection, tenant: str, numbers: Sequence[int]) -> list[int]:
    i = interactions.c
    return list(
        connection.execute(select(i.actor).where(i.tenant == tenant, i.id.in_(list(numbers))).distinct()).scalars()
    )


def _card(connection: Connection, tenant: str, number: int) -> tuple[int, int] | None:
    row = connection.execute(
        select(cards.c.owner, cards.c.interaction).where(cards.c.tenant == tenant, cards.c.id == number)
    ).first()
    return None if row is None else (row.owner, row.interaction)


def _of_refs(connection: Connection, tenant: str, backend: str, native_ids: Sequence[str]) -> list[int]:
    i = interactions.c
    found: list[int] = []
    for start in range(0, len(native_ids), 400):
        found += connection.execute(
            select(i.id).where(
                i.tenant == tenant, i.backend == backend, i.native_id.in_(list(native_ids[start : start + 400]))
            )
        ).scalars()
    return found
