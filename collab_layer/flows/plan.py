"""Who near an actor may be told of its events, and what the rules tell them.

load:   one snapshot: the actor's neighbourhood turned round, the grants of the actor; several actors
        share a snapshot, and what two of them look at is read once;
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
from collab_layer.governance.grants import Audience, GrantRow, Reader, audience
from collab_layer.graph import policy
from collab_layer.graph.derived import Item, item_id
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.reader import OWN_CAP, Reading, holding_id, neighborhood
from collab_layer.graph.seen import Seen
from collab_layer.graph.writer import interaction_id
from collab_layer.plugins.specs import Leaving
from collab_layer.stages import lessons, propagate
from collab_layer.stages.curate import curate
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import Level
from collab_layer.types.time import DAY

TOGETHER = 8
"""Actors that share a snapshot: whoever reads in this process waits meanwhile."""


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
    with _scenes(tools, [loaded]) as (around,):
        yield around


def by_rules(tools: Tools, loaded: Sequence[Loaded]) -> list[Plan]:
    """What is told of each without a model; nothing when nobody may hear it."""
    found: dict[int, Plan] = {}
    heard = [one for one in loaded if may_be_told(one)]
    for start in range(0, len(heard), TOGETHER):
        with _scenes(tools, heard[start : start + TOGETHER]) as scenes:
            pass
        for around in scenes:
            found[around.loaded.claim.entity] = Plan(tuple(extract(tools, around)), around.policy)
    return [found.get(one.claim.entity) or Plan((), one.policy) for one in loaded]


@contextmanager
def _scenes(tools: Tools, loaded: Sequence[Loaded]) -> Generator[list[Scene]]:
    """Look around some actors of one tenant."""
    tenant, now = loaded[0].claim.tenant, tools.now()
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection, now)
        state, rules = index.state, tools.rules.scorer(connection, index).hash[:12]
        yield [
            Scene(
                connection=connection,
                index=index,
                loaded=one,
                now=now,
                told=tuple(told for _, told in near),
                readers=tuple(who for who, _ in near),
                names=index.names,
                displays=index.displays,
                delta=policy.parsed(state.sharing).delta,
                salt=state.salt,
                rules=rules,
                policy=index.policy,
            )
            for one, near in zip(loaded, _readers(tools, connection, index, loaded, now), strict=True)
        ]


def extract(tools: Tools, around: Scene, but: Collection[str] = ()) -> list[Item]:
    """The newest events in short for the nearest readers, those with the sources in `but` left out.

    Runs share filters, so that it has no place within a snapshot.
    """
    loaded = around.loaded
    happened = [
        _happened(around, event)
        for event in loaded.news
        if event.quarantine is None and source_of(loaded, event) not in but
    ]
    planned = propagate.plan(str(loaded.actor), happened, around.told, delta=around.delta)
    texts: list[str | None] = [plan.text for plan in planned]
    if tools.filters:
        readers = [Entity.parse(around.names[plan.reader]) for plan in planned]
        asked = [Leaving(loaded.actor, who, plan.text) for who, plan in zip(readers, planned, strict=True)]
        texts = tools.leaving(asked)
    kept = [
        plan if text == plan.text else replace(plan, text=text)
        for plan, text in zip(planned, texts, strict=True)
        if text is not None
    ]
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
    tools: Tools, connection: Connection, index: TenantIndex, loaded: Sequence[Loaded], now: int
) -> list[list[tuple[Reader, propagate.Told]]]:
    """Each actor's own neighbourhood, turned round: who near it may read it."""
    tenant, actors = loaded[0].claim.tenant, [one.claim.entity for one in loaded]
    grants = policy.rows_of(connection, tenant, now, actors, known=None if index.state.limited else ())
    seen = Seen(tools.store.adjacency, connection, tenant, now)
    seen.around_each(actors, OWN_CAP)
    near = [_near(tools, Reading(connection, tenant, index, seen, _whole(actor, now), now), actor) for actor in actors]
    ids = list(dict.fromkeys(id_ for found in near for id_ in found))
    known = policy.readers(connection, tools.store.adjacency, tenant, ids, None, index.names) if ids else []
    who = {one.id: one for one in known}
    out: list[list[tuple[Reader, propagate.Told]]] = []
    for actor, found in zip(actors, near, strict=True):
        levels = _levels(grants[actor], [who[id_] for id_ in found], actor, now)
        told = [
            (who[id_], propagate.Told(id_, nearness, level))
            for (id_, nearness), level in zip(found.items(), levels, strict=True)
            if level > Level.NONE
        ]
        out.append(told)
    return out


def _levels(grants: Sequence[GrantRow], readers: Sequence[Reader], owner: int, now: int) -> list[Level]:
    """What each reader may use of an owner; those whom the same grants are about are alike."""
    audiences = frozenset(grant.audience for grant in grants)
    known: dict[frozenset[str], Level] = {}
    out: list[Level] = []
    for who in readers:
        means = audiences & who.names
        if means not in known:
            known[means] = audience(grants, who, now).level(owner)
        out.append(known[means])
    return out


def _whole(actor: int, now: int) -> Audience:
    """The layer's own view; only ids leave it."""
    return replace(audience([], Reader(actor, frozenset(), None), now), default=Level.RECORDS)


def _near(tools: Tools, reading: Reading, actor: int) -> dict[int, float]:
    """Owners around an actor, nearest first, and how near each is, in (0, 1]."""
    chosen = curate(neighborhood(reading, actor), tools.scorer_of(reading), k=4 * propagate.FANOUT, min_things=0)
    owners, scores = chosen.ids[chosen.is_owner].tolist(), chosen.scores[chosen.is_owner].tolist()
    best = max(scores, default=0.0)
    return {id_: score / best for id_, score in zip(owners, scores, strict=True)} if best > 0 else {}


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
