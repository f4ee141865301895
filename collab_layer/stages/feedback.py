"""What the best hits were about, as a second opinion on the rest: link feedback, and whether it pays.

In:   links of records, as idf-weighted unit rows; an order by text.
Out:  one number per record; for a replay, yes or no.
Pure: no clock, no randomness.

A query seldom names what was decided in cases like it. The links of its best text hits do: records
with the same links are likely to help too, also where their words differ. Whether that holds for
the records at hand is replayed on themselves, each one left out in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collab_layer.stages.products import products
from collab_layer.types.graph import Bools, Floats, Ids, Vectors

BEST = 8
"""Text hits that vote, each 1 / log2(1 + place), and the depth of the replay."""
ALIKE = 0.5
"""Cosine of links from which two records are alike, and from which one stands beside the best hits."""
LEAST = 20
"""Cases with an alike record without which no replay says yes."""
_SURE = 1.645
"""One-sided 95 % of a normal distribution."""


def link_rows(held: Sequence[Sequence[int]]) -> Floats:
    """Unit rows of idf weights, shape (r, links); a record without links has a row of zeros.

    `idf = log(1 + r / n)` of a link in n of the r records.
    """
    links = sorted({link for mine in held for link in mine})
    place = {link: at for at, link in enumerate(links)}
    rows = np.zeros((len(held), len(links)))
    for row, mine in zip(rows, held, strict=True):
        row[[place[link] for link in mine]] = 1.0
    rows *= np.log1p(len(held) / np.maximum(rows.sum(axis=0), 1.0))
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norm > 0, norm, 1.0)


def feedback(rows: Floats, order: Ids) -> Floats:
    """Cosine of each record's links with those of the best hits, shape (r,), in [0, 1].

    Args:
        rows: As from `link_rows`.
        order: Records by text, best first; the first 8 vote.

    Source:
        Pseudo-relevance feedback (Rocchio 1971) on links in place of words; discount as in DCG.
        Measured in docs/evidence/tickets.md.
    """
    best = order[:BEST]
    votes = np.einsum("i,ij->j", _discounts(len(best)), rows[best])
    norm = float(np.linalg.norm(votes))
    return np.einsum("ij,j->i", rows, votes) / norm if norm > 0 else np.zeros(len(rows))


def pays(vectors: Vectors, rows: Floats) -> bool:
    """Whether feedback finds records with alike links better than text alone does.

    Each record is left out and asked for by its vector. Feedback must find more of its alike ones
    in 8 places than text, and more than text with what is common anyway, with a one-sided 95 %
    lower bound above 0 over at least 20 cases. The vectors know how a case ended, which a query
    does not: so text has it easier here than in use.

    Args:
        vectors: Centred unit vectors, shape (n, d).
        rows: Links of the same records, shape (n, links).
    """
    cosine = products(rows, rows)
    near = cosine >= ALIKE
    np.fill_diagonal(near, False)
    cases = np.flatnonzero(near.any(axis=1))
    if len(cases) < LEAST:
        return False
    text = _z_but_self(products(vectors, vectors).astype(np.float64))
    order = _best(text)
    votes = np.zeros_like(cosine)
    for place, discount in enumerate(_discounts(order.shape[1]).tolist()):
        votes += discount * cosine[order[:, place]]
    common = _z_but_self(np.tile(cosine.mean(axis=1), (len(cosine), 1)))
    plain = max((_found(near, best)[cases] for best in (order, _best(text + common))), key=np.mean)
    gain = _found(near, _best(text + _z_but_self(votes)))[cases] - plain
    return bool(gain.mean() - _SURE * gain.std(ddof=1) / len(gain) ** 0.5 > 0)


def _discounts(count: int) -> Floats:
    return 1.0 / np.log2(np.arange(count) + 2.0)


def _found(near: Bools, best: Ids) -> Floats:
    """Share of each case's alike records that are among its best 8, shape (n,); 0 where there is none."""
    hits = np.take_along_axis(near, best, axis=1).sum(axis=1)
    return hits / np.clip(near.sum(axis=1), 1, BEST)


def _best(scores: Floats) -> Ids:
    """Columns of each row's 8 highest scores, highest first, shape (n, 8)."""
    at = np.sort(np.argpartition(-scores, BEST, axis=1)[:, :BEST], axis=1)
    inside = np.argsort(-np.take_along_axis(scores, at, axis=1), axis=1, kind="stable")
    return np.take_along_axis(at, inside, axis=1)


def _z_but_self(scores: Floats) -> Floats:
    """Standard scores of each row without its diagonal, which becomes -inf; 0 where there is no spread.

    `scores` is used up.
    """
    others = max(len(scores) - 1, 1)
    np.fill_diagonal(scores, 0.0)
    scores -= scores.sum(axis=1, keepdims=True) / others
    np.fill_diagonal(scores, 0.0)
    spread = np.sqrt(np.einsum("ij,ij->i", scores, scores) / others)[:, None]
    scores *= np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12)
    np.fill_diagonal(scores, -np.inf)
    return scores


__all__ = ["ALIKE", "BEST", "LEAST", "feedback", "link_rows", "pays"]
