"""What a claim came to, in one transaction, fenced: cards and edges, updates, the claim settled.

Never waits for a model: where one is asked, cards and edges are kept before, and only the
updates and the settling follow. A plan is stored only if the lease and the generation are still
the claim's, and if everybody told may still read everybody behind what it is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, select, update

from collab_layer.errors import StaleLeaseError
from collab_layer.flows.pending import Loaded, Worded
from collab_layer.flows.plan import Plan
from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import read_by_others
from collab_layer.graph import cards, considered, derived, names, outbox, policy, quarantine
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.cards import CardDraft
from collab_layer.graph.derived import Item
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import number_of
from collab_layer.graph.store import policy_version
from collab_layer.graph.tables import deliveries, edges, entities
from collab_layer.graph.writer import edge_rows, interaction_id
from collab_layer.stages import tokens
from collab_layer.stages.quarantine import quarantined
from collab_layer.types.entity import OWNER_KINDS, Entity

FOLD_AT = 16
"""Deltas at which the arrays of a node that others write to are packed."""


def keep(tools: Tools, loaded: Loaded, worded: Worded) -> None:
    """Cards and edges only; the lease stays, and everything can be kept once more.

    Raises:
        StaleLeaseError: Nothing was changed.
    """
    with tools.store.database.write() as connection:
        _check(tools, connection, loaded)
        _records(tools, connection, loaded, worded)


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
        version = _check(tools, connection, loaded)
        if not _holds(tools, connection, loaded, plan, version):
            return False
        if worded is not None:
            _records(tools, connection, loaded, worded)
        elif plan.items:
            names.bump(connection, claim.tenant)  # answers kept in memory do not have them yet
        derived.put(connection, claim.tenant, plan.items)
        considered.mark(connection, claim.tenant, plan.cards, now)
        _queue_deliveries(tools, connection, claim.tenant, plan.items, now)
        outbox.settle(connection, claim, now)
    return True


# -- what must still hold --------------------------------------------------------------


def _check(tools: Tools, connection: Connection, loaded: Loaded) -> int:
    """The version of the grants now; the tenant's row is ours until the commit."""
    outbox.check(connection, loaded.claim, str(loaded.actor))
    tenant, entity = loaded.claim.tenant, loaded.claim.entity
    version = policy_version(connection, tenant)
    if version != loaded.policy:
        shared = read_by_others(policy.rows(connection, tenant, entity), entity, tools.now())
        if shared != loaded.shared:
            raise StaleLeaseError(str(loaded.actor), "its grants changed; its records are read again")
    return version


def _holds(tools: Tools, connection: Connection, loaded: Loaded, plan: Plan, version: int) -> bool:
    tenant, now = loaded.claim.tenant, tools.now()
    if considered.of(connection, tenant, plan.cards):
        return False  # another worker's model has read it meanwhile
    if plan.by_model and not _there(connection, tenant, plan.items):
        return False
    return version == plan.policy or all(_permitted(tools, connection, tenant, item, now) for item in plan.items)


def _there(connection: Connection, tenant: str, items: Sequence[Item]) -> bool:
    """Whether no record or older update that the items rest on was replaced or dropped."""
    wanted = {source for item in items for source, _, _ in item.sources}
    read = {source: number for source in wanted if source[0] == "c" and (number := number_of(source)) is not None}
    older = [source for source in wanted if source[0] == "d"]
    found = cards.texts(connection, tenant, list(read.values()))
    gone = derived.is_erased(connection, tenant, older)
    return len(found) == len(read) and len(derived.get(connection, tenant, older)) - len(gone) == len(older)


def _permitted(tools: Tools, connection: Connection, tenant: str, item: Item, now: int) -> bool:
    """Whether an owner may read everybody behind an item; of a thing's, whether anybody may."""
    name = connection.execute(
        select(entities.c.name).where(entities.c.tenant == tenant, entities.c.id == item.owner)
    ).scalar_one()
    reader = Entity.parse(name)
    if reader.kind not in OWNER_KINDS:
        rows = [(one, policy.rows(connection, tenant, one)) for one in item.principals]
        return all(read_by_others(grants, one, now) >= item.level for one, grants in rows)
    seen = tools.store.audience(connection, tenant, reader, item.owner, None, now)
    return all(seen.level(one) >= item.level for one in item.principals)


# -- cards and edges -------------------------------------------------------------------


def _records(tools: Tools, connection: Connection, loaded: Loaded, worded: Worded) -> None:
    tenant, entity, now = loaded.claim.tenant, loaded.claim.entity, tools.now()
    displays = {topic: surface for topics in worded.topics for topic, surface in topics}
    ids = names.resolve(connection, tenant, [topic for topics in worded.topics for topic, _ in topics], displays)
    links = _edges(connection, loaded, worded, ids, now)
    _, rev = names.bump(connection, tenant)
    drafts = quarantine.spared(connection, tenant, _cards(tools, loaded, worded, links))
    _drop_outdated(connection, tenant, entity, drafts)
    cards.put(connection, tenant, drafts, loaded.shared, rev, now)
    touched = {entity, *(target for event in loaded.events if (target := event.target)), *ids.values()}
    tools.store.adjacency.fold(connection, tenant, [entity])
    tools.store.adjacency.fold(connection, tenant, sorted(touched), at_least=FOLD_AT)
    _count_degree(tools, connection, tenant, entity, rev)


def _edges(
    connection: Connection, loaded: Loaded, worded: Worded, ids: Mapping[Entity, int], now: int
) -> list[tuple[int, ...]]:
    """Write edges to the topics that the words name; each event's links, explicit ones first."""
    tenant, entity = loaded.claim.tenant, loaded.claim.entity
    before = {(event.id, link) for event in loaded.events for link in (*event.links, event.target)}
    # Records that are read again have edges of an earlier reading; so have those of a worker that died over them.
    numbers = [event.id for event, topics in zip(loaded.events, worded.topics, strict=True) if topics]
    for start in range(0, len(numbers), 400):
        rows = connection.execute(
            select(edges.c.interaction, edges.c.dst).where(
                edges.c.tenant == tenant,
                edges.c.src == entity,
                edges.c.interaction.in_(numbers[start : start + 400]),
            )
        )
        before.update((number, dst) for number, dst in rows)
    out: list[tuple[int, ...]] = []
    lines: list[dict[str, Any]] = []
    for event, topics in zip(loaded.events, worded.topics, strict=True):
        found = [ids[topic] for topic, _ in topics]
        out.append(tuple(dict.fromkeys([*event.links, *([event.target] if event.target else []), *found])))
        for id_ in dict.fromkeys(found):
            if (event.id, id_) not in before and id_ != entity:
                lines += edge_rows(
                    tenant, entity, id_, Kind.MENTIONS, weight=1.0, at=event.at, now=now,
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
    stores = tools.delivered_to(tenant)
    if not stores or not items:
        return
    known = select(entities.c.id).where(entities.c.tenant == tenant, entities.c.id.in_([item.owner for item in items]))
    owners = set(connection.execute(known.where(entities.c.kind.in_(OWNER_KINDS))).scalars())  # a thing has no store
    rows = [
        {"tenant": tenant, "item": item.id, "backend": backend, "state": "pending", "attempts": 0, "at": now}
        for backend in stores
        for item in items
        if item.owner in owners
    ]
    upsert(connection, deliveries, rows)
