"""What is counted, and how sure it is.

In:   scores of candidate lists whose first column is the right one.
Out:  ranks, hits, gains, and bootstrap intervals over users.
Pure: chance comes from a seed that is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collab_layer.types.graph import Counts, Floats

DRAWS = 1_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


def places(scores: Floats) -> Counts:
    """Place of the right candidate, 1 is best; all that score the same are put before it.

    Args:
        scores: Shape (..., c), the right candidate in column 0.
    """
    return 1 + np.count_nonzero(scores[..., 1:] >= scores[..., :1], axis=-1)


def hits(place: Counts, at: int = 1) -> Floats:
    """1.0 where the right candidate is among the first `at`."""
    return (place <= at).astype(np.float64)


def ndcg(place: Counts, at: int = 5) -> Floats:
    """`1 / log2(1 + place)` where the place is at most `at`, else 0, in [0, 1].

    Source:
        Jarvelin and Kekalainen, ACM TOIS 20(4), 2002, with one relevant candidate.
    """
    return np.where(place <= at, 1.0 / np.log2(1.0 + place), 0.0)


def harm(before: Floats, after: Floats) -> Floats:
    """Share of each user's lists, shape (u,), that were a hit before and are a miss after.

    Args:
        before: Hits, shape (u, seeds).
        after: The same lists under the other contestant.
    """
    return ((before > 0) & (after == 0)).mean(axis=1)


def worse(before: Counts, after: Counts) -> Floats:
    """Share of each user's lists, shape (u,), whose right candidate moved down."""
    return (after > before).mean(axis=1)


def mean(values: Floats, seed: int) -> Interval:
    """The mean over users with its bootstrap interval; `values` has shape (u,), u >= 1."""
    counts = _resamples(len(values), seed)
    low, high = _middle((counts @ values / len(values)).tolist())
    return Interval(float(values.mean()), low, high)


def summed(columns: Floats, figure: Callable[[Floats], Floats], seed: int) -> Interval:
    """A figure of sums over units that are drawn as a whole, such as episodes, with its bootstrap interval.

    Args:
        columns: What each unit adds, shape (u, k), u >= 1.
        figure: From sums, shape (..., k), to figures, shape (...).
        seed: Of the draws.
    """
    values = figure(_resamples(len(columns), seed) @ columns)
    low, high = _middle(values.tolist())
    return Interval(float(figure(columns.sum(axis=0))), low, high)


def lift(before: Floats, after: Floats, seed: int) -> Interval:
    """`mean(after) / mean(before) - 1`, paired by user; both of shape (u,).

    A mean of 0 before gives infinity where something was won and 0 where nothing was.
    """
    counts = _resamples(len(before), seed)
    low, high = _middle([_ratio(*pair) for pair in zip(counts @ before, counts @ after, strict=True)])
    return Interval(_ratio(float(before.sum()), float(after.sum())), low, high)


def _ratio(before: float, after: float) -> float:
    if before <= 0:
        return float("inf") if after > 0 else 0.0
    return float(after) / float(before) - 1.0


def _resamples(users: int, seed: int) -> NDArray[np.int64]:
    """How often each user is drawn, shape (1000, u)."""
    return np.random.default_rng(seed).multinomial(users, np.full(users, 1.0 / users), size=DRAWS)


def _middle(values: Sequence[float]) -> tuple[float, float]:
    ordered = np.sort(np.asarray(values))
    return float(ordered[int(0.025 * DRAWS)]), float(ordered[int(0.975 * DRAWS) - 1])


__all__ = ["Interval", "harm", "hits", "lift", "mean", "ndcg", "places", "summed", "worse"]
