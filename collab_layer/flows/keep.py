"""What claims came to, in two transactions, fenced: cards and edges; updates, and the claims settled.

Never waits for a model: cards and edges are kept before one is asked. Whatever is stored for several
claims is stored for each as if it were alone; a claim whose lease, generation or grants moved on is
left out and holds up no other. A plan is stored only if everybody told may still read everybody
behind what it is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, select, update

from collab_layer.flows import edging, pending
from collab_layer.flows.pending import Loaded, Worded
from collab_layer.flows.plan import Plan, may_be_told
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
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

FOLD_AT = 16
"""Deltas at which the arrays of a node that others write to are packed."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of some plans: those not named are lost, since somebody else has the claim, or something was erased.

    Attributes:
        done: Stored and settled.
        again: What the plan rests on moved on: nothing was changed, plan anew.
    """

    done: list[Loaded]
    again: list[Loaded]


def keep(tools: Tools, worded: Sequence[Worded]) -> list[Loaded]:
    """Store cards and edges of some claims of one tenant; settle those of which nobody is to be told.

    Of the others the leases stay, and everything can be kept once more.

    Returns:
        The claims that are still ours; of the others nothing was changed.
    """
    with tools.store.database.write() as connection:
        stands, ours = _ours(tools, connection, [one.loaded for one in worded])
        if ours:
            still = {one.claim.entity for one in ours}
            _records(tools, connection, [one for one in worded if one.loaded.claim.entity in still], stands)
            outbox.settle(connection, [one.claim for one in ours if not may_be_told(one)])
    return ours


def finish(tools: Tools, plans: Sequence[tuple[Loaded, Plan]]) -> Finished:
    """Store plans for claims of one tenant, and settle these."""
    tenant, now = plans[0][0].claim.tenant, tools.now()
    with tools.store.database.write() as connection:
        stands, ours = _ours(tools, connection, [loaded for loaded, _ in plans])
        still = {one.claim.entity for one in ours}
        held = [(loaded, plan) for loaded, plan in plans if loaded.claim.entity in still]
        kept: list[tuple[Loaded, Plan]] = []
        again: list[Loaded] = []
        for loaded, plan in held:
            if _holds(tools, connection, tenant, plan, stands.policy):
                kept.append((loaded, plan))
            else:
                again.append(loaded)
        items = [item for _, plan in kept for item in plan.items]
        if items:
            names.bump(connection, tenant)  # answers kept in memory do not have them yet
        items = evidence.capped(connection, tenant, items, now)
        derived.put(connection, tenant, items)
        considered.mark(connection, tenant, [card for _, plan in kept for card in plan.cards], now)
        _queue_deliveries(tools, connection, tenant, items, now)
        outbox.settle(connection, [loaded.claim for loaded, _ in kept])
    return Finished([loaded for loaded, _ in kept], again)


# -- what must still hold --------------------------------------------------------------


def _ours(tools: Tools, connection: Connection, loaded: Sequence[Loaded]) -> tuple[Tenant, list[Loaded]]:
    """Where the tenant stands, whose row is ours until the commit; the claims that are ours, and rest on what holds."""
    stands, held = outbox.check(connection, [one.claim for one in loaded])
    still = {claim.entity for claim in held}
    ours = [one for one in loaded if one.claim.entity in still]
    moved = [one.claim.entity for one in ours if one.policy != stands.policy]
    if moved:
        shared = policy.shared_by(connection, loaded[0].claim.tenant, moved, tools.now())
        ours = [one for one in ours if shared.get(one.claim.entity, one.shared) == one.shared]
    ends = pending.ends(connection, ours)
    return stands, [one for one in ours if all(ends[event.id] == event.followed for event in one.events)]


def _holds(tools: Tools, connection: Connection, tenant: str, plan: Plan, version: int) -> bool:
    now = tools.now()
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


@dataclass(frozen=True, slots=True)
class _Part:
    """One claim's part of what is stored: the links of each event, and the events that are to be written."""

    worded: Worded
    links: list[tuple[int, ...]]
    rows: list[int]

    @property
    def loaded(self) -> Loaded:
        return self.worded.loaded

    @property
    def ended(self) -> dict[int, int]:
        """When each event was over, of those whose card or edges may say something else."""
        events = [self.loaded.events[row] for row in self.rows]
        again = self.loaded.claim.refresh
        return {event.id: event.followed for event in events if again or event.valid_to < FOREVER}

    @property
    def touched(self) -> set[int]:
        """Nodes of which edges are written, the actor left out."""
        targets = {target for row in self.rows if (target := self.loaded.events[row].target)}
        return targets | {id_ for row in self.rows for id_ in self.links[row]}


