"""Columns the graph hands to the pure stages: numpy arrays, never rows.

Entities are dense integers per tenant here; strings appear only at the edge.
Times are microseconds since 1970. Everything in these values was already cut to
what the reader may see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collab_layer.types.scope import Level

Ids = NDArray[np.int64]
Rows = NDArray[np.int32]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Bools = NDArray[np.bool_]
Levels = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Edges:
    """Distinct neighbours of one node, newest first.

    Attributes:
        ids: The other ends, shape (n,).
        weight: Sum of the interactions' weights, >= 0.
        count: Interactions, >= 1.
        last: Time of the newest, microseconds.
    """

    ids: Ids
    weight: Floats
    count: Counts
    last: Counts

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def empty(cls) -> Edges:
        """No edges."""
        zero = np.zeros(0, np.int64)
        return cls(zero, np.zeros(0), zero, zero)

    def take(self, rows: NDArray[np.integer[Any]] | Bools | slice) -> Edges:
        """The rows given, in that order."""
        return Edges(self.ids[rows], self.weight[rows], self.count[rows], self.last[rows])


@dataclass(frozen=True, slots=True)
class VectorView:
    """Vectors by row, and which row each of some entities has.

    Attributes:
        matrix: Shape (r, d), float32, unit length, mean-centred by the store.
        row: Shape (n,), the row of each entity, -1 where it has none.
    """

    matrix: Vectors
    row: Rows

    def dot(self, vector: Vectors | None, rows: NDArray[np.integer[Any]] | slice = slice(None)) -> Floats:
        """Cosine of `vector` with the entities in `rows`; 0 where one has no vector."""
        picked = self.row[rows]
        out = np.zeros(len(picked))
        if vector is not None and len(self.matrix):
            have = picked >= 0
            # Not `@`: BLAS rounds a row differently depending on which rows stand beside it.
            out[have] = np.einsum("ij,j->i", self.matrix[picked[have]], vector)
        return out

    def take(self, rows: NDArray[np.integer[Any]] | Bools) -> VectorView:
        """The entities given, in that order."""
        return VectorView(self.matrix, self.row[rows])


@dataclass(frozen=True, slots=True)
class LaterView:
    """The same, looked up when it is asked for: most candidates are given up before.

    Attributes:
        ids: The entities, shape (n,).
        look_up: The vectors of some of them.
    """

    ids: Ids
    look_up: Callable[[Ids], VectorView]

    def dot(self, vector: Vectors | None, rows: NDArray[np.integer[Any]] | slice = slice(None)) -> Floats:
        """Cosine of `vector` with the entities in `rows`; 0 where one has no vector."""
        ids = self.ids[rows]
        return np.zeros(len(ids)) if vector is None else self.look_up(ids).dot(vector)

    def take(self, rows: NDArray[np.integer[Any]] | Bools) -> LaterView:
        """The entities given, in that order."""
        return LaterView(self.ids[rows], self.look_up)


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """Everything one entity's curation looks at, capped and already permitted.

    m own targets, n candidates, p pairs "candidate holds own target".

    Attributes:
        focus: The entity.
        now: The moment of reading (or `as_of`).
        own: Its newest targets and topics, shape (m,).
        own_topic: True where the target is a topic (came from text), shape (m,).
        own_idf: log(1 + N / n_i) over visible holders, shape (m,), >= 0.
        own_degree: All its distinct targets, also those over the cap.
        ids: Candidates: permitted owners and own targets, shape (n,), unique.
        is_owner: True for owners, False for things, shape (n,).
        level: What each owner permits; RECORDS for own things, shape (n,).
        degree: Distinct targets of each candidate (holders, for things), shape (n,), >= 1.
        last: Newest activity known of each candidate, microseconds, shape (n,).
        pair_own, pair_candidate: Rows into `own` and `ids`, shape (p,).
        pair_weight, pair_last: Of the candidate's edge to that target, shape (p,).
        group: True for members of a group the focus is in, shape (n,).
        peer: Similarity of semantic peers by vector, 0 for others, shape (n,).
        vectors: Centroid of each candidate's memories.
        focus_vector, query_vector: Unit float32 of shape (d,), or None.
        owners_visible: N of the idf: owners the reader may use, itself included.
        tie, own_tie: Of `ids` and `own`: the order where nothing else decides; ids if None.
    """

    focus: int
    now: int
    own: Edges
    own_topic: Bools
    own_idf: Floats
    own_degree: int
    ids: Ids
    is_owner: Bools
    level: Levels
    degree: Counts
    last: Counts
    pair_own: Rows
    pair_candidate: Rows
    pair_weight: Floats
    pair_last: Counts
    group: Bools
    peer: Floats
    vectors: VectorView | LaterView
    focus_vector: Vectors | None = None
    query_vector: Vectors | None = None
    owners_visible: int = 1
    tie: Ids | None = None
    own_tie: Ids | None = None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Selection:
    """The curated neighbours, strongest first, ties by id.

    Attributes:
        ids, scores, level, is_owner: Shape (k,).
        contributions: Per feature, shape (k,); they sum to `scores`.
        shared: For each neighbour the own targets both hold, strongest first.
        pool: How many candidates there were.
        scored: How many needed exact scoring (the rest were pruned by bounds).
    """

    ids: Ids
    scores: Floats
    level: Levels
    is_owner: Bools
    contributions: Mapping[str, Floats]
    shared: Sequence[Ids]
    pool: int = 0
    scored: int = 0

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Snippet:
    """One readable record, or one held thing, of one neighbour: what synthesis reads.

    Attributes:
        source: Opaque id of the card or interaction; goes into lineage.
        owner: Whose.
        level: What the owner permits: text may be quoted at RECORDS only.
        weight: The neighbour's score share, >= 0.
        at: When.
        text: The record's words, None for a bare interaction.
        links: Things and topics it refers to.
        outcome: How it ended, if said.
        party: The principal that the owner is an alias of; 0 if it is none.
    """

    source: str
    owner: int
    level: Level
    weight: float
    at: int
    text: str | None
    links: tuple[int, ...] = ()
    outcome: str | None = None
    party: int = 0

    @property
    def voice(self) -> int:
        """Who is counted: all aliases of one principal are one voice."""
        return self.party or self.owner


@dataclass(frozen=True, slots=True)
class Draft:
    """A facet before it has an id: what it says and what it rests on.

    Attributes:
        key: What stays the same when the facet is made again with other supporters.
        sources: (source, owner, share of the support in [0, 1]), strongest first.
        quotes: Source -> words that may be quoted.
    """

    key: str
    text: str
    confidence: float
    score: float
    links: tuple[int, ...]
    sources: tuple[tuple[str, int, float], ...]
    quotes: Mapping[str, str] = field(default_factory=dict[str, str])
    at: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def contributors(self) -> frozenset[int]:
        """Distinct owners behind it."""
        return frozenset(owner for _, owner, _ in self.sources)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Readable records that may answer a query, as columns, r records, t query terms.

    Attributes:
        cards: Ids of the records, shape (r,).
        owners: Whose, shape (r,).
        tf: Occurrences of each query term in each record, shape (r, t).
        length: Terms in each record, shape (r,), >= 1.
        df: Readable records that hold each term, shape (t,).
        total: Readable records, >= r.
        mean_length: Mean of their lengths, > 0.
        similarity: Cosine with the query vector, shape (r,).
        link_cosine: idf-cosine with the links the caller passed, shape (r,); zeros if none.
        thread: Records with the same value belong together, shape (r,).
        at: When each was said; of records equal in all else the newest comes first. Ids decide if None.
        held: Links of each record, where they may help to rank; empty where they may not.
    """

    cards: Ids
    owners: Ids
    tf: Floats
    length: Floats
    df: Floats
    total: int
    mean_length: float
    similarity: Floats
    link_cosine: Floats
    thread: Ids
    at: Counts | None = None
    held: Sequence[tuple[int, ...]] = ()

    def best_first(self, scores: Floats, rows: Rows | Ids | None = None) -> Ids:
        """Rows by score, highest first; then the newest, then by id.

        Args:
            scores: Of each row, or of those in `rows`.
            rows: All, if left out.
        """
        of = np.arange(len(self.cards)) if rows is None else rows
        newest = np.zeros(len(of), np.int64) if self.at is None else -self.at[of]
        return np.lexsort((self.cards[of], newest, -scores))


