"""One claim to its events, with their words, the entities named in them, and vectors.

load:   the claim's interactions, or all that its entity noted where its records are read again;
read:   the words they refer to, each store asked once, see `flows.words`;
stages: link, embed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, bindparam, select

from collab_layer.errors import StaleLeaseError
from collab_layer.flows.tools import Tools
from collab_layer.graph import policy, spans
from collab_layer.graph.ids import interaction_id
from collab_layer.graph.known import Known
from collab_layer.graph.outbox import Claim
from collab_layer.graph.tables import cards, interactions
from collab_layer.plugins.specs import LinkRequest
from collab_layer.stages import link
from collab_layer.stages.tokens import fold
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Vectors
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

_I = interactions.c
_TOLD = (
    select(interactions)
    .where(_I.tenant == bindparam("tenant"), _I.actor == bindparam("actor"))
    .where(_I.id.in_(bindparam("numbers", expanding=True)))
    .order_by(_I.id)
)


@dataclass(slots=True)
class Pending:
    """One pending interaction with its words; `text` None where the store has it no more.

    Attributes:
        ends: Its own end, as its store says.
        followed: When something took its place, by all that is told by now.
        over: Whether it holds no more: nobody is told of it.
        lost: The store has another version, and the words of this one were not kept.
        pinned: The version was not said, and is the one that was found.
    """

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
    ends: int = FOREVER
    followed: int = FOREVER
    over: bool = False
    lost: bool = False
    pinned: bool = False

    @property
    def words(self) -> str:
        """All that is said about it."""
        return " ".join(part for part in (self.text, self.outcome) if part)

    @property
    def valid_to(self) -> int:
        """Until when it holds."""
        return min(self.ends, self.followed)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a claim is about.

    Attributes:
        claim: The lease.
        actor: Whose events.
        events: With the words that could be read.
        shared: The highest level at which anybody else may read the actor.
        policy: The version of the grants that this was read under.
        rev: The version of the names that it was read with.
    """

    claim: Claim
    actor: Entity
    events: list[Pending]
    shared: Level
    policy: int
    rev: int = 0

    @property
    def news(self) -> list[Pending]:
        """Those that are told of for the first time, and hold."""
        fresh = set(self.claim.interactions)
        return [event for event in self.events if event.id in fresh and not event.over]

    @property
    def refs(self) -> set[tuple[str, str]]:
        """The stored memories that the events tell of."""
        return {(event.backend, event.native_id) for event in self.events if event.backend}


@dataclass(frozen=True, slots=True)
class Worded:
    """Links and vectors found in the words.

    Attributes:
        topics: Per event the entities that its text names, with the words it used; without words
            where it means something that was known under that name.
        vectors: Per event.
    """

    topics: list[list[tuple[Entity, str | None]]]
    vectors: Vectors


def load(tools: Tools, claim: Claim) -> Loaded:
    """The events of a claim, with the words that we keep ourselves.

    Raises:
        StaleLeaseError: The entity was erased meanwhile.
    """
    tenant = claim.tenant
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection, tools.now())  # the names that are known are looked for in the words
        if not index.named(claim.entity):
            raise StaleLeaseError(f"entity {claim.entity}", "it was erased meanwhile")
        events = [_event(row) for row in _rows(connection, claim)]
        shared = policy.shared(connection, tenant, claim.entity, tools.now())
        actor = Entity.parse(index.names[claim.entity])
        loaded = Loaded(claim, actor, events, shared, index.policy, index.rev)
        if not any(event.backend and event.text is None for event in events):
            set_ends(connection, loaded, tools.now())
        return loaded


def set_ends(connection: Connection, loaded: Loaded, now: int) -> None:
    """Note until when each event holds, by all that is told by now."""
    ends = spans.ends(connection, loaded.claim.tenant, [event.id for event in loaded.events], loaded.refs)
    for event in loaded.events:
        event.followed = ends[event.id]
        event.over = event.followed < FOREVER or event.ends <= now


