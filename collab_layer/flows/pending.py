"""Claims to their events, with their words, the entities named in them, and vectors.

load:   each claim's interactions, or all that its entity noted where its records are read again;
read:   the words they refer to, each store asked once, see `flows.words`;
stages: link, embed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, bindparam, select

from collab_layer.flows.tools import Tools
from collab_layer.graph import policy, spans
from collab_layer.graph.among import one_of
from collab_layer.graph.ids import interaction_id
from collab_layer.graph.known import Known
from collab_layer.graph.lean import Lean
from collab_layer.graph.outbox import Claim
from collab_layer.graph.tables import cards, interactions
from collab_layer.plugins.specs import LinkRequest
from collab_layer.stages import link, tokens
from collab_layer.stages.quarantine import quarantined
from collab_layer.stages.tokens import fold
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Vectors
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

_CHUNK = 400
_I = interactions.c
_TOLD = Lean(select(interactions).where(_I.tenant == bindparam("tenant"), one_of(_I.id, "numbers")).order_by(_I.id))


@dataclass(slots=True)
class Pending:
    """One pending interaction with its words; `text` None where the store has it no more.

    Attributes:
        ends: Its own end, as its store says.
        followed: When something took its place, by all that is told by now.
        over: Whether it holds no more: nobody is told of it.
        lost: The store has another version, and the words of this one were not kept.
        pinned: The version was not said, and is the one that was found.
        quarantine: Why its words are held back, see `find`; None if they are not.
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
    quarantine: str | None = None

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
    def wordless(self) -> bool:
        """Whether words of some event are still to be read from its store."""
        return any(event.backend and event.text is None for event in self.events)

    @property
    def refs(self) -> set[tuple[str, str]]:
        """The stored memories that the events tell of."""
        return {(event.backend, event.native_id) for event in self.events if event.backend}


@dataclass(frozen=True, slots=True)
class Worded:
    """What was found in the words of one claim.

    Attributes:
        loaded: The claim.
        topics: Per event the entities that its text names, with the words it used; without words
            where it means something that was known under that name.
        vectors: Per event.
        hashed: Per event its terms, hashed, repeats included.
    """

    loaded: Loaded
    topics: list[list[tuple[Entity, str | None]]]
    vectors: Vectors
    hashed: list[list[int]]

    @property
    def told(self) -> Iterator[tuple[Pending, list[tuple[Entity, str | None]]]]:
        """Each event with its topics."""
        return zip(self.loaded.events, self.topics, strict=True)


def load(tools: Tools, claims: Sequence[Claim]) -> list[Loaded]:
    """The events of some claims of one tenant, with the words that we keep ourselves; without claims of the erased."""
    tenant, now = claims[0].tenant, tools.now()
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection:
        with index.lock:
            index.refresh(connection, now)  # the names that are known are looked for in the words
            actors = {one.entity: Entity.parse(index.names[one.entity]) for one in claims if index.named(one.entity)}
            at = index.policy, index.rev
        claims = [claim for claim in claims if claim.entity in actors]
        shared = policy.shared_by(connection, tenant, list(actors), now)
        rows = _rows(connection, tenant, claims)
        out: list[Loaded] = []
        for claim in claims:
            events = [_event(row) for row in rows.get(claim.entity, ())]
            out.append(Loaded(claim, actors[claim.entity], events, shared[claim.entity], *at))
        set_ends(connection, [one for one in out if not one.wordless], now)
        return out


def set_ends(connection: Connection, loaded: Sequence[Loaded], now: int) -> None:
    """Note until when each event holds, by all that is told by now."""
    found = ends(connection, loaded)
    for one in loaded:
        for event in one.events:
            event.followed = found[event.id]
            event.over = event.followed < FOREVER or event.ends <= now


def ends(connection: Connection, loaded: Sequence[Loaded]) -> dict[int, int]:
    """When each event was over, by all that is told by now."""
    if not loaded:
        return {}
    numbers = [event.id for one in loaded for event in one.events]
    refs = {ref for one in loaded for ref in one.refs}
    return spans.ends(connection, loaded[0].claim.tenant, numbers, refs)


def _rows(connection: Connection, tenant: str, claims: Sequence[Claim]) -> dict[int, list[Row[Any]]]:
    """Interactions by actor, each actor's oldest first."""
    found: dict[int, list[Row[Any]]] = {}
    numbers: list[int] = []
    for claim in claims:
        if claim.refresh:
            found[claim.entity] = _all_rows(connection, claim)
        else:
            numbers += claim.interactions
    for start in range(0, len(numbers), _CHUNK):
        for row in _TOLD.rows(connection, {"tenant": tenant, "numbers": sorted(numbers)[start : start + _CHUNK]}):
            found.setdefault(row.actor, []).append(row)
    return found