@dataclass(frozen=True, slots=True)
class ItemEdges:
    """The strongest edges between many things, e of them: `other` speaks for `thing`.

    Attributes:
        thing, other: Ids, shape (e,), ordered by thing, the strongest first.
        weight: > 0, shape (e,); comparable among edges that were made together.
        method: How they were made.
        owners: Owners they rest on.
    """

    thing: Ids
    other: Ids
    weight: Floats
    method: str
    owners: int

    def __len__(self) -> int:
        return len(self.thing)

    @classmethod
    def empty(cls, method: str = "none") -> ItemEdges:
        """No edges."""
        zero = np.zeros(0, np.int64)
        return cls(zero, zero, np.zeros(0), method, 0)

    @property
    def things(self) -> Ids:
        """All that have an edge, ascending."""
        return np.union1d(self.thing, self.other)

    def into(self, things: Ids, held: Ids) -> EdgePairs:
        """The edges into some things from others that are held; ids in `held` are unique."""
        first, last = np.searchsorted(self.thing, things), np.searchsorted(self.thing, things, side="right")
        spans = [slice(*span) for span in zip(first.tolist(), last.tolist(), strict=True)]
        other = np.concatenate([self.other[:0], *(self.other[span] for span in spans)])
        weight = np.concatenate([self.weight[:0], *(self.weight[span] for span in spans)])
        return pairs_of(np.repeat(np.arange(len(things)), last - first), other, weight, held)


