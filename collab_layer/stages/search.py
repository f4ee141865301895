"""Rank readable records for a query: shared words, vectors, shared links; then pack by tokens.

In:   a `Corpus` already cut to what the reader may read.
Out:  one score per record, -inf for those that do not stand for anything.
Pure: no clock, no I/O. Owners get no weight and popularity none: records compete.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collab_layer.stages.feedback import ALIKE, feedback, link_rows
from collab_layer.types.graph import Bools, Corpus, Floats, Ids, Rows

K1 = 1.2
B = 0.75
LINK_WEIGHT = 0.5
"""Source: docs/evidence, cheapest honest graph signal on tickets."""
FLOOR = 0.35
"""Cosine from which a record without a telling shared word may stand: with the built-in
embedder one in a thousand pairs of unrelated texts is above it."""
FEEDBACK_WEIGHT = 0.5
"""Of what the best hits are about, where a replay says that it pays. Source: docs/evidence/tickets.md."""
RELATIVE_FLOOR = 0.5
"""The same, as a part of the pool's best cosine."""
WORD_SHARE = 0.15
"""Part of the query's telling words, by idf, that a record must share to stand by words alone.
On a question-and-answer archive recall at 10 stays as without a floor, and one everyday word
no longer brings an eighth of the archive."""
_COUNTED_TERMS = 6


def term_idf(corpus: Corpus) -> Floats:
    """log(1 + (N - df + 0.5) / (df + 0.5)), shape (t,), > 0. Source: Robertson and Zaragoza, 2009."""
    df = np.minimum(corpus.df, corpus.total)
    return np.log1p((corpus.total - df + 0.5) / (df + 0.5))


def bm25(corpus: Corpus) -> Floats:
    """Okapi BM25 with k1 = 1.2, b = 0.75, shape (r,), >= 0; document frequencies are those given."""
    if not corpus.tf.size:
        return np.zeros(len(corpus.cards))
    norm = K1 * (1 - B + B * corpus.length / max(corpus.mean_length, 1e-9))
    return (corpus.tf * (K1 + 1) / (corpus.tf + norm[:, None])) @ term_idf(corpus)


def relevant(corpus: Corpus, *, floor: float = FLOOR) -> Bools:
    """Which records have to do with the query at all, shape (r,).

    A record stands by words if the idf of the query terms it shares is at least `WORD_SHARE` of
    the idf of the query's six rarest terms; terms that no record holds count too, so that one
    everyday word does not make a foreign query relevant. It stands by its vector if the cosine
    is at least `floor` and half of the pool's best; or by sharing a link the caller passed.

    Args:
        corpus: The candidates.
        floor: Cosine of unrelated texts that is rarely exceeded; depends on the embedder.
    """
    idf = term_idf(corpus)
    rarest = float(np.sort(idf)[::-1][:_COUNTED_TERMS].sum())
    by_words = np.zeros(len(corpus.cards), np.bool_)
    if corpus.tf.size:
        by_words = ((corpus.tf > 0) @ idf) >= WORD_SHARE * rarest
        by_words &= corpus.tf.any(axis=1)
    best = float(corpus.similarity.max(initial=0.0))
    by_vector = corpus.similarity >= max(floor, RELATIVE_FLOOR * best)
    return by_words | by_vector | (corpus.link_cosine > 0)


def shares(corpus: Corpus, rows: Sequence[int], voices: Sequence[int]) -> Floats:
    """How much of the query some records share, by idf, shape (n,), >= 0.

    Terms that only one principal among them uses do not count: who copies the question is not the
    nearer to the matter for it.

    Args:
        corpus: The candidates.
        rows: Of the corpus, shape (n,).
        voices: The principal behind each of them.
    """
    if not len(rows) or not corpus.tf.size:
        return np.zeros(len(rows))
    held = corpus.tf[list(rows)] > 0
    _, voice = np.unique(np.asarray(voices), return_inverse=True)
    said = np.zeros((int(voice.max()) + 1, held.shape[1]), np.bool_)
    np.logical_or.at(said, voice, held)
    weight: Floats = np.where(said.sum(axis=0) > 1, term_idf(corpus), 0.0)
    return held.astype(np.float64) @ weight


