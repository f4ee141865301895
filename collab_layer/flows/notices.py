"""Notices as their reader sees them: looked up, ranked and screened at every read.

In:   an opened snapshot, who reads, perhaps a query.
Out:  facets of the kind `notice`; their owners are named, their sources stay closed.
A few at most, and few of one owner, so that nobody fills others' contexts by publishing much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from collab_layer.flows import view
from collab_layer.flows.tools import Tools
from collab_layer.governance.limits import allows
from collab_layer.graph import derived, limits, notices
from collab_layer.graph.derived import Item
from collab_layer.graph.notices import NoticeRow
from collab_layer.graph.reader import Reading
from collab_layer.graph.store import Opened
from collab_layer.plugins.specs import Leaving
from collab_layer.stages.quarantine import quarantined
from collab_layer.stages.search import rank_records
from collab_layer.stages.tokens import terms
from collab_layer.types.entity import Entity
from collab_layer.types.facet import Evidence, Facet, FacetKind
from collab_layer.types.graph import Corpus, Floats, Vectors
from collab_layer.types.prompt import line
from collab_layer.types.time import FOREVER, moment
from collab_layer.types.tokens import estimate_tokens

SHOWN, OF_ONE_OWNER = 4, 2
SHARE = 0.25
"""Part of the budget that notices may take; the first that fits into the whole is always said."""
FEW = 50
"""Of fewer notices the rareness of a word is counted as if there were so many: two texts tell nothing of it."""


def found(opened: Opened, embedder: str) -> list[NoticeRow]:
    """Every notice that the reader may use at the moment read, newest first."""
    reading = opened.reading
    if not reading.index.state.noticed:
        return []
    told_by = FOREVER if reading.as_of is None else reading.as_of
    rows = notices.readable(
        reading.connection, reading.tenant, opened.who, opened.now, told_by=told_by, embedder=embedder
    )
    limited = rows and reading.index.state.limited
    most = limits.of(reading.connection, reading.tenant, opened.now) if limited else []
    purpose = opened.who.purpose
    return [
        row
        for row in rows
        if row.owner != opened.focus
        and reading.index.named(row.owner)
        and allows(most, row.owner, row.audience, purpose, row.at, opened.now)
    ]


def said(
    tools: Tools,
    opened: Opened,
    reader: Entity,
    rows: Sequence[NoticeRow],
    query: str | None,
    vector: Vectors | None,
    budget_tokens: int,
) -> list[Facet]:
    """Those worth saying, best first: by the query, else the newest."""
    ordered = rows if query is None else _ranked(opened.reading, rows, query, vector)
    out: list[Facet] = []
    spent, of = 0, Counter[int]()
    items = derived.get(opened.reading.connection, opened.reading.tenant, [row.id for row in ordered[: 4 * SHOWN]])
    for row in _leaving(tools, opened.reading, reader, ordered[: 4 * SHOWN]):
        made = facet(opened.reading, items[row.id])
        cost = estimate_tokens(line(made)) + 1
        if len(out) == SHOWN or of[row.owner] == OF_ONE_OWNER or (out and spent + cost > SHARE * budget_tokens):
            continue
        out.append(made)
        spent += cost
        of[row.owner] += 1
    return out


def facet(reading: Reading, item: Item) -> Facet:
    """A notice as its reader sees it: its owner stands for it by name; sources only where a grant opens them."""
    own = Evidence(source=item.id, owner=view.entity_of(reading, item.owner), at=moment(item.at), weight=1.0)
    behind = view.evidence(reading, item.sources, {}, {})
    return Facet(
        id=item.id,
        kind=FacetKind.NOTICE,
        text=item.text,
        confidence=item.confidence,
        contributors=1,
        evidence=(own, *behind),
        made_by=item.made_by,
    )


def _leaving(tools: Tools, reading: Reading, reader: Entity, rows: Sequence[NoticeRow]) -> Iterable[NoticeRow]:
    """Those that every share filter lets go word for word, and that today's rules of quarantine pass."""
    asked = [Leaving(view.entity_of(reading, row.owner), reader, row.text) for row in rows]
    for row, text in zip(rows, tools.leaving(asked), strict=True):
        if text == row.text and quarantined(row.text) is None:
            yield row


def _ranked(reading: Reading, rows: Sequence[NoticeRow], query: str, vector: Vectors | None) -> list[NoticeRow]:
    corpus = _corpus(reading, rows, list(dict.fromkeys(terms(query))), vector)
    scores = rank_records(corpus)
    return [rows[at] for at in corpus.best_first(scores).tolist() if np.isfinite(scores[at])]


def _corpus(reading: Reading, rows: Sequence[NoticeRow], wanted: Sequence[str], vector: Vectors | None) -> Corpus:
    counted = [Counter(terms(row.text)) for row in rows]
    tf = np.array([[words[term] for term in wanted] for words in counted], np.float64).reshape(len(rows), len(wanted))
    length = np.array([max(1, words.total()) for words in counted], np.float64)
    own = np.arange(len(rows), dtype=np.int64)
    return Corpus(
        cards=own,
        owners=np.array([row.owner for row in rows], np.int64),
        tf=tf,
        length=length,
        df=(tf > 0).sum(axis=0).astype(np.float64),
        total=max(FEW, len(rows)),
        mean_length=float(length.mean()) if len(rows) else 1.0,
        similarity=_likeness(reading, rows, vector),
        link_cosine=np.zeros(len(rows)),
        thread=-own - 1,
        at=np.array([row.at for row in rows], np.int64),
    )


def _likeness(reading: Reading, rows: Sequence[NoticeRow], vector: Vectors | None) -> Floats:
    out = np.zeros(len(rows))
    have = {at: row.vector for at, row in enumerate(rows) if row.vector is not None}
    if have and vector is not None:
        out[list(have)] = reading.index.centred(np.stack(list(have.values()))) @ vector
    return out


__all__ = ["facet", "found", "said"]