@dataclass(frozen=True, slots=True)
class EdgeMatrix:
    """Edges between all of t things, those that speak against each other included.

    Attributes:
        things: Ids, ascending, shape (t,).
        weight: Half precision, shape (t, t): row i holds what every thing says for thing i; 0 on the diagonal.
        method: How they were made.
        owners: Owners they rest on.
    """

    things: Ids
    weight: NDArray[np.float16]
    method: str
    owners: int

    def __len__(self) -> int:
        return int(np.count_nonzero(self.weight))

    def into(self, things: Ids, held: Ids) -> EdgePairs:
        """The edges into some things from others that are held; ids in `held` are unique."""
        if not len(self.things):
            return EdgePairs.empty()
        to, known = places_in(self.things, things)
        own, there = places_in(self.things, held)
        weight = self.weight[np.ix_(to, own[there])].astype(np.float64) * known[:, None]
        return every_pair(weight, np.flatnonzero(there))


def places_in(ordered: Ids, ids: Ids) -> tuple[Ids, Bools]:
    """Where each id stands in an ascending column, 0 where it does not, and whether it does."""
    if not len(ordered):
        return np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
    at = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
    there = ordered[at] == ids
    return np.where(there, at, 0), there


@dataclass(frozen=True, slots=True)
class EdgePairs:
    """Edges that matter in one ranking, q of them.

    Attributes:
        candidate, own: Rows of the candidate and of the own thing that speaks for it, shape (q,).
        weight: Shape (q,); below 0 it speaks against the candidate.
    """

    candidate: Rows
    own: Rows
    weight: Floats

    @classmethod
    def empty(cls) -> EdgePairs:
        """None."""
        zero = np.zeros(0, np.int32)
        return cls(zero, zero, np.zeros(0))


def every_pair(weight: Floats, own: Rows | Ids) -> EdgePairs:
    """All edges into c candidates from some own things, given by their rows; `weight` has shape (c, own)."""
    candidate = np.repeat(np.arange(len(weight), dtype=np.int32), len(own))
    return EdgePairs(candidate, np.tile(own.astype(np.int32), len(weight)), weight.ravel())


def pairs_of(row: Ids, other: Ids, weight: Floats, held: Ids) -> EdgePairs:
    """Those of some edges whose other end is held, as rows."""
    if not len(held) or not len(row):
        return EdgePairs.empty()
    order = np.argsort(held)
    at = np.minimum(np.searchsorted(held[order], other), len(held) - 1)
    hit = held[order][at] == other
    return EdgePairs(row[hit].astype(np.int32), order[at[hit]].astype(np.int32), weight[hit])


@dataclass(frozen=True, slots=True)
class Company:
    """Everybody who shares a thing with the entity, curated or not: b owners, and which candidates they hold.

    Attributes:
        weight: Of each owner, >= 0, shape (b,).
        level: What each permits, shape (b,).
        owner, candidate: Pairs "owner holds candidate", rows, shape (s,).
    """

    weight: Floats
    level: Levels
    owner: Rows
    candidate: Rows

    @classmethod
    def empty(cls) -> Company:
        """Nobody."""
        none = np.zeros(0, np.int32)
        return cls(np.zeros(0), np.zeros(0, np.int8), none, none)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What ranking looks at: c candidates, m own holdings, k neighbours.

    Attributes:
        ids: Candidate ids, shape (c,).
        own: The entity's own targets, newest first, shape (m,).
        own_vectors, candidate_vectors: Views into the things' vectors.
        neighbors, neighbor_weight, neighbor_level: Curated owners, shape (k,).
        hold_neighbor, hold_candidate: Pairs "neighbour holds candidate", rows, shape (q,).
        hold_weight: Weight of each such pair, shape (q,).
        popularity: Visible holders of each candidate, shape (c,), >= 0.
        owners_visible: Owners that count for popularity, >= 1.
        edges: From own things to candidates.
        company: Who else holds own things.
    """

    ids: Ids
    own: Edges
    own_vectors: VectorView
    candidate_vectors: VectorView
    neighbors: Ids
    neighbor_weight: Floats
    neighbor_level: Levels
    hold_neighbor: Rows
    hold_candidate: Rows
    hold_weight: Floats
    popularity: Floats
    owners_visible: int
    edges: EdgePairs = field(default_factory=EdgePairs.empty)
    company: Company = field(default_factory=Company.empty)


__all__ = [
    "Bools",
    "Candidates",
    "Company",
    "Corpus",
    "Counts",
    "Draft",
    "EdgeMatrix",
    "EdgePairs",
    "Edges",
    "Floats",
    "Ids",
    "ItemEdges",
    "LaterView",
    "Levels",
    "Neighborhood",
    "Rows",
    "Selection",
    "Snippet",
    "VectorView",
    "Vectors",
    "pairs_of",
]
