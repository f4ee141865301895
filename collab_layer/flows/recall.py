"""What a memory model is shown around some events: the events, the receivers, their old memory.

In:   a `Scene`: one snapshot around the actor.
Out:  events with their words, receivers with what they know already; nothing that the actor may
      not read at `records` level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from collab_layer.flows.pending import Pending
from collab_layer.flows.plan import Scene, source_of
from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import Audience, GrantRow, audience
from collab_layer.graph import cards, considered, derived, policy
from collab_layer.graph.cards import CardText, card_id
from collab_layer.graph.derived import Item
from collab_layer.stages import propagate, recurrence
from collab_layer.stages.asked import updates
from collab_layer.stages.asked.telling import Memory, Noted, Part, Receiver
from collab_layer.stages.lessons import lesson
from collab_layer.stages.tokens import terms
from collab_layer.types.facet import FacetKind
from collab_layer.types.graph import Ids, Rows, Vectors
from collab_layer.types.scope import Level

NEW = 64
"""Newest records of a claim that are looked at for what recurs."""
THINGS = 3
"""Things that one question keeps the memory of."""
OLD = 2
"""Older memories of one receiver that a model is shown."""
OLD_SOURCES = 24
"""Sources from which on an update is not rested on again, so that no lineage grows for ever."""
OLD_TERMS, OLD_LIKENESS = 2, 0.2
"""What an older update, and a record, must have in common with the events to be shown."""


@dataclass(frozen=True, slots=True)
class Events:
    """What a question is about.

    Attributes:
        noted: Most important first.
        rows: Of their cards in the index.
        cards: All records of one matter, where that is what they are.
        terms: Stems of the words of each.
    """

    noted: list[Noted]
    rows: Rows
    cards: tuple[int, ...] = ()
    terms: list[frozenset[str]] = field(default_factory=list[frozenset[str]])

    def say(self, text: str) -> bool:
        """Whether one of them has every word of a text, so that it would say nothing more."""
        mine = frozenset(terms(text))
        return any(mine <= of for of in self.terms)


def newest(around: Scene) -> Events:
    """The newest events of the claim, those without words too."""
    loaded = around.loaded
    telling = [event for event in loaded.news if event.quarantine is None]
    latest = sorted(telling, key=lambda event: (-event.at, -event.id))[: updates.EVENTS]
    noted = [one for event in latest if (one := _noted(around, event)) is not None]
    return _events(noted, _rows_of(around, [event for event in latest if event.words]))


def recurring(tools: Tools, around: Scene) -> Events | None:
    """The records of one matter that came up often enough; None if nothing did."""
    loaded, index = around.loaded, around.index
    fresh = sorted((event for event in loaded.news if event.words), key=lambda event: (-event.at, -event.id))[:NEW]
    readable = _readable(around, _seen(tools, around, _grants(around)))
    new = np.intersect1d(_rows_of(around, fresh), readable).astype(np.int32)
    if not len(new):
        return None
    columns = index.cards
    least = recurrence.likeness(index.vectors, readable)
    near = recurrence.candidates(index.vectors, readable, new, least=least)
    read = considered.of(around.connection, loaded.claim.tenant, columns.id[near].tolist())
    mask = np.isin(columns.id[near], np.array(sorted(read), np.int64))
    rows = recurrence.ripe(index.vectors, near, new, mask, least=least, count=tools.recurrence_count)
    if rows is None:
        return None
    numbers: list[int] = columns.id[rows].tolist()
    found = cards.texts(around.connection, loaded.claim.tenant, numbers)
    mine = {(event.backend, event.native_id): event for event in loaded.news}
    noted = [_recorded(around, found[number], row, mine) for number, row in zip(numbers, rows.tolist(), strict=True)
             if number in found]  # fmt: skip
    return _events([one for one in noted if one is not None], rows, tuple(numbers))


def receivers(tools: Tools, around: Scene, events: Events) -> list[Receiver]:
    """The actor, the things that the events are about, and the neighbours that may be told."""
    actor, grants = around.loaded.claim.entity, _grants(around)
    mine = _seen(tools, around, grants)
    people = frozenset(one.principal for one in events.noted)
    wanted: list[_Wanted] = [_Wanted(actor, "actor", 1.0, mine)]
    things = dict.fromkeys(one.about for one in events.noted if one.about is not None)
    wanted += [_Wanted(thing, "thing", 1.0, None) for thing in list(things)[:THINGS]]
    near = [(told, who) for told, who in zip(around.told, around.readers, strict=True) if told.level >= Level.RECORDS]
    near.sort(key=lambda pair: (-pair[0].nearness, pair[0].reader))
    for told, who in near[: propagate.FANOUT]:
        wanted.append(_Wanted(told.reader, "neighbour", told.nearness, audience(grants, who, around.now)))
    ids = [one.id for one in wanted]
    before = derived.current_of(around.connection, around.loaded.claim.tenant, ids, FacetKind.UPDATE, around.now)
    return [_receiver(around, one, before[one.id], mine, people, events) for one in wanted]


def _grants(around: Scene) -> list[GrantRow]:
    """Every grant of the tenant, read once for all who are asked about."""
    known = None if around.index.state.limited else ()
    return policy.rows(around.connection, around.loaded.claim.tenant, around.now, known=known)


def _seen(tools: Tools, around: Scene, grants: Sequence[GrantRow]) -> Audience:
    """What the actor may read."""
    loaded = around.loaded
    who = tools.store.who(around.connection, loaded.claim.tenant, loaded.actor, loaded.claim.entity, None)
    return audience(grants, who, around.now)


# -- events ----------------------------------------------------------------------------


def _events(noted: list[Noted], rows: Rows, numbers: tuple[int, ...] = ()) -> Events:
    return Events(noted, rows, numbers, [frozenset(terms(f"{one.text} {one.ended or ''}")) for one in noted])


def _noted(around: Scene, event: Pending) -> Noted | None:
    """An event in its own words; one without words says what was done to which thing."""
    thing = _thing(around, event.target)
    text, ended = (event.text, event.outcome) if event.text else (event.outcome, None)
    if text is None:
        if thing is None:
            return None
        text = f"{event.verb} {around.index.displays[thing]}"
    links = event.links if event.target is None else tuple(dict.fromkeys((event.target, *event.links)))
    source = source_of(around.loaded, event)
    return Noted(source, around.loaded.claim.entity, text, ended, thing, _labels(around, links), links)


def _recorded(around: Scene, card: CardText, row: int, mine: dict[tuple[str, str], Pending]) -> Noted | None:
    event = mine.get((card.backend, card.native_id))
    if event is not None:
        return _noted(around, event)
    text, ended = (card.text, card.outcome) if card.text else (card.outcome, None)
    if text is None:
        return None
    thing = _thing(around, int(around.index.cards.thread[row]))
    return Noted(card_id(card.id), card.owner, text, ended, thing, _labels(around, card.links), card.links)


def _thing(around: Scene, id_: int | None) -> int | None:
    """The thing under an id; None for an owner, since it is told as a neighbour or not at all."""
    index = around.index
    return id_ if id_ and index.named(id_) and not bool(index.is_owner(np.array([id_]))[0]) else None


def _labels(around: Scene, links: Sequence[int]) -> tuple[str, ...]:
    return tuple(around.index.displays[link] for link in links if _thing(around, link) is not None)


def _rows_of(around: Scene, events: Sequence[Pending]) -> Rows:
    """Where the cards of some events are in the index."""
    refs = [(event.backend, event.native_id) for event in events]
    found = cards.existing(around.connection, around.loaded.claim.tenant, refs)
    rows = around.index.rows_of_cards(np.array([card.id for card in found.values()], np.int64))
    return np.sort(rows[rows >= 0])


def _readable(around: Scene, mine: Audience) -> Rows:
    """Live records with words and a vector that the actor may read, ascending."""
    columns = around.index.cards
    live = columns.alive & columns.has_vector & (columns.length > 0) & (columns.valid_to > around.now)
    live &= mine.levels(columns.owner, around.index.is_owner(columns.owner)) >= Level.RECORDS
    return np.flatnonzero(live).astype(np.int32)


# -- what a receiver knows already -----------------------------------------------------


class _Wanted(NamedTuple):
    """A receiver, and what it may read; None of a thing, which reads nothing."""

    id: int
    part: Part
    nearness: float
    theirs: Audience | None


def _receiver(
    around: Scene, one: _Wanted, told: Sequence[Item], mine: Audience, people: frozenset[int], events: Events
) -> Receiver:
    theirs = one.theirs
    may = people if theirs is None else frozenset(who for who in people if theirs.level(who) >= Level.RECORDS)
    old = _told(told, mine, theirs, events)
    if one.part != "thing" and mine.level(one.id) >= Level.RECORDS and len(old) < OLD:
        old += _own(around, one.id, events)[: OLD - len(old)]
    return Receiver(one.id, one.part, one.nearness, may, tuple(old))


def _told(items: Sequence[Item], mine: Audience, theirs: Audience | None, events: Events) -> list[Memory]:
    """What it was told before about the same, as far as the actor and itself may read everybody behind it."""
    about = frozenset[str]().union(*events.terms)
    same = {one.source for one in events.noted}
    shared = {item.id: len(about & set(terms(item.text))) for item in items}
    good = [
        item
        for item in items
        if shared[item.id] >= OLD_TERMS
        and 0 < len(item.sources) <= OLD_SOURCES
        and not same & {source for source, _, _ in item.sources}
        and all(who.level(one) >= Level.RECORDS for one in item.principals for who in (mine, theirs) if who)
        and not events.say(item.text)
    ]
    good.sort(key=lambda item: (-shared[item.id], -item.at, item.id))
    return [_memory(item) for item in good[:OLD]]


def _memory(item: Item) -> Memory:
    """An older update; what rests on it rests on all its sources, and goes when it goes itself."""
    total = sum(weight for _, _, weight in item.sources) or 1.0
    sources = [(source, whose, weight / total) for source, whose, weight in item.sources]
    sources.append((item.id, item.sources[0][1], 0.0))
    return Memory(item.id, item.text, tuple(sources), item.key, item.hop, item.trust, item.links)


def _own(around: Scene, id_: int, events: Events) -> list[Memory]:
    """Records of its own that lie near the events, each as a lesson."""
    index = around.index
    columns = index.cards
    centre = _centre(index.vectors(events.rows))
    rows = _own_rows(around, id_)
    rows = rows[~np.isin(rows, events.rows)]
    if centre is None or not len(rows):
        return []
    cosine = index.vectors(rows) @ centre
    best = rows[np.lexsort((rows, -cosine))][: 2 * OLD]
    best = best[index.vectors(best) @ centre >= OLD_LIKENESS]
    found = cards.texts(around.connection, around.loaded.claim.tenant, columns.id[best].tolist())
    out: list[Memory] = []
    for number in columns.id[best].tolist():
        card = found.get(number)
        if card is not None and card.text and not events.say(card.text):
            text = lesson(card.text, outcome=card.outcome)
            out.append(Memory(card_id(number), text, ((card_id(number), id_, 1.0),), links=card.links))
    return out


def _own_rows(around: Scene, id_: int) -> Ids:
    columns = around.index.cards
    live = columns.alive & columns.has_vector & (columns.length > 0) & (columns.valid_to > around.now)
    return np.flatnonzero(live & (columns.owner == id_))


def _centre(vectors: Vectors) -> Vectors | None:
    mean = vectors.mean(axis=0) if len(vectors) else np.zeros(0, np.float32)
    norm = float(np.linalg.norm(mean))
    return mean / norm if norm > 1e-9 else None