def _rows(connection: Connection, claim: Claim) -> list[Row[Any]]:
    i = interactions.c
    where = (i.tenant == claim.tenant) & (i.actor == claim.entity)
    if claim.refresh:
        stored = i.backend.in_(claim.only) if claim.only else i.text.is_not(None) | i.backend.is_not(None)
        worded = stored | i.id.in_(claim.interactions)
        return list(connection.execute(select(interactions).where(where, worded).order_by(i.id)))
    rows: list[Row[Any]] = []
    for start in range(0, len(claim.interactions), 400):
        part = {"numbers": claim.interactions[start : start + 400]}
        rows += connection.execute(_TOLD, {"tenant": claim.tenant, "actor": claim.entity, **part}).all()
    return rows


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


async def find(tools: Tools, loaded: Loaded) -> Worded:
    """The entities that the words name, and their vectors; what was embedded before is not again."""
    names = tools.store.index(loaded.claim.tenant).known_names
    topics = await tools.in_thread(_topics, tools, loaded, names)
    kept = await tools.in_thread(_vectors, tools, loaded) if loaded.claim.refresh else {}
    vectors = np.zeros((len(loaded.events), tools.embedder.dim), np.float32)
    todo = [row for row, event in enumerate(loaded.events) if event.words and event.id not in kept]
    if todo:
        vectors[todo] = await tools.embedder.embed([loaded.events[row].words for row in todo])
    for row, event in enumerate(loaded.events):
        if event.id in kept:
            vectors[row] = kept[event.id]
    return Worded(topics, vectors)


def _topics(tools: Tools, loaded: Loaded, names: Known) -> list[list[tuple[Entity, str | None]]]:
    """Each text is read with the names that were known when it was said, those that others here brought included."""
    out: list[list[tuple[Entity, str | None]]] = [[] for _ in loaded.events]
    worded = sorted((event.at, event.id, row) for row, event in enumerate(loaded.events) if event.text)
    rows = [row for _, _, row in worded]
    own = {row: dict(link.topics(loaded.events[row].text or "")) for row in rows}
    asked = {row: LinkRequest(loaded.actor, loaded.events[row].text or "", tuple(own[row].items())) for row in rows}
    found = _linked(tools, loaded, names, asked)
    fresh = Known()
    for row in rows:
        event = loaded.events[row]
        if _means(event.text or "", own[row], fresh.said_at(event.at)):
            found[row] = tools.link([asked[row]], names.said_at(event.at, fresh))[0]
        out[row] = [(entity, own[row].get(entity)) for entity in found[row] if entity != loaded.actor]
        for entity, surface in out[row]:
            known = [one for one in (names.first(str(entity)), fresh.first(str(entity))) if one is not None]
            if surface is not None and all((event.at, surface) < one for one in known):
                fresh.put(str(entity), surface, event.at, FOREVER)
    return out


def _linked(tools: Tools, loaded: Loaded, names: Known, asked: Mapping[int, LinkRequest]) -> dict[int, list[Entity]]:
    """Links by the names that were known before, those that may mean all of them in one batch."""
    every = names.every()
    latest = [row for row in asked if names.said_at(loaded.events[row].at) is names.all]
    found = dict(zip(latest, tools.link([asked[row] for row in latest], every) if latest else [], strict=True))
    for row, request in asked.items():
        if row not in found:
            found[row] = tools.link([request], names.said_at(loaded.events[row].at))[0]
    return found


def _means(text: str, own: Mapping[Entity, str], names: Mapping[str, Entity]) -> bool:
    """Whether a text may mean any of the names."""
    return bool(names) and (any(fold(surface) in names for surface in own.values()) or bool(link.known(text, names)))


def _vectors(tools: Tools, loaded: Loaded) -> dict[int, Vectors]:
    """Vectors of events whose words have not changed since they were embedded."""
    c, fresh = cards.c, set(loaded.claim.interactions)
    versions = {event.id: event.version for event in loaded.events if event.id not in fresh and not event.pinned}
    found: dict[int, Vectors] = {}
    wanted = sorted(versions)
    with tools.store.database.read() as connection:
        for start in range(0, len(wanted), 400):
            query = select(c.interaction, c.version, c.vector).where(
                c.tenant == loaded.claim.tenant,
                c.interaction.in_(wanted[start : start + 400]),
                c.embedder == tools.embedder.id,
                c.vector.is_not(None),
            )
            for number, version, vector in connection.execute(query):
                if version == versions[number]:
                    found[number] = np.frombuffer(vector, np.float16).astype(np.float32)
    return found
