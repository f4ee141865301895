"""One entity's pending interactions to cards, links and updates for those around it.

load:   the claim, its interactions, the words they refer to (each store asked once);
stages: link, embed, curate, propagate;
save:   one transaction, fenced: cards, edges, derived items with lineage, the claim settled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, select, update

from collab_layer.errors import BackendError, StaleLeaseError
from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import Reader, audience, read_by_others
from collab_layer.graph import cards, derived, names, outbox, policy
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.cards import CardDraft
from collab_layer.graph.derived import Item, item_id
from collab_layer.graph.engine import upsert
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.outbox import Claim
from collab_layer.graph.reader import Reading, holding_id, neighborhood
from collab_layer.graph.tables import deliveries, edges, entities, interactions
from collab_layer.graph.writer import edge_rows, interaction_id
from collab_layer.plugins.specs import Event, Leaving, LinkRequest
from collab_layer.stages import lessons, link, propagate, tokens
from collab_layer.stages.curate import curate
from collab_layer.stages.quarantine import quarantined
from collab_layer.types.entity import OWNER_KINDS, Entity, MemoryRef
from collab_layer.types.facet import FacetKind
from collab_layer.types.graph import Vectors
from collab_layer.types.scope import Level
from collab_layer.types.time import DAY, FOREVER, micros

FOLD_AT = 16
"""Deltas at which the arrays of a node that others write to are packed."""


@dataclass(slots=True)
class Pending:
    """One pending interaction with its words; `text` None where the store has it no more."""

    id: int
    target: int | None
    verb: str
    outcome: str | None
    links: tuple[int, ...]
    at: int
    backend: str
    native_id: str
    version: str
    text: str | None
    valid_to: int = FOREVER


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a claim is about."""

    claim: Claim
    actor: Entity
    events: list[Pending]
    shared: Level


@dataclass(frozen=True, slots=True)
class Worded:
    """Links and vectors found in the words."""

    topics: list[list[tuple[Entity, str]]]
    vectors: Vectors


async def spread(tools: Tools, claim: Claim) -> int:
    """Work one claim off; how many interactions it settled.

    Raises:
        StaleLeaseError: Somebody else has it, or something was erased: nothing was changed.
        BackendError: A store did not answer: nothing was changed, it is tried again.
    """
    loaded = await tools.in_thread(_load, tools, claim)
    await _read_words(tools, loaded)
    worded = await _find(tools, loaded)
    updates = await tools.in_thread(_save, tools, loaded, worded)
    if loaded.events:
        facts = {"interactions": len(claim.interactions), "updates": updates}
        tools.tell(Event("propagated", claim.tenant, str(loaded.actor), facts))
    return len(claim.interactions)


def _load(tools: Tools, claim: Claim) -> Loaded:
    tenant, i = claim.tenant, interactions.c
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)  # the names that are known are looked for in the words
        name = connection.execute(
            select(entities.c.name).where(entities.c.tenant == tenant, entities.c.id == claim.entity)
        ).scalar()
        if name is None:
            raise StaleLeaseError(f"entity {claim.entity}", "it was erased meanwhile")
        where = (i.tenant == tenant) & (i.actor == claim.entity)
        rows: list[Row[Any]] = []
        if claim.refresh:
            worded = i.text.is_not(None) | i.backend.is_not(None) | i.id.in_(claim.interactions)
            rows += connection.execute(select(interactions).where(where, worded).order_by(i.id)).all()
        else:
            for start in range(0, len(claim.interactions), 400):
                part = i.id.in_(claim.interactions[start : start + 400])
                rows += connection.execute(select(interactions).where(where, part).order_by(i.id)).all()
        shared = read_by_others(policy.rows(connection, tenant, claim.entity), claim.entity, tools.now())
    return Loaded(claim, Entity.parse(name), [_event(row) for row in rows], shared)


def _event(row: Any) -> Pending:
    return Pending(
        id=row.id,
        target=row.target,
        verb=row.verb,
        outcome=row.outcome,
        links=tuple(json.loads(row.links)),
        at=row.at,
        backend=row.backend or "",
        native_id=row.native_id or interaction_id(row.id),
        version=row.version or "",
        text=row.text,
    )


async def _read_words(tools: Tools, loaded: Loaded) -> None:
    """Ask each store once for the records that are referred to; what is gone stays without words."""
    wanted: dict[str, dict[str, MemoryRef]] = {}
    for event in loaded.events:
        if event.backend and event.text is None:
            ref = MemoryRef(backend=event.backend, id=event.native_id, version=event.version)
            wanted.setdefault(event.backend, {})[event.native_id] = ref
    for backend, refs in wanted.items():
        store = tools.backends.get((loaded.claim.tenant, backend))
        if store is None:
            raise BackendError(backend, "it is not attached to this layer, so its memories cannot be read")
        found = {record.ref.id: record for record in await store.read(list(refs.values()))}
        for event in loaded.events:
            record = found.get(event.native_id) if event.backend == backend else None
            # A reference to somebody else's memory makes it nobody's own.
            if record is not None and record.owner == loaded.actor:
                event.text, event.version = record.text[:100_000], record.ref.version
                event.valid_to = FOREVER if record.valid_to is None else micros(record.valid_to)


