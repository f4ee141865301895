"""What a claim came to, in one transaction, fenced: cards and edges, updates, the claim settled.

Never waits for a model: where one is asked, cards and edges are kept before, and only the
updates and the settling follow. A plan is stored only if the lease and the generation are still
the claim's, and if everybody told may still read everybody behind what it is told.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy import Connection, select, update

from collab_layer.errors import StaleLeaseError
from collab_layer.flows import edging
from collab_layer.flows.pending import Loaded, Worded
from collab_layer.flows.plan import Plan
from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import read_by_others
from collab_layer.graph import (
    cards,
    considered,
    derived,
    evidence,
    latecomers,
    names,
    outbox,
    policy,
    quarantine,
    spans,
)
from collab_layer.graph.cards import CardDraft
from collab_layer.graph.derived import Item
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import interaction_id, number_of
from collab_layer.graph.merged import DELIVERED, RETRACTING
from collab_layer.graph.names import Mention, Tenant, mention
from collab_layer.graph.tables import deliveries, entities
from collab_layer.graph.tables import derived as derived_items
from collab_layer.stages import tokens
from collab_layer.stages.quarantine import quarantined
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

FOLD_AT = 16
"""Deltas at which the arrays of a node that others write to are packed."""


def keep(tools: Tools, loaded: Loaded, worded: Worded) -> None:
    """Cards and edges only; the lease stays, and everything can be kept once more.

    Raises:
        StaleLeaseError: Nothing was changed.
    """
    with tools.store.database.write() as connection:
        stands = _check(tools, connection, loaded)
        _records(tools, connection, loaded, worded, stands)


def finish(tools: Tools, loaded: Loaded, plan: Plan, worded: Worded | None = None) -> bool:
    """Store a plan and settle the claim; with `worded`, cards and edges too.

    Returns:
        False if what the plan rests on moved on meanwhile: nothing was changed, plan anew.

    Raises:
        StaleLeaseError: Somebody else has the claim, something was erased, or nobody may read
            the actor any more: nothing was changed.
    """
    claim, now = loaded.claim, tools.now()
    with tools.store.database.write() as connection:
        stands = _check(tools, connection, loaded)
        if not _holds(tools, connection, loaded, plan, stands.policy):
            return False
        if worded is not None:
            _records(tools, connection, loaded, worded, stands)
        elif plan.items:
            names.bump(connection, claim.tenant)  # answers kept in memory do not have them yet
        items = evidence.capped(connection, claim.tenant, plan.items, now)
        derived.put(connection, claim.tenant, items)
        considered.mark(connection, claim.tenant, plan.cards, now)
        _queue_deliveries(tools, connection, claim.tenant, items, now)
        outbox.settle(connection, claim)
    return True


# -- what must still hold --------------------------------------------------------------


def _check(tools: Tools, connection: Connection, loaded: Loaded) -> Tenant:
    """Where the tenant stands now; its row is ours until the commit."""
    stands = outbox.check(connection, loaded.claim, str(loaded.actor))
    tenant, entity = loaded.claim.tenant, loaded.claim.entity
    if stands.policy != loaded.policy:
        shared = policy.shared(connection, tenant, entity, tools.now())
        if shared != loaded.shared:
            raise StaleLeaseError(str(loaded.actor), "its grants changed; its records are read again")
    ends = spans.ends(connection, tenant, [event.id for event in loaded.events], loaded.refs)
    if any(ends[event.id] != event.followed for event in loaded.events):
        raise StaleLeaseError(str(loaded.actor), "something took the place of its records; they are read again")
    return stands


def _holds(tools: Tools, connection: Connection, loaded: Loaded, plan: Plan, version: int) -> bool:
    tenant, now = loaded.claim.tenant, tools.now()
    if considered.of(connection, tenant, plan.cards):
        return False  # another worker's model has read it meanwhile
    if plan.by_model and not _there(connection, tenant, plan.items, now):
        return False
    return version == plan.policy or all(_permitted(tools, connection, tenant, item, now) for item in plan.items)


def _there(connection: Connection, tenant: str, items: Sequence[Item], now: int) -> bool:
    """Whether no record or older update that the items rest on is over, was replaced or dropped."""
    wanted = {source for item in items for source, _, _ in item.sources}
    read = {source: number for source in wanted if source[0] == "c" and (number := number_of(source)) is not None}
    older = [source for source in wanted if source[0] == "d"]
    found = [card for card in cards.texts(connection, tenant, list(read.values())).values() if card.holds(now)]
    gone = derived.is_erased(connection, tenant, older)
    return len(found) == len(read) and len(derived.get(connection, tenant, older)) - len(gone) == len(older)


def _permitted(tools: Tools, connection: Connection, tenant: str, item: Item, now: int) -> bool:
    """Whether an owner may read everybody behind an item; of a thing's, whether anybody may."""
    name = connection.execute(
        select(entities.c.name).where(entities.c.tenant == tenant, entities.c.id == item.owner)
    ).scalar_one()
    reader = Entity.parse(name)
    if reader.kind not in OWNER_KINDS:
        rows = [(one, policy.rows(connection, tenant, now, one)) for one in item.principals]
        return all(read_by_others(grants, one, now) >= item.level for one, grants in rows)
    seen = tools.store.audience(connection, tenant, reader, item.owner, None, now)
    return all(seen.level(one) >= item.level for one in item.principals)


# -- cards and edges -------------------------------------------------------------------


