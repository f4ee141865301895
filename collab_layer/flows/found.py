"""A query to the records that answer it: ranked, so that no single principal decides what is read.

In:   an opened snapshot, the words, vector and links of a query.
Out:  snippets, best first, each weighing its score.
Records compete and owners have no weight, but nobody's copies crowd the others out, and what several
principals tell stands before what one tells better (`stages.fair`, `stages.witnesses`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import inf, nextafter

import numpy as np

from collab_layer.flows.tools import Tools
from collab_layer.graph.cards import CardText, card_id
from collab_layer.graph.linked import links_of
from collab_layer.graph.reader import corpus
from collab_layer.graph.store import Opened
from collab_layer.stages.fair import PART, turns
from collab_layer.stages.search import rank_records, shares
from collab_layer.stages.tokens import hashed, terms
from collab_layer.stages.witnesses import Telling, first_to_read
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Corpus, Floats, Snippet, Vectors
from collab_layer.types.scope import Level


def found(
    tools: Tools, opened: Opened, query: str, asked: Vectors | None, links: Sequence[Entity], most: int
) -> list[Snippet]:
    """Up to `most` records, best first; of one foreign principal no more than its part while others have some.

    `asked` is the query as it was embedded.
    """
    reading = opened.reading
    known = list(reading.index.find(reading.connection, [str(one) for one in links]).values())
    laid = corpus(reading, opened.focus, [hashed(term) for term in terms(query)], asked, known)
    if laid is None:
        return []
    if tools.replays.pay(reading, opened.focus):
        laid = replace(laid, held=links_of(reading, laid.cards))
    scores = rank_records(laid)
    order = laid.best_first(scores)
    rows = _within(opened, laid, order[np.isfinite(scores[order])].tolist(), most)
    cards = reading.texts(laid.cards[rows].tolist())
    party = reading.index.aliases
    told = [
        (row, _snippet(card, float(scores[row]), party.get(card.owner, 0)))
        for row in rows
        if (card := cards.get(int(laid.cards[row]))) is not None and card.text
    ]
    snippets = [one for _, one in told]
    return _corroborated_first(snippets, shares(laid, [row for row, _ in told], [one.voice for one in snippets]))


def foreign(opened: Opened, owners: Iterable[int]) -> Iterator[int | None]:
    """The principal behind each owner; None for the reader's own."""
    of = opened.reading.index.aliases
    own = opened.reading.parties((opened.focus, opened.reader))
    return (None if (voice := of.get(owner, owner)) in own else voice for owner in owners)


def _within(opened: Opened, laid: Corpus, order: Sequence[int], most: int) -> list[int]:
    """The rows that are read, best first."""
    lines = ((1, voice) for voice in foreign(opened, laid.owners[order].tolist()))
    return [order[place] for place in sorted(islice(turns(lines, PART * most), most))]


def _corroborated_first(found: list[Snippet], shared: Floats) -> list[Snippet]:
    """What several tell stands before what somebody alone tells better, and is worth as much."""
    told = [Telling(one.voice, one.outcome, share) for one, share in zip(found, shared.tolist(), strict=True)]
    place = first_to_read(told)
    if not place:
        return found
    first = replace(found[place], weight=nextafter(found[0].weight, inf))
    return [first, *found[:place], *found[place + 1 :]]


def _snippet(card: CardText, score: float, party: int) -> Snippet:
    said = (card.at, card.text, card.links, card.outcome)
    return Snippet(card_id(card.id), card.owner, Level.RECORDS, score, *said, party=party)


__all__ = ["foreign", "found"]