async def _find(tools: Tools, loaded: Loaded) -> Worded:
    said = [event.text or "" for event in loaded.events]
    full = [_words(event) for event in loaded.events]
    known = tools.store.index(loaded.claim.tenant).known
    topics = await tools.in_thread(_topics, tools, loaded.actor, said, known)
    vectors = await tools.embedder.embed(full) if any(full) else np.zeros((len(full), tools.embedder.dim), np.float32)
    return Worded(topics, vectors)


def _words(event: Pending) -> str:
    return " ".join(part for part in (event.text, event.outcome) if part)


def _topics(
    tools: Tools, actor: Entity, texts: Sequence[str], known: Mapping[str, Entity]
) -> list[list[tuple[Entity, str]]]:
    asked = [row for row, text in enumerate(texts) if text]
    found = tools.link([LinkRequest(actor, texts[row]) for row in asked], dict(known))
    surfaces = [dict(link.topics(texts[row])) for row in asked]
    out: list[list[tuple[Entity, str]]] = [[] for _ in texts]
    for row, links, surface in zip(asked, found, surfaces, strict=True):
        out[row] = [(entity, surface.get(entity, entity.id)) for entity in links if entity != actor]
    return out


# -- one transaction -------------------------------------------------------------------


def _save(tools: Tools, loaded: Loaded, worded: Worded) -> int:
    claim, tenant, now = loaded.claim, loaded.claim.tenant, tools.now()
    planned = _plan(tools, loaded, worded)
    with tools.store.database.write() as connection:
        outbox.check(connection, claim, str(loaded.actor))
        found = [entity for topics in worded.topics for entity, _ in topics]
        displays = {entity: surface for topics in worded.topics for entity, surface in topics}
        ids = names.resolve(connection, tenant, found, displays)
        links = _edges(connection, tenant, loaded, worded, ids, now)
        _, rev = names.bump(connection, tenant)
        drafts = _cards(tools, loaded, worded, links)
        _drop_outdated(connection, tenant, claim.entity, drafts)
        cards.put(connection, tenant, drafts, loaded.shared, rev, now)
        derived.put(connection, tenant, planned)
        _queue_deliveries(tools, connection, tenant, planned, now)
        touched = {claim.entity, *(target for event in loaded.events if (target := event.target)), *ids.values()}
        tools.store.adjacency.fold(connection, tenant, [claim.entity])
        tools.store.adjacency.fold(connection, tenant, sorted(touched), at_least=FOLD_AT)
        _count_degree(tools, connection, tenant, claim.entity, rev)
        outbox.settle(connection, claim, now)
    return len(planned)


def _edges(
    connection: Connection,
    tenant: str,
    loaded: Loaded,
    worded: Worded,
    ids: Mapping[Entity, int],
    now: int,
) -> list[tuple[int, ...]]:
    """Write edges to the topics that the words name; each event's links, explicit ones first."""
    before = {(event.id, link) for event in loaded.events for link in (*event.links, event.target)}
    # Only records that are read again can have edges of an earlier reading.
    numbers = [event.id for event in loaded.events] if loaded.claim.refresh else []
    for start in range(0, len(numbers), 400):
        rows = connection.execute(
            select(edges.c.interaction, edges.c.dst).where(
                edges.c.tenant == tenant,
                edges.c.src == loaded.claim.entity,
                edges.c.interaction.in_(numbers[start : start + 400]),
            )
        )
        before.update((number, dst) for number, dst in rows)
    out: list[tuple[int, ...]] = []
    lines: list[dict[str, Any]] = []
    for event, topics in zip(loaded.events, worded.topics, strict=True):
        found = [ids[entity] for entity, _ in topics]
        out.append(tuple(dict.fromkeys([*event.links, *([event.target] if event.target else []), *found])))
        for id_ in dict.fromkeys(found):
            if (event.id, id_) not in before and id_ != loaded.claim.entity:
                lines += edge_rows(
                    tenant, loaded.claim.entity, id_, Kind.MENTIONS, weight=1.0, at=event.at, now=now,
                    interaction=event.id,
                )  # fmt: skip
    if lines:
        connection.execute(edges.insert(), lines)
    return out


def _cards(tools: Tools, loaded: Loaded, worded: Worded, links: Sequence[tuple[int, ...]]) -> list[CardDraft]:
    out: list[CardDraft] = []
    for row, event in enumerate(loaded.events):
        if event.text is None and event.outcome is None:
            continue
        words = _words(event)
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
                valid_to=event.valid_to,
            )
        )
    return out