def _records(tools: Tools, connection: Connection, loaded: Loaded, worded: Worded, stands: Tenant) -> None:
    tenant, entity, now = loaded.claim.tenant, loaded.claim.entity, tools.now()
    adjacency = tools.store.adjacency
    ids = _named(tools, connection, loaded, worded, stands)
    links = edging.links(loaded, worded, ids)
    rows = _changed(tools, connection, loaded, links)
    edging.write(connection, adjacency, loaded, links, rows, now)
    _, rev = names.bump(connection, tenant)
    drafts = quarantine.spared(connection, tenant, _cards(tools, loaded, worded, links, rows))
    _drop_moved(connection, tenant, drafts, rev)
    cards.put(connection, tenant, drafts, loaded.shared, rev, now)
    edging.pin(connection, loaded)
    kept = [loaded.events[row] for row in rows]
    ended = {event.id: event.followed for event in kept if loaded.claim.refresh or event.valid_to < FOREVER}
    spans.bring(connection, adjacency, tenant, ended, now)
    touched = {
        entity,
        *(target for event in kept if (target := event.target)),
        *(id_ for row in rows for id_ in links[row]),
    }
    adjacency.fold(connection, tenant, sorted(touched), at_least=FOLD_AT, always=entity, now=now)
    edging.count_degrees(connection, adjacency, tenant, [entity], now, rev)


def _named(tools: Tools, connection: Connection, loaded: Loaded, worded: Worded, stands: Tenant) -> dict[Entity, int]:
    """The ids of all that the words name; where others' texts may mean a name too, it is noted."""
    tenant, mentions, wanted = loaded.claim.tenant, dict[Entity, Mention](), dict[Entity, None]()
    for event, topics in zip(loaded.events, worded.topics, strict=True):
        for topic, surface in topics:
            wanted[topic] = None
            if surface is not None:
                mention(mentions, topic, event.at, surface, by_caller=False)
    learned = FOREVER if stands.rev == loaded.rev else names.learned_since(connection, tenant, loaded.rev)
    met = names.meet(connection, tenant, wanted, mentions)
    if learned <= max((event.at for event in loaded.events if event.text), default=-1):
        latecomers.note(connection, tenant, learned)  # told by somebody else while these were read
    if met.late < FOREVER and tools.store.index(tenant).said_after(met.late):
        latecomers.note(connection, tenant, met.late)
    return met.ids


def _changed(tools: Tools, connection: Connection, loaded: Loaded, links: Sequence[tuple[int, ...]]) -> list[int]:
    """Events of which cards and edges are to be written: all but those that were read again and say the same."""
    rows = range(len(loaded.events))
    if not loaded.claim.refresh:
        return list(rows)
    news = set(loaded.claim.interactions)
    again = [event.id for event in loaded.events if event.id not in news and event.text is not None]
    held = cards.states(connection, loaded.claim.tenant, again)
    embedder, readable = tools.embedder.id, loaded.shared >= Level.RECORDS

    def says_the_same(row: int) -> bool:
        event = loaded.events[row]
        state = cards.State(
            event.version,
            event.at,
            links[row],
            event.outcome,
            event.ends,
            event.valid_to,
            event.over,
            readable,
            embedder,
        )
        return held.get(event.id) == state

    return [row for row in rows if not says_the_same(row)]


def _cards(
    tools: Tools, loaded: Loaded, worded: Worded, links: Sequence[tuple[int, ...]], rows: Sequence[int]
) -> list[CardDraft]:
    out: list[CardDraft] = []
    for row in rows:
        event = loaded.events[row]
        if event.text is None and event.outcome is None and not event.lost:
            continue
        words = event.words
        vector = worded.vectors[row]
        out.append(
            CardDraft(
                owner=loaded.claim.entity,
                interaction=event.id,
                backend=event.backend,
                native_id=event.native_id,
                version=event.version,
                text=event.text,
                hashed=[tokens.hashed(term) for term in tokens.terms(words)],
                outcome=event.outcome,
                links=links[row],
                vector=vector if np.any(vector) else None,
                embedder=tools.embedder.id,
                at=event.at,
                thread=event.target or 0,
                quarantine=quarantined(words),
                ends=event.ends,
                valid_to=event.valid_to,
                over=event.over,
                lost=event.lost,
            )
        )
    return out


def _drop_moved(connection: Connection, tenant: str, drafts: Sequence[CardDraft], rev: int) -> None:
    """Memories that their store has given to this owner are nobody else's any more, nor is what rests on them."""
    gone = cards.moved(connection, tenant, drafts)
    if gone:
        sources = [cards.card_id(card.id) for card in gone] + [interaction_id(card.interaction) for card in gone]
        items = sorted(derived.descendants(connection, tenant, sources))
        derived.drop(connection, tenant, items, frozenset(card.owner for card in gone))
        cards.bury(connection, tenant, [card.id for card in gone], rev)


def _queue_deliveries(tools: Tools, connection: Connection, tenant: str, items: Sequence[Item], now: int) -> None:
    stores = tools.delivered_to(tenant)
    if not stores or not items:
        return
    d, instead = deliveries.c, [item.id for item in items]
    behind = select(derived_items.c.id).where(derived_items.c.tenant == tenant, derived_items.c.superseded.in_(instead))
    mine = (d.tenant == tenant) & (d.state == DELIVERED) & d.item.in_(behind)
    connection.execute(update(deliveries).where(mine).values(state=RETRACTING))
    known = select(entities.c.id).where(entities.c.tenant == tenant, entities.c.id.in_([item.owner for item in items]))
    owners = set(connection.execute(known.where(entities.c.kind.in_(OWNER_KINDS))).scalars())  # a thing has no store
    rows = [
        {"tenant": tenant, "item": item.id, "backend": backend, "state": "pending", "attempts": 0, "at": now}
        for backend in stores
        for item in items
        if item.owner in owners
    ]
    upsert(connection, deliveries, rows)
