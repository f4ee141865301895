"""Cards: the layer's index of memories, and the words in them.

A card is one version of one memory, told by one interaction: it held from `at` to `valid_to`.
It always has reference, links, times and vector. It holds *text*, and rows in the
text index, only while somebody else may read it; so do versions that are over. The words are
stored as hashes of their stems, in an ordinary table: one code for both databases, and erasing
a card leaves nothing of it in the pages of a full-text index.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, delete, select, tuple_

from collab_layer.graph import considered
from collab_layer.graph.among import among, one_of, pages
from collab_layer.graph.engine import insert, upsert
from collab_layer.graph.ids import next_id
from collab_layer.graph.lean import Lean
from collab_layer.graph.tables import cards, graves, terms
from collab_layer.types.graph import Vectors
from collab_layer.types.time import FOREVER

MAX_TERMS = 512
"""Distinct terms of one record in the text index; the rest is left out."""

_C = cards.c
_OF_MEMORIES = (
    select(_C.backend, _C.native_id, _C.id, _C.owner, _C.interaction, _C.version, _C.at, _C.recorded_at, _C.superseded)
    .where(_C.tenant == bindparam("tenant"), tuple_(_C.backend, _C.native_id).in_(bindparam("refs", expanding=True)))
    .order_by(_C.at, _C.interaction)
)
_TEXTS = Lean(
    select(
        _C.id,
        _C.owner,
        _C.text,
        _C.outcome,
        _C.links,
        _C.at,
        _C.backend,
        _C.native_id,
        _C.version,
        _C.valid_to,
        _C.superseded,
    ).where(_C.tenant == bindparam("tenant"), one_of(_C.id, "ids"), _C.quarantine.is_(None))
)
Ref = tuple[str, str]
"""Backend and native id: a memory, whatever its versions."""


@dataclass(frozen=True, slots=True)
class CardDraft:
    """A card about to be stored.

    Attributes:
        hashed: The text's terms, repeats included.
        readable: Whether anybody else may read the words; else none are stored.
        ends: Its own end, as its store says; `FOREVER` if it says none.
        valid_to: Until when it holds: that, or when a later version or statement began.
        over: Whether that has come, or something took its place already.
        lost: Its store has another version by now, and its words were not kept; what is known of
            them from before stays.
    """

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
    readable: bool
    quarantine: str | None = None
    ends: int = FOREVER
    valid_to: int = FOREVER
    over: bool = False
    lost: bool = False


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
    valid_to: int = FOREVER
    over: bool = False

    def holds(self, now: int) -> bool:
        """Whether it is true in the present."""
        return self.valid_to > now and not self.over


def card_id(number: int) -> str:
    """The opaque id of a card."""
    return f"c{number:x}"


@dataclass(frozen=True, slots=True)
class OldCard:
    """A card that is there already; of memories moved to another owner too."""

    id: int
    owner: int
    interaction: int
    version: str
    at: int
    recorded_at: int
    superseded: int | None


@dataclass(frozen=True, slots=True)
class State:
    """What a card depends on; one that is read again in the same state need not be written."""

    version: str
    at: int
    links: tuple[int, ...]
    outcome: str | None
    ends: int
    valid_to: int
    over: bool
    has_text: bool
    embedder: str


def states(connection: Connection, tenant: str, numbers: Sequence[int]) -> dict[int, State]:
    """The cards of some interactions, by interaction."""
    c, found = cards.c, dict[int, State]()
    columns = (c.version, c.at, c.links, c.outcome, c.ends, c.valid_to, c.superseded, c.text.is_not(None), c.embedder)
    for start in range(0, len(numbers), 400):
        mine = (c.tenant == tenant) & c.interaction.in_(list(numbers[start : start + 400]))
        for number, version, at, links, outcome, ends, valid_to, noted, has_text, embedder in connection.execute(
            select(c.interaction, *columns).where(mine)
        ):
            over, linked = noted is not None, tuple(json.loads(links))
            found[number] = State(version, at, linked, outcome, ends, valid_to, over, bool(has_text), embedder)
    return found


def put(connection: Connection, tenant: str, drafts: Sequence[CardDraft], rev: int, now: int) -> None:
    """Store cards; the same version read again is replaced under its old id."""
    drafts = list({_key(draft): draft for draft in drafts}.values())
    held = [(ref, old) for ref, cards_ in of_memories(connection, tenant, _refs(drafts)).items() for old in cards_]
    before = {(*ref, old.version, old.at): old for ref, old in held}
    drafts = [draft for draft in drafts if not (draft.lost and _key(draft) in before)]
    same = {draft.interaction: _key(draft) for draft in drafts}
    other = [old.id for ref, old in held if same.get(old.interaction, key := (*ref, old.version, old.at)) != key]
    bury(connection, tenant, other, rev)
    _clear(connection, tenant, [before[key].id for draft in drafts if (key := _key(draft)) in before])
    rows: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for draft in drafts:
        old = before.get(_key(draft))
        number = next_id() if old is None or old.id in other else old.id
        counted = Counter(draft.hashed).most_common(MAX_TERMS) if draft.readable and draft.quarantine is None else []
        rows.append(_row(tenant, number, draft, old, sum(tf for _, tf in counted), rev, now))
        words += [{"tenant": tenant, "term": term, "card": number, "tf": min(tf, 30_000)} for term, tf in counted]
    insert(connection, cards, rows)
    upsert(connection, terms, words)


def moved(connection: Connection, tenant: str, drafts: Sequence[CardDraft]) -> list[OldCard]:
    """Cards of these memories that somebody else had: the store says that they are not that one's any more."""
    # What we keep ourselves goes by the id of one interaction, whose actor never changes.
    owners = {ref: draft.owner for draft, ref in zip(drafts, _refs(drafts), strict=True) if draft.backend}
    held = of_memories(connection, tenant, list(owners))
    return [old for ref, old_cards in held.items() for old in old_cards if old.owner != owners[ref]]