def _drop_outdated(connection: Connection, tenant: str, owner: int, drafts: Sequence[CardDraft]) -> None:
    """What was derived from an older wording of these memories does not hold any more."""
    before = cards.existing(connection, tenant, [(draft.backend, draft.native_id) for draft in drafts])
    old = cards.outdated(drafts, before)
    sources = [cards.card_id(card.id) for card in old] + [interaction_id(card.interaction) for card in old]
    if sources:
        derived.drop(connection, tenant, sorted(derived.descendants(connection, tenant, sources)), frozenset([owner]))


def _count_degree(tools: Tools, connection: Connection, tenant: str, entity: int, rev: int) -> None:
    packed = tools.store.adjacency.edges(connection, tenant, [entity])[entity]
    held = packed[np.isin(packed["kind"], (int(Kind.INTERACTED), int(Kind.MENTIONS)))]
    connection.execute(
        update(entities)
        .where(entities.c.tenant == tenant, entities.c.id == entity)
        .values(degree=len(np.unique(held["dst"])), rev=rev)
    )


def _queue_deliveries(tools: Tools, connection: Connection, tenant: str, items: Sequence[Item], now: int) -> None:
    rows = [
        {"tenant": tenant, "item": item.id, "backend": backend, "state": "pending", "attempts": 0, "at": now}
        for backend in tools.delivered_to(tenant)
        for item in items
    ]
    upsert(connection, deliveries, rows)


# -- planning: pure stages over one snapshot ---------------------------------------------


def _plan(tools: Tools, loaded: Loaded, worded: Worded) -> list[Item]:
    """Updates for those around the actor who may read it; nothing when nobody may."""
    events = [event for event in loaded.events if event.id in set(loaded.claim.interactions)]
    if loaded.shared < Level.RECORDS or not events or loaded.actor.kind not in OWNER_KINDS:
        return []
    claim, tenant, now = loaded.claim, loaded.claim.tenant, tools.now()
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)
        told = _readers(tools, connection, index, loaded, now)
        if not told:
            return []
        delta = policy.sharing(connection, tenant).delta
        salt = names.salt(connection, tenant)
    display = index.displays
    happened = [
        propagate.Happened(
            source=interaction_id(event.id)
            if event.text or event.target is None
            else holding_id(claim.entity, event.target),
            target=event.target,
            label="" if event.target is None else display[event.target],
            verb=event.verb,
            lesson=_lesson(event, index),
            links=tuple(dict.fromkeys([*([event.target] if event.target else []), *event.links])),
            at=event.at,
        )
        for event in events
        if quarantined(_words(event)) is None
    ]
    planned = propagate.plan(str(loaded.actor), happened, told, delta=delta)
    leaving = [Leaving(loaded.actor, Entity.parse(index.names[plan.reader]), plan.text) for plan in planned]
    planned = [
        replace(plan, text=text) for plan, text in zip(planned, tools.leaving(leaving), strict=True) if text is not None
    ]
    return [_item(tools, salt, claim, plan, index.names[plan.reader], now) for plan in planned]


def _lesson(event: Pending, index: TenantIndex) -> str | None:
    if event.text is None:
        return None
    labels = [index.displays[link] for link in event.links if index.named(link)]
    return lessons.lesson(event.text, links=labels, outcome=event.outcome, verb=event.verb)


def _readers(
    tools: Tools, connection: Connection, index: TenantIndex, loaded: Loaded, now: int
) -> list[propagate.Told]:
    """The actor's own neighbourhood, turned round: who near it may read it."""
    entity = loaded.claim.entity
    everybody = policy.rows(connection, loaded.claim.tenant, entity)
    inside = audience([], Reader(entity, frozenset(), None), now)
    whole = replace(inside, default=Level.RECORDS)  # the layer's own view; only ids leave it
    reading = Reading(connection, loaded.claim.tenant, index, tools.store.adjacency, whole, now)
    chosen = curate(neighborhood(reading, entity), tools.scorer, k=4 * propagate.FANOUT, min_things=0)
    owners = chosen.ids[chosen.is_owner]
    best = float(chosen.scores[chosen.is_owner].max()) if len(owners) else 0.0
    out: list[propagate.Told] = []
    known = policy.readers(connection, tools.store.adjacency, loaded.claim.tenant, owners.tolist(), None, index.names)
    for who, score in zip(known, chosen.scores[chosen.is_owner].tolist(), strict=True):
        level = audience(everybody, who, now).level(entity)
        if level > Level.NONE and best > 0:
            out.append(propagate.Told(who.id, score / best, level))
    return out


def _item(tools: Tools, salt: str, claim: Claim, plan: propagate.Planned, reader: str, now: int) -> Item:
    key = f"update:{plan.source}"
    return Item(
        id=item_id(salt, reader, FacetKind.UPDATE, key, plan.text, [plan.source]),
        owner=plan.reader,
        kind=FacetKind.UPDATE,
        key=key,
        text=plan.text,
        confidence=plan.confidence,
        level=plan.level,
        links=plan.links,
        sources=((plan.source, claim.entity, 1.0),),
        made_by=f"rules {tools.scorer.hash[:12]}",
        at=now,
        expires=now + propagate.TTL_DAYS * DAY,
    )