def _records(tools: Tools, connection: Connection, worded: Sequence[Worded], stands: Tenant) -> None:
    tenant, now, adjacency = worded[0].loaded.claim.tenant, tools.now(), tools.store.adjacency
    ids = _named(tools, connection, worded, stands)
    parts = [_part(tools, connection, one, ids) for one in worded]
    touched = {id_ for part in parts for id_ in part.touched}
    written = [(part.loaded, part.links, part.rows) for part in parts]
    edging.write(connection, adjacency, written, now, touched=touched, fold_at=FOLD_AT)
    _, rev = names.bump(connection, tenant)
    drafts = quarantine.spared(connection, tenant, [draft for part in parts for draft in _cards(tools, part)])
    _drop_moved(connection, tenant, drafts, rev)
    cards.put(connection, tenant, drafts, rev, now)
    edging.pin(connection, [part.loaded for part in parts])
    spans.bring(connection, adjacency, tenant, {id_: end for part in parts for id_, end in part.ended.items()}, now)
    actors = [part.loaded.claim.entity for part in parts]
    edging.count_degrees(connection, adjacency, tenant, actors, now, rev)


def _named(tools: Tools, connection: Connection, worded: Sequence[Worded], stands: Tenant) -> dict[Entity, int]:
    """The ids of all that the words name; where others' texts may mean a name too, it is noted."""
    tenant, mentions, wanted = worded[0].loaded.claim.tenant, dict[Entity, Mention](), dict[Entity, None]()
    for event, topics in ((event, topics) for one in worded for event, topics in one.told):
        for topic, surface in topics:
            wanted[topic] = None
            if surface is not None:
                mention(mentions, topic, event.at, surface, by_caller=False)
    read_at = min(one.loaded.rev for one in worded)
    learned = FOREVER if stands.rev == read_at else names.learned_since(connection, tenant, read_at)
    met = names.meet(connection, tenant, wanted, mentions)
    if learned <= max((event.at for one in worded for event in one.loaded.events if event.text), default=-1):
        latecomers.note(connection, tenant, learned)  # told by somebody else while these were read
    if met.late < FOREVER and tools.store.index(tenant).said_after(met.late):
        latecomers.note(connection, tenant, met.late)
    return met.ids


def _part(tools: Tools, connection: Connection, worded: Worded, ids: Mapping[Entity, int]) -> _Part:
    links = edging.links(worded, ids)
    return _Part(worded, links, _changed(tools, connection, worded.loaded, links))


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


def _cards(tools: Tools, part: _Part) -> list[CardDraft]:
    loaded, out = part.loaded, list[CardDraft]()
    for row in part.rows:
        event = loaded.events[row]
        if event.text is None and event.outcome is None and not event.lost:
            continue
        vector = part.worded.vectors[row]
        out.append(
            CardDraft(
                owner=loaded.claim.entity,
                interaction=event.id,
                backend=event.backend,
                native_id=event.native_id,
                version=event.version,
                text=event.text,
                hashed=part.worded.hashed[row],
                outcome=event.outcome,
                links=part.links[row],
                vector=vector if np.any(vector) else None,
                embedder=tools.embedder.id,
                at=event.at,
                thread=event.target or 0,
                readable=loaded.shared >= Level.RECORDS,
                quarantine=event.quarantine,
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
