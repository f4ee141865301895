"""Who near an actor may be told of its events, and what the rules tell them.

load:   one snapshot: the actor's neighbourhood turned round, the grants of the actor;
stages: curate, propagate;
save:   nothing; a `Plan` is applied by `flows.keep`, if what it rests on still holds.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from collab_layer.flows.pending import Loaded, Pending
from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import Reader, audience
from collab_layer.graph import names, policy
from collab_layer.graph.derived import Item, item_id
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.reader import Reading, holding_id, neighborhood
from collab_layer.graph.writer import interaction_id
from collab_layer.plugins.specs import Leaving
from collab_layer.stages import lessons, propagate
from collab_layer.stages.curate import curate
from collab_layer.stages.quarantine import quarantined
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import Level
from collab_layer.types.time import DAY


@dataclass(frozen=True, slots=True)
class Plan:
    """Updates to be stored.

    Attributes:
        items: One per receiver and source.
        policy: The version of the grants that it was made under.
        cards: Records of one matter that a model has read for it.
        by_model: Whether a model worded any of it.
        repaired: Parts of its reply that were put right or left out.
    """

    items: tuple[Item, ...]
    policy: int
    cards: tuple[int, ...] = ()
    by_model: bool = False
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Scene:
    """One snapshot around an actor.

    Attributes:
        connection, index: Not to be used beyond `scene`.
        told: Owners near the actor that may read it at all, nearest first, with their level.
        readers: Who each of them is to grants, in the order of `told`.
        names, displays: Of every entity, by dense id; they only ever grow.
        delta: The most one principal's word counts.
        salt: The tenant's secret.
        rules: Hash of the curation rules, shortened.
        policy: The version of the grants.
    """

    connection: Connection
    index: TenantIndex
    loaded: Loaded
    now: int
    told: tuple[propagate.Told, ...]
    readers: tuple[Reader, ...]
    names: Sequence[str]
    displays: Sequence[str]
    delta: float
    salt: str
    rules: str
    policy: int


def may_be_told(loaded: Loaded) -> bool:
    """Whether there is news of an owner whose words anybody else may read."""
    return loaded.shared >= Level.RECORDS and bool(loaded.news) and loaded.actor.kind in OWNER_KINDS


@contextmanager
def scene(tools: Tools, loaded: Loaded) -> Generator[Scene]:
    """Look around the actor."""
    tenant, now, index = loaded.claim.tenant, tools.now(), tools.store.index(loaded.claim.tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection, now)
        readers, told = _readers(tools, connection, index, loaded, now)
        yield Scene(
            connection=connection,
            index=index,
            loaded=loaded,
            now=now,
            told=told,
            readers=readers,
            names=index.names,
            displays=index.displays,
            delta=policy.parsed(index.sharing).delta,
            salt=names.salt(connection, tenant),
            rules=tools.rules.scorer(connection, index).hash[:12],
            policy=index.policy,
        )


def by_rules(tools: Tools, loaded: Loaded) -> Plan:
    """What is told without a model; nothing when nobody may hear it."""
    if not may_be_told(loaded):
        return Plan((), loaded.policy)
    with scene(tools, loaded) as around:
        pass
    return Plan(tuple(extract(tools, around)), around.policy)


def extract(tools: Tools, around: Scene, but: Collection[str] = ()) -> list[Item]:
    """The newest events in short for the nearest readers, those with the sources in `but` left out.

    Runs share filters, so that it has no place within a snapshot.
    """
    loaded = around.loaded
    happened = [
        _happened(around, event)
        for event in loaded.news
        if quarantined(event.words) is None and source_of(loaded, event) not in but
    ]
    planned = propagate.plan(str(loaded.actor), happened, around.told, delta=around.delta)
    leaving = [Leaving(loaded.actor, Entity.parse(around.names[plan.reader]), plan.text) for plan in planned]
    texts = tools.leaving(leaving)
    kept = [replace(plan, text=text) for plan, text in zip(planned, texts, strict=True) if text is not None]
    ends = {source_of(loaded, event): event.valid_to for event in loaded.news}
    return [_item(around, plan, ends[plan.source]) for plan in kept]


def source_of(loaded: Loaded, event: Pending) -> str:
    """What stands for an event in a lineage: of one without words, that the actor holds the thing."""
    if event.text or event.target is None:
        return interaction_id(event.id)
    return holding_id(loaded.claim.entity, event.target)


def _happened(around: Scene, event: Pending) -> propagate.Happened:
    return propagate.Happened(
        source=source_of(around.loaded, event),
        target=event.target,
        label="" if event.target is None else around.displays[event.target],
        verb=event.verb,
        lesson=_lesson(event, around),
        links=tuple(dict.fromkeys([*([event.target] if event.target else []), *event.links])),
        at=event.at,
    )


def _lesson(event: Pending, around: Scene) -> str | None:
    if event.text is None:
        return None
    labels = [around.displays[link] for link in event.links if 0 <= link < len(around.names) and around.names[link]]
    return lessons.lesson(event.text, links=labels, outcome=event.outcome, verb=event.verb)


def _readers(
    tools: Tools, connection: Connection, index: TenantIndex, loaded: Loaded, now: int
) -> tuple[tuple[Reader, ...], tuple[propagate.Told, ...]]:
    """The actor's own neighbourhood, turned round: who near it may read it."""
    entity, tenant = loaded.claim.entity, loaded.claim.tenant
    everybody = policy.rows(connection, tenant, now, entity)
    inside = audience([], Reader(entity, frozenset(), None), now)
    whole = replace(inside, default=Level.RECORDS)  # the layer's own view; only ids leave it
    reading = Reading(connection, tenant, index, tools.store.adjacency, whole, now)
    chosen = curate(neighborhood(reading, entity), tools.scorer_of(reading), k=4 * propagate.FANOUT, min_things=0)
    owners, scores = chosen.ids[chosen.is_owner], chosen.scores[chosen.is_owner].tolist()
    best = max(scores, default=0.0)
    known = policy.readers(connection, tools.store.adjacency, tenant, owners.tolist(), None, index.names)
    found = [
        (who, propagate.Told(who.id, score / best, level))
        for who, score in zip(known, scores, strict=True)
        if best > 0 and (level := audience(everybody, who, now).level(entity)) > Level.NONE
    ]
    return tuple(who for who, _ in found), tuple(told for _, told in found)


def _item(around: Scene, plan: propagate.Planned, end: int) -> Item:
    key = f"update:{plan.source}"
    reader = around.names[plan.reader]
    return Item(
        id=item_id(around.salt, reader, FacetKind.UPDATE, key, plan.text, [plan.source]),
        owner=plan.reader,
        kind=FacetKind.UPDATE,
        key=key,
        text=plan.text,
        confidence=plan.confidence,
        level=plan.level,
        links=plan.links,
        sources=((plan.source, around.loaded.claim.entity, 1.0),),
        made_by=f"rules {around.rules}",
        at=around.now,
        expires=min(around.now + propagate.TTL_DAYS * DAY, end),
    )
