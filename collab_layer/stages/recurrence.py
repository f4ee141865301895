"""Tell when a matter came up often enough to be worth a model's time.

In:   unit vectors of the records that an owner may read, which of them are new, and which a
      model has read before.
Out:  from which likeness on two records are of one matter; the records of one ripe matter, or none.
Pure: no clock, no I/O, no randomness.

The idea, to embed everything and to call a model only when similar records recur, is RecMem's
(arXiv 2605.16045), which takes a fixed likeness of 0.6 or 0.7. Likeness means something else with
every embedder, so that here it is read off the vectors at hand, see `likeness`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from collab_layer.types.graph import Bools, Rows, Vectors

Look = Callable[[Rows], Vectors]
"""The vectors of some records: unit length, mean-centred."""

COUNT = 4
"""Records of one matter that make it ripe. Measured: docs/evidence/triggers.md."""
SHOWN = 12
"""Records of one matter that a model is shown at once."""
TOGETHER = 2 / 3
"""Share of a matter's other records that each of its records must be alike to."""
SPREAD = 1.25
"""How far above the middle a likeness must lie, in steps from the middle to the 99th percentile."""
LOW, HIGH = 0.25, 0.6
"""Bounds of the likeness: unrelated records never count, those that say the same always do."""
FEW, SAMPLE = 16, 128
"""Records below which their likeness tells nothing about the embedder, and records looked at."""
_LOOKED = 48
_BLOCK = 8_192


def likeness(look: Look, rows: Rows) -> float:
    """From which cosine on two records count as one matter.

    `middle + SPREAD * (q99 - middle)`, kept within [LOW, HIGH], where `middle` and `q99` are the
    median and the 99th percentile over the pairs of at most 128 records, evenly spaced. Few of
    all pairs are of one matter, so that both describe chance; the step between them takes the
    embedder's own scale with it.

    Args:
        look: Gives vectors by row.
        rows: The records that count, shape (n,). Below 16 of them the answer is `HIGH`.
    """
    if len(rows) < FEW:
        return HIGH
    sample = look(rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.int64)])
    cosine = (sample @ sample.T)[np.triu_indices(len(sample), 1)]
    middle, tail = np.quantile(cosine, (0.5, 0.99)).tolist()
    return float(np.clip(middle + SPREAD * (tail - middle), LOW, HIGH))


def candidates(look: Look, rows: Rows, new: Rows, *, least: float) -> Rows:
    """Of the rows, all that are as alike as `least` to a new one, the new ones included, in order."""
    wanted = look(new)
    near = [block[(look(block) @ wanted.T >= least).any(axis=1)] for block in _blocks(rows)]
    return np.unique(np.concatenate([*near, new])).astype(np.int32)


def ripe(look: Look, rows: Rows, new: Rows, considered: Bools, *, least: float, count: int = COUNT) -> Rows | None:
    """The records of the one matter that has recurred most, if any has recurred enough.

    A new record that no model has read is ripe when it and the unread records that are alike to
    it are `count` or more, after those were left out, worst first, that are alike to less than
    two thirds of the others: what merely resembles one of them belongs to another matter. Of
    several ripe ones the one with most records is taken, then the earliest row.

    Args:
        look: As for `likeness`.
        rows: Records that may be shown, ascending, shape (n,); `candidates` gives them.
        new: Those of them that are new.
        considered: Which of `rows` a model has read, shape (n,).
        least: From `likeness`.
        count: >= 2.

    Returns:
        At most `SHOWN` rows, the new one first, then by likeness, ties by row; None if nothing is ripe.

    Raises:
        ValueError: `count` is below 2.
    """
    if count < 2:
        raise ValueError(f"a matter recurs from 2 records on, not from {count}")
    unread = rows[~considered]
    best: Rows | None = None
    for one in new[np.isin(new, unread)].tolist():
        found = _matter(look, unread, one, least)
        if len(found) >= count and (best is None or len(found) > len(best)):
            best = found
    return None if best is None else best[:SHOWN]


def _matter(look: Look, unread: Rows, one: int, least: float) -> Rows:
    """The record and those of its matter, most alike first."""
    others = unread[unread != one]
    cosine = look(others) @ look(np.array([one], np.int32))[0]
    order = np.lexsort((others, -cosine))
    near = others[order[cosine[order] >= least]][:_LOOKED]
    rows = np.concatenate([np.array([one], unread.dtype), near])
    vectors = look(rows)
    alike = vectors @ vectors.T >= least
    alike[0], alike[:, 0] = True, True  # all are alike to the new one, whatever the rounding
    np.fill_diagonal(alike, False)
    kept = np.ones(len(rows), np.bool_)
    while True:
        ties = np.where(kept, alike[:, kept].sum(axis=1), len(rows))
        ties[0] = len(rows)
        worst = len(rows) - 1 - int(np.argmin(ties[::-1]))  # of equals the least like the new one
        if ties[worst] >= TOGETHER * (kept.sum() - 1):
            return rows[kept]
        kept[worst] = False


def _blocks(rows: Rows) -> Sequence[Rows]:
    """A large tenant's vectors are not copied at once."""
    return [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]


__all__ = ["COUNT", "SHOWN", "candidates", "likeness", "ripe"]
