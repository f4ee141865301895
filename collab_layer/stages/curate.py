"""Choose the few neighbours worth reading for one entity.

In:   a `Neighborhood` the reader is allowed to see, and compiled rules.
Out:  a `Selection` of at most `k`, strongest first, ties by `Neighborhood.tie`.
Pure: no clock, no I/O, no randomness. Same input, same bytes, whatever the order of the candidates.

The result equals scoring everybody: features that read vectors are computed only for
candidates whose upper bound can still reach the selection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from collab_layer.errors import InputError
from collab_layer.stages.features import columns
from collab_layer.stages.rules import Scorer
from collab_layer.types.graph import Bools, Floats, Ids, Neighborhood, Selection
from collab_layer.types.scope import Level

Kind = Literal["owner", "thing"]

FEW = 256
"""Candidates of which all are scored at once: their bounds would cost more than they save."""
_SLACK = 1e-9
"""Relative; a bound and a score that are the same by algebra may differ in the last bits."""


def curate(
    neighborhood: Neighborhood,
    scorer: Scorer,
    *,
    k: int = 16,
    min_owners: int = 4,
    min_things: int = 6,
    kinds: Collection[Kind] | None = None,
    few: int = FEW,
) -> Selection:
    """Pick the best `min_owners` owners, the best `min_things` things, then the best of the rest up to `k`.

    Candidates that permit nothing are removed first; no feature sees them. A candidate
    with a score of 0 or less is not selected, so that fewer than `k` may come back.

    Args:
        neighborhood: The capped pool.
        scorer: Rules from `rules.load`.
        k: At most so many, >= 0. Below `min_owners + min_things` both shrink in proportion.
        min_owners: Slots that only owners can take, if there are enough of them.
        min_things: Slots that only things can take, if there are enough of them.
        kinds: Such as `("owner",)`: the other kind is not even scored. `None` takes both.
        few: Up to so many candidates all are scored; it changes what that costs and nothing else.

    Raises:
        InputError: A size is negative, or `kinds` names something else than `owner` and `thing`.

    Source:
        k = 16, 4 and 6: MemRec (arXiv 2601.08816).
    """
    if min(k, min_owners, min_things) < 0:
        raise InputError("`k`, `min_owners` and `min_things` must not be negative")
    if kinds is not None and not set(kinds) <= {"owner", "thing"}:
        raise InputError('`kinds` holds "owner", "thing" or both')
    quota = _quota(k, min_owners, min_things)
    pool = permitted(neighborhood, kinds)
    cheap = columns(scorer.cheap, pool)
    rows, scores, scored = _score(pool, scorer, cheap, quota, few)
    best = _choose(pool, rows, scores, quota)
    rows, scores = rows[best], scores[best]
    found = {name: values[rows] for name, values in cheap.items()} | columns(scorer.expensive, pool, rows)
    return Selection(
        ids=pool.ids[rows],
        scores=scores,
        level=pool.level[rows],
        is_owner=pool.is_owner[rows],
        contributions=scorer.contributions(found),
        shared=_shared(pool, rows),
        pool=len(pool),
        scored=scored,
    )


@dataclass(frozen=True, slots=True)
class _Quota:
    k: int
    owners: int
    things: int


def _quota(k: int, owners: int, things: int) -> _Quota:
    both = owners + things
    return _Quota(k, owners, things) if both <= k else _Quota(k, owners * k // both, things * k // both)


def permitted(neighborhood: Neighborhood, kinds: Collection[Kind] | None = None) -> Neighborhood:
    """The candidates that may be looked at, without the focus itself."""
    keep = (neighborhood.level != Level.NONE) & (neighborhood.ids != neighborhood.focus)
    if kinds is not None:
        keep &= np.where(neighborhood.is_owner, "owner" in kinds, "thing" in kinds)
    return neighborhood if keep.all() else _narrow(neighborhood, keep)


def _narrow(given: Neighborhood, keep: Bools) -> Neighborhood:
    row = np.cumsum(keep) - 1
    pairs = keep[given.pair_candidate]
    return replace(
        given,
        ids=given.ids[keep],
        is_owner=given.is_owner[keep],
        level=given.level[keep],
        degree=given.degree[keep],
        last=given.last[keep],
        pair_own=given.pair_own[pairs],
        pair_candidate=row[given.pair_candidate[pairs]].astype(given.pair_candidate.dtype),
        pair_weight=given.pair_weight[pairs],
        pair_last=given.pair_last[pairs],
        group=given.group[keep],
        peer=given.peer[keep],
        tie=None if given.tie is None else given.tie[keep],
        vectors=given.vectors.take(keep),
    )


def _score(
    pool: Neighborhood, scorer: Scorer, cheap: Mapping[str, Floats], quota: _Quota, few: int
) -> tuple[Ids, Floats, int]:
    """Rows that may be selected, their exact scores, and how many were scored exactly.

    Rounds over the most promising rows; after each, a row whose upper bound is below what
    the selection certainly reaches is given up. The first round holds four times `k`, each
    later one four times as many. Up to `few` candidates are all scored.
    """
    if not scorer.expensive or len(pool) <= few:
        exact = scorer.score(dict(cheap) | columns(scorer.expensive, pool))
        rows = np.flatnonzero(exact > 0)
        return rows, exact[rows], len(pool)
    high = scorer.bounds(cheap, len(pool))[1]
    todo, upper = np.flatnonzero(high > 0), high + _SLACK * (1.0 + np.abs(high))
    rows, scores, size = np.zeros(0, np.int64), np.zeros(0), max(4 * quota.k, 1)
    while len(todo):
        now, todo = _most_promising(todo, upper, size)
        found = {name: values[now] for name, values in cheap.items()}
        exact = scorer.score(found | columns(scorer.expensive, pool, now))
        rows, scores = np.concatenate([rows, now]), np.concatenate([scores, exact])
        if len(todo):
            todo = todo[upper[todo] >= _reach(pool, rows, scores, quota)[pool.is_owner[todo].astype(np.int64)]]
        size *= 4
    positive = scores > 0
    return rows[positive], scores[positive], len(rows)


def _most_promising(todo: Ids, upper: Floats, size: int) -> tuple[Ids, Ids]:
    """Split off the `size` rows of the largest bound, with all that equal the last of them."""
    if len(todo) <= size:
        return todo, todo[:0]
    bounds = upper[todo]
    first = bounds >= _nth(bounds, size)
    return todo[first], todo[~first]


def _nth(values: Floats, n: int) -> float:
    """The n-th largest value; minus infinity if there are fewer, infinity for n = 0."""
    if n == 0:
        return np.inf
    return float(np.partition(values, len(values) - n)[len(values) - n]) if n <= len(values) else -np.inf


def _reach(pool: Neighborhood, rows: Ids, scores: Floats, quota: _Quota) -> Floats:
    """What a bound must reach to matter, for things and for owners, shape (2,).

    A candidate is selected only if it is among the best of its kind that have slots of
    their own, or if fewer than `k` of all kinds beat it.
    """
    owner = pool.is_owner[rows]
    anyone = _nth(scores, quota.k)
    return np.array([min(anyone, _nth(scores[~owner], quota.things)), min(anyone, _nth(scores[owner], quota.owners))])


def _choose(pool: Neighborhood, rows: Ids, scores: Floats, quota: _Quota) -> Ids:
    """Positions of the selected, strongest first, ties by `tie`."""
    order = np.lexsort(((pool.ids if pool.tie is None else pool.tie)[rows], -scores))
    owner = pool.is_owner[rows[order]]
    taken = np.zeros(len(order), np.bool_)
    taken[np.flatnonzero(owner)[: quota.owners]] = True
    taken[np.flatnonzero(~owner)[: quota.things]] = True
    taken[np.flatnonzero(~taken)[: quota.k - int(taken.sum())]] = True
    return order[taken]


def _shared(pool: Neighborhood, rows: Ids) -> list[Ids]:
    """Own targets each selected row holds, rarest first, ties by `own_tie`."""
    chosen = np.zeros(len(pool), np.bool_)
    chosen[rows] = True
    pairs = np.flatnonzero(chosen[pool.pair_candidate])
    targets, owner = pool.pair_own[pairs], pool.pair_candidate[pairs]
    tie = pool.own.ids if pool.own_tie is None else pool.own_tie
    order = np.lexsort((tie[targets], -pool.own_idf[targets]))
    targets, owner = pool.own.ids[targets[order]], owner[order]
    return [targets[owner == row] for row in rows]


__all__ = ["FEW", "Kind", "curate", "permitted"]
