"""One claim to its events, with their words, the entities named in them, and vectors.

load:   the claim's interactions, or all that its entity noted where its records are read again;
read:   the words they refer to, each store asked once;
stages: link, embed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, select

from collab_layer.errors import BackendError, StaleLeaseError
from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import read_by_others
from collab_layer.graph import policy
from collab_layer.graph.outbox import Claim
from collab_layer.graph.tables import entities, interactions
from collab_layer.graph.writer import interaction_id
from collab_layer.plugins.specs import LinkRequest
from collab_layer.stages import link
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.graph import Vectors
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER, micros


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

    @property
    def words(self) -> str:
        """All that is said about it."""
        return " ".join(part for part in (self.text, self.outcome) if part)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a claim is about.

    Attributes:
        claim: The lease.
        actor: Whose events.
        events: With the words that could be read.
        shared: The highest level at which anybody else may read the actor.
        policy: The version of the grants that this was read under.
    """

    claim: Claim
    actor: Entity
    events: list[Pending]
    shared: Level
    policy: int

    @property
    def news(self) -> list[Pending]:
        """Those that are told of for the first time."""
        fresh = set(self.claim.interactions)
        return [event for event in self.events if event.id in fresh]


@dataclass(frozen=True, slots=True)
class Worded:
    """Links and vectors found in the words."""

    topics: list[list[tuple[Entity, str]]]
    vectors: Vectors


def load(tools: Tools, claim: Claim) -> Loaded:
    """The events of a claim, with the words that we keep ourselves.

    Raises:
        StaleLeaseError: The entity was erased meanwhile.
    """
    tenant = claim.tenant
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)  # the names that are known are looked for in the words
        name = connection.execute(
            select(entities.c.name).where(entities.c.tenant == tenant, entities.c.id == claim.entity)
        ).scalar()
        if name is None:
            raise StaleLeaseError(f"entity {claim.entity}", "it was erased meanwhile")
        events = [_event(row) for row in _rows(connection, claim)]
        shared = read_by_others(policy.rows(connection, tenant, claim.entity), claim.entity, tools.now())
        return Loaded(claim, Entity.parse(name), events, shared, index.policy)


def _rows(connection: Connection, claim: Claim) -> list[Row[Any]]:
    i = interactions.c
    where = (i.tenant == claim.tenant) & (i.actor == claim.entity)
    if claim.refresh:
        worded = i.text.is_not(None) | i.backend.is_not(None) | i.id.in_(claim.interactions)
        return list(connection.execute(select(interactions).where(where, worded).order_by(i.id)))
    rows: list[Row[Any]] = []
    for start in range(0, len(claim.interactions), 400):
        part = i.id.in_(claim.interactions[start : start + 400])
        rows += connection.execute(select(interactions).where(where, part).order_by(i.id)).all()
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


async def read_words(tools: Tools, loaded: Loaded) -> None:
    """Ask each store once for the records that are referred to; what is gone stays without words.

    Raises:
        BackendError: A store did not answer, or is not attached.
    """
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


async def find(tools: Tools, loaded: Loaded) -> Worded:
    """The entities that the words name, and their vectors."""
    said = [event.text or "" for event in loaded.events]
    full = [event.words for event in loaded.events]
    known = tools.store.index(loaded.claim.tenant).known
    topics = await tools.in_thread(_topics, tools, loaded.actor, said, known)
    vectors = await tools.embedder.embed(full) if any(full) else np.zeros((len(full), tools.embedder.dim), np.float32)
    return Worded(topics, vectors)


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
