"""Cards: the layer's index of memories, and the words in them.

A card always holds reference, links, times and vector. It holds *text*, and rows in the
text index, only while somebody else may read it. The words are stored as hashes of their
stems, in an ordinary table: one code for both databases, and erasing a card leaves nothing
of it in the pages of a full-text index.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, insert, select, tuple_

from collab_layer.graph import considered
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import cards, graves, terms
from collab_layer.types.graph import Vectors
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

MAX_TERMS = 512
"""Distinct terms of one record in the text index; the rest is left out."""


@dataclass(frozen=True, slots=True)
class CardDraft:
    """A card about to be stored; `hashed` are the text's terms, repeats included."""

    owner: int
    interaction: int
    backend: str
    native_id: str
    version: str
    text: str | None
    hashed: Sequence[int]
    outcome: str | None
    links: tuple[int, ...]
    vector: Vectors | None
    embedder: str
    at: int
    thread: int
    quarantine: str | None = None
    valid_to: int = FOREVER


@dataclass(frozen=True, slots=True)
class CardText:
    """What a reader sees of a card."""

    id: int
    owner: int
    text: str | None
    outcome: str | None
    links: tuple[int, ...]
    at: int
    backend: str
    native_id: str
    version: str


def card_id(number: int) -> str:
    """The opaque id of a card."""
    return f"c{number:x}"


def put(connection: Connection, tenant: str, drafts: Sequence[CardDraft], shared: Level, rev: int, now: int) -> None:
    """Store cards; one with the same reference is replaced, under its old id if its version is the same."""
    if not drafts:
        return
    drafts = list({(draft.backend, draft.native_id): draft for draft in drafts}.values())
    before = existing(connection, tenant, [(draft.backend, draft.native_id) for draft in drafts])
    numbers = {key: old.id for key, old in before.items()}
    fresh = {draft.native_id for draft in drafts if _outdated(draft, before)}
    bury(connection, tenant, [old.id for (_, native), old in before.items() if native in fresh], rev)
    _clear(connection, tenant, [old.id for (_, native), old in before.items() if native not in fresh])
    readable = shared >= Level.RECORDS
    rows: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for draft in drafts:
        kept = None if draft.native_id in fresh else numbers.get((draft.backend, draft.native_id))
        number = next_id() if kept is None else kept
        counted = Counter(draft.hashed).most_common(MAX_TERMS) if readable and draft.quarantine is None else []
        rows.append(_row(tenant, number, draft, readable, sum(tf for _, tf in counted), rev, now))
        words += [{"tenant": tenant, "term": term, "card": number, "tf": min(tf, 30_000)} for term, tf in counted]
    connection.execute(insert(cards), rows)
    upsert(connection, terms, words)


@dataclass(frozen=True, slots=True)
class OldCard:
    """A card that a draft may replace."""

    id: int
    interaction: int
    version: str


def existing(connection: Connection, tenant: str, refs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], OldCard]:
    """The cards with these (backend, native id)."""
    found: dict[tuple[str, str], OldCard] = {}
    c = cards.c
    for start in range(0, len(refs), 200):
        rows = connection.execute(
            select(c.id, c.backend, c.native_id, c.interaction, c.version).where(
                c.tenant == tenant, tuple_(c.backend, c.native_id).in_(list(refs[start : start + 200]))
            )
        )
        found.update(((row.backend, row.native_id), OldCard(row.id, row.interaction, row.version)) for row in rows)
    return found


def outdated(drafts: Sequence[CardDraft], before: dict[tuple[str, str], OldCard]) -> list[OldCard]:
    """Cards whose memory has another version now: what rests on them does not hold any more."""
    return [before[(draft.backend, draft.native_id)] for draft in drafts if _outdated(draft, before)]


def _outdated(draft: CardDraft, before: dict[tuple[str, str], OldCard]) -> bool:
    old = before.get((draft.backend, draft.native_id))
    return old is not None and old.version != draft.version


def _clear(connection: Connection, tenant: str, ids: Sequence[int]) -> None:
    """Make room for the same cards, read again."""
    for start in range(0, len(ids), 400):
        part = list(ids[start : start + 400])
        connection.execute(delete(terms).where(terms.c.tenant == tenant, terms.c.card.in_(part)))
        connection.execute(delete(cards).where(cards.c.tenant == tenant, cards.c.id.in_(part)))


def bury(connection: Connection, tenant: str, ids: Sequence[int], rev: int) -> None:
    """Remove cards with their words; every process's index learns it by the graves."""
    for start in range(0, len(ids), 400):
        part = list(ids[start : start + 400])
        _clear(connection, tenant, part)
        considered.drop(connection, tenant, part)
        upsert(connection, graves, [{"tenant": tenant, "card": card, "rev": rev} for card in part])


def texts(connection: Connection, tenant: str, ids: Sequence[int]) -> dict[int, CardText]:
    """Cards by id, with the text they may hold."""
    c = cards.c
    found: dict[int, CardText] = {}
    for start in range(0, len(ids), 400):
        query = select(c.id, c.owner, c.text, c.outcome, c.links, c.at, c.backend, c.native_id, c.version).where(
            c.tenant == tenant, c.id.in_(list(ids[start : start + 400])), c.quarantine.is_(None)
        )
        for row in connection.execute(query):
            links = tuple(json.loads(row.links))
            found[row.id] = CardText(
                row.id, row.owner, row.text, row.outcome, links, row.at, row.backend, row.native_id, row.version
            )
    return found


def _row(tenant: str, number: int, draft: CardDraft, readable: bool, length: int, rev: int, now: int) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "id": number,
        "owner": draft.owner,
        "interaction": draft.interaction,
        "backend": draft.backend,
        "native_id": draft.native_id,
        "version": draft.version,
        "text": draft.text if readable else None,
        "outcome": draft.outcome,
        "links": json.dumps(list(draft.links)),
        "length": length,
        "vector": None if draft.vector is None else draft.vector.astype(np.float16).tobytes(),
        "embedder": draft.embedder,
        "at": draft.at,
        "valid_to": draft.valid_to,
        "recorded_at": now,
        "thread": draft.thread,
        "quarantine": draft.quarantine,
        "rev": rev,
    }