def _all_rows(connection: Connection, claim: Claim) -> list[Row[Any]]:
    i = interactions.c
    where = (i.tenant == claim.tenant) & (i.actor == claim.entity)
    stored = i.backend.in_(claim.only) if claim.only else i.text.is_not(None) | i.backend.is_not(None)
    worded = stored | i.id.in_(claim.interactions)
    return list(connection.execute(select(interactions).where(where, worded).order_by(i.id)))


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


async def find(tools: Tools, loaded: Sequence[Loaded]) -> list[Worded]:
    """The entities that the words name, and their vectors; what was embedded before is not again."""
    names = tools.store.index(loaded[0].claim.tenant).known_names
    worded = await tools.in_thread(_worded, tools, loaded, names)
    places = [(one, row) for one in worded for row, event in enumerate(one.loaded.events) if event.words]
    todo = [(one, row) for one, row in places if not np.any(one.vectors[row])]
    if todo:
        found = await tools.embedder.embed([one.loaded.events[row].words for one, row in todo])
        for (one, row), vector in zip(todo, found, strict=True):
            one.vectors[row] = vector
    return worded


def _worded(tools: Tools, loaded: Sequence[Loaded], names: Known) -> list[Worded]:
    topics = _topics(tools, loaded, names)
    out: list[Worded] = []
    for one in loaded:
        for event in one.events:
            event.quarantine = quarantined(event.words)
        kept = _vectors(tools, one) if one.claim.refresh else {}
        vectors = np.zeros((len(one.events), tools.embedder.dim), np.float32)
        for row, event in enumerate(one.events):
            if event.id in kept:
                vectors[row] = kept[event.id]
        hashed = [[tokens.hashed(term) for term in tokens.terms(event.words)] for event in one.events]
        out.append(Worded(one, [topics[event.id] for event in one.events], vectors, hashed))
    return out


def _topics(tools: Tools, loaded: Sequence[Loaded], names: Known) -> dict[int, list[tuple[Entity, str | None]]]:
    """Each text is read with the names that were known when it was said, those that others here brought included."""
    out: dict[int, list[tuple[Entity, str | None]]] = {event.id: [] for one in loaded for event in one.events}
    said = {event.id: (event, one.actor) for one in loaded for event in one.events if event.text}
    ordered = sorted(said, key=lambda number: (said[number][0].at, number))
    own = {number: dict(link.topics(said[number][0].text or "")) for number in ordered}
    asked = {
        number: LinkRequest(said[number][1], said[number][0].text or "", tuple(own[number].items()))
        for number in ordered
    }
    times = {number: said[number][0].at for number in ordered}
    found = _linked(tools, names, asked, times)
    fresh = Known()
    for number in ordered:
        event, actor = said[number]
        if _means(event.text or "", own[number], fresh.said_at(event.at)):
            found[number] = tools.link([asked[number]], names.said_at(event.at, fresh))[0]
        out[number] = [(entity, own[number].get(entity)) for entity in found[number] if entity != actor]
        for entity, surface in out[number]:
            known = [one for one in (names.first(str(entity)), fresh.first(str(entity))) if one is not None]
            if surface is not None and all((event.at, surface) < one for one in known):
                fresh.put(str(entity), surface, event.at, FOREVER)
    return out


def _linked(
    tools: Tools, names: Known, asked: Mapping[int, LinkRequest], times: Mapping[int, int]
) -> dict[int, list[Entity]]:
    """Links by the names that were known before, those that may mean all of them in one batch."""
    every = names.every()
    latest = [number for number in asked if names.said_at(times[number]) is names.all]
    found = dict(zip(latest, tools.link([asked[one] for one in latest], every) if latest else [], strict=True))
    for number, request in asked.items():
        if number not in found:
            found[number] = tools.link([request], names.said_at(times[number]))[0]
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
        for start in range(0, len(wanted), _CHUNK):
            query = select(c.interaction, c.version, c.vector).where(
                c.tenant == loaded.claim.tenant,
                c.interaction.in_(wanted[start : start + _CHUNK]),
                c.embedder == tools.embedder.id,
                c.vector.is_not(None),
            )
            for number, version, vector in connection.execute(query):
                if version == versions[number]:
                    found[number] = np.frombuffer(vector, np.float16).astype(np.float32)
    return found