def rank_records(corpus: Corpus, *, link_weight: float = LINK_WEIGHT, floor: float = FLOOR) -> Floats:
    """Score records: z(BM25) + z(similarity) + link_weight * z(link cosine).

    Where the corpus says what its records link to, the links of the best hits vote: records linked
    alike stand too, and half of z(cosine with the vote) is added.

    A thread competes as one: it has its members' highest value in each column, and the member
    that is best by itself (the newest of equals) stands for it. z is over the threads; a column without
    spread gives 0.

    Args:
        corpus: The candidates, shape (r,).
        link_weight: Weight of links; without links the column is constant and adds nothing.
        floor: See `relevant`.

    Returns:
        Scores, shape (r,), in the order given; -inf for irrelevant records and for those that
        do not stand for their thread. Filter with `numpy.isfinite`.

    Source:
        Weights and pooling of threads: docs/evidence (sum of z as good as rank fusion; whole
        threads +11 points of recall at 5).
    """
    out = np.full(len(corpus.cards), -np.inf)
    rows = np.flatnonzero(relevant(corpus, floor=floor))
    if not len(rows):
        return out
    columns = np.stack([bm25(corpus), corpus.similarity, corpus.link_cosine])
    weights = np.array([1.0, 1.0, link_weight])
    standing, scores = _by_thread(corpus, columns, weights, rows)
    if corpus.held:
        near = feedback(link_rows(corpus.held), standing[np.lexsort((corpus.cards[standing], -scores))])
        rows = np.union1d(rows, np.flatnonzero(near >= ALIKE))
        columns, weights = np.vstack([columns, near]), np.append(weights, FEEDBACK_WEIGHT)
        standing, scores = _by_thread(corpus, columns, weights, rows)
    out[standing] = scores
    return out


def _by_thread(corpus: Corpus, columns: Floats, weights: Floats, rows: Rows | Ids) -> tuple[Ids, Floats]:
    """The member of each thread that stands for it, and the thread's score."""
    alone = weights @ _z(columns[:, rows])
    order = corpus.best_first(alone, rows)
    order = order[np.argsort(corpus.thread[rows[order]], kind="stable")]  # the best of each thread comes first in it
    standing = rows[order]
    thread = corpus.thread[standing]
    first = np.flatnonzero(np.concatenate([[True], thread[1:] != thread[:-1]]))
    return standing[first].astype(np.int64), weights @ _z(np.maximum.reduceat(columns[:, standing], first, axis=1))


def _z(columns: Floats) -> Floats:
    """Standard scores along the last axis; 0 where there is no spread."""
    spread = columns.std(axis=-1, keepdims=True)
    centred = columns - columns.mean(axis=-1, keepdims=True)
    return np.where(spread > 1e-12, centred / np.where(spread > 1e-12, spread, 1.0), 0.0)


def best_first(cards: Ids, scores: Floats) -> list[int]:
    """Rows with a finite score, highest first, ties by id."""
    order = np.lexsort((cards, -scores))
    return [int(row) for row in order if np.isfinite(scores[row])]


def fill(lines_tokens: Sequence[int], scores: Sequence[float] | Floats, budget: int) -> list[int]:
    """Rows that fit into a budget, highest score first; one that does not fit is passed over.

    Args:
        lines_tokens: Tokens of each line, >= 0.
        scores: Score of each line; those that are not finite are never taken. Ties by row.
        budget: Tokens in all.

    Raises:
        ValueError: The two differ in length.
    """
    if len(lines_tokens) != len(scores):
        raise ValueError(f"{len(lines_tokens)} lines but {len(scores)} scores")
    taken: list[int] = []
    for row in best_first(np.arange(len(scores)), np.asarray(scores, np.float64)):
        if lines_tokens[row] <= budget:
            taken.append(row)
            budget -= lines_tokens[row]
    return taken


__all__ = ["FLOOR", "LINK_WEIGHT", "best_first", "bm25", "fill", "rank_records", "relevant", "shares", "term_idf"]