def of_memories(connection: Connection, tenant: str, refs: Sequence[Ref]) -> dict[Ref, list[OldCard]]:
    """Every version of the memories with these (backend, native id), oldest first."""
    found: dict[Ref, list[OldCard]] = {}
    for start in range(0, len(refs), 200):
        rows = connection.execute(_OF_MEMORIES, {"tenant": tenant, "refs": list(refs[start : start + 200])})
        for backend, native_id, *values in rows:
            found.setdefault((backend, native_id), []).append(OldCard(*values))
    return found


def existing(connection: Connection, tenant: str, refs: Sequence[Ref]) -> dict[Ref, OldCard]:
    """The newest version of each memory that there is a card of."""
    return {ref: found[-1] for ref, found in of_memories(connection, tenant, refs).items()}


def _key(draft: CardDraft) -> tuple[str, str, str, int]:
    return draft.backend, draft.native_id, draft.version, draft.at


def _refs(drafts: Sequence[CardDraft]) -> list[Ref]:
    return [(draft.backend, draft.native_id) for draft in drafts]


def _clear(connection: Connection, tenant: str, ids: Sequence[int]) -> None:
    """Make room for the same cards, read again."""
    for part in pages(ids):
        connection.execute(delete(terms).where(terms.c.tenant == tenant, among(connection, terms.c.card, part)))
        connection.execute(delete(cards).where(cards.c.tenant == tenant, among(connection, cards.c.id, part)))


def bury(connection: Connection, tenant: str, ids: Sequence[int], rev: int) -> None:
    """Remove cards with their words; every process's index learns it by the graves."""
    _clear(connection, tenant, ids)
    considered.drop(connection, tenant, ids)
    upsert(connection, graves, [{"tenant": tenant, "card": card, "rev": rev} for card in ids])


def texts(connection: Connection, tenant: str, ids: Sequence[int]) -> dict[int, CardText]:
    """Cards by id, with the text they may hold."""
    found: dict[int, CardText] = {}
    for part in pages(ids):
        rows = _TEXTS.tuples(connection, {"tenant": tenant, "ids": part})
        for id_, owner, text, outcome, links, at, backend, native_id, version, valid_to, superseded in rows:
            whole = (tuple(json.loads(links)), at, backend, native_id, version, valid_to, superseded is not None)
            found[id_] = CardText(id_, owner, text, outcome, *whole)
    return found


def _row(
    tenant: str,
    number: int,
    draft: CardDraft,
    old: OldCard | None,
    length: int,
    rev: int,
    now: int,
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "id": number,
        "owner": draft.owner,
        "interaction": draft.interaction,
        "backend": draft.backend,
        "native_id": draft.native_id,
        "version": draft.version,
        "text": draft.text if draft.readable else None,
        "outcome": draft.outcome,
        "links": json.dumps(list(draft.links)),
        "length": length,
        "vector": None if draft.vector is None else draft.vector.astype(np.float16).tobytes(),
        "embedder": draft.embedder,
        "at": draft.at,
        "ends": draft.ends,
        "valid_to": draft.valid_to,
        "recorded_at": now if old is None else old.recorded_at,
        "superseded": (now if old is None else old.superseded or now) if draft.over else None,
        "thread": draft.thread,
        "quarantine": draft.quarantine,
        "rev": rev,
    }
