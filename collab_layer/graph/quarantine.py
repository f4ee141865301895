"""Cards that are held back: listed, and let go for good.

In:   a tenant, a card, a connection.
Out:  what is held; after `release`, a card like any other, also when its owner's records are read
      again under the same version. Another version is judged anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, and_, select, update

from collab_layer.errors import UnknownIdError
from collab_layer.graph import cards as card_rows
from collab_layer.graph.cards import MAX_TERMS, CardDraft, card_id
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import number_of
from collab_layer.graph.names import bump
from collab_layer.graph.tables import cards, entities, interactions, released, terms

_CHUNK = 400


@dataclass(frozen=True, slots=True)
class Held:
    """A card in quarantine; `text` is None where only its store has the words."""

    number: int
    owner: str
    owner_id: int
    at: int
    reason: str
    text: str | None
    outcome: str | None
    backend: str
    native_id: str
    version: str

    @property
    def id(self) -> str:
        """The opaque id."""
        return card_id(self.number)


def listed(connection: Connection, tenant: str, number: int | None = None) -> list[Held]:
    """Every card that is held back, newest first; or the one with that number."""
    c, i, e = cards.c, interactions.c, entities.c
    said = and_(i.tenant == c.tenant, i.id == c.interaction)
    whose = and_(e.tenant == c.tenant, e.id == c.owner)
    columns = (c.id, c.owner, e.name, c.at, c.quarantine, c.text, i.text.label("said"), c.outcome, c.backend)
    joined = cards.join(entities, whose).outerjoin(interactions, said)
    query = select(*columns, c.native_id, c.version).select_from(joined)
    query = query.where(c.tenant == tenant, c.quarantine.is_not(None)).order_by(c.at.desc(), c.id)
    if number is not None:
        query = query.where(c.id == number)
    return [
        Held(
            row.id, row.name, row.owner, row.at, row.quarantine, row.said if row.text is None else row.text,
            row.outcome, row.backend, row.native_id, row.version,
        )
        for row in connection.execute(query)
    ]  # fmt: skip


def held(connection: Connection, tenant: str, id_: str) -> Held:
    """The card with that id.

    Raises:
        UnknownIdError: No such card is held back.
    """
    number = number_of(id_) if id_.startswith("c") else None
    found = [] if number is None else listed(connection, tenant, number)
    if not found:
        raise UnknownIdError(id_)
    return found[0]


def release(connection: Connection, tenant: str, one: Held, hashed: Sequence[int], now: int) -> None:
    """Let a card go: it is alive in every index from its next look on, and found by these terms."""
    counted = Counter(hashed).most_common(MAX_TERMS)
    rows: list[dict[str, Any]] = [
        {"tenant": tenant, "term": term, "card": one.number, "tf": min(tf, 30_000)} for term, tf in counted
    ]
    upsert(connection, terms, rows, update=("tf",))
    _, rev = bump(connection, tenant)
    values = {"quarantine": None, "length": sum(tf for _, tf in counted), "rev": rev}
    connection.execute(update(cards).where(cards.c.tenant == tenant, cards.c.id == one.number).values(**values))
    upsert(connection, released, [{"tenant": tenant, "card": one.number, "at": now}])


def spared(connection: Connection, tenant: str, drafts: Sequence[CardDraft]) -> list[CardDraft]:
    """Drafts as they are to be stored: what was released stays released while its version is the same."""
    bad = [draft for draft in drafts if draft.quarantine is not None]
    if not bad:
        return list(drafts)
    before = card_rows.of_memories(connection, tenant, [(draft.backend, draft.native_id) for draft in bad])
    numbers = [old.id for versions in before.values() for old in versions]
    free: set[int] = set()
    for start in range(0, len(numbers), _CHUNK):
        part = released.c.card.in_(numbers[start : start + _CHUNK])
        free.update(connection.execute(select(released.c.card).where(released.c.tenant == tenant, part)).scalars())
    return [replace(draft, quarantine=None) if _is_free(draft, before, free) else draft for draft in drafts]


def _is_free(draft: CardDraft, before: dict[card_rows.Ref, list[card_rows.OldCard]], free: set[int]) -> bool:
    versions = before.get((draft.backend, draft.native_id), ())
    return draft.quarantine is not None and any(old.version == draft.version and old.id in free for old in versions)
