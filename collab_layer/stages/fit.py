"""Fit ranking weights on earlier cases, and decide whether shared features may count at all.

In:   cases: the raw features of one candidate list each, and which candidate was right.
Out:  weights >= 0 per feature; the gate says by how much they beat the own features.
Pure: no clock, no I/O, no randomness; folds are taken by place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.errors import InputError
from collab_layer.stages.rank import DEFAULT_WEIGHTS, OWN, standardise
from collab_layer.types.graph import Bools, Counts, Floats

MIN_CASES = 20
"""Below, the defaults are kept."""
CONFIDENCE_Z = 1.645
"""One-sided 95 %."""
FOLDS = 4
MAX_STEPS = 100
"""Newton steps; a dozen is usual."""


@dataclass(frozen=True, slots=True)
class Case:
    """One past choice.

    Attributes:
        columns: Raw features, each of shape (c,), c >= 2.
        chosen: Row of the candidate that was right.
    """

    columns: Mapping[str, Floats]
    chosen: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights to use, and why.

    Attributes:
        weights: Finite and >= 0, one per feature; shared ones are 0 while the gate is shut.
        open: True if shared features may count.
        gain: Mean difference in hits at 1 against the own features, on held-out folds.
        low: Lower 95 % bound of `gain`.
        cases: How many independent cases it rests on.
    """

    weights: dict[str, float]
    open: bool
    gain: float
    low: float
    cases: int


def fit(
    cases: Sequence[Case],
    *,
    features: Sequence[str] = tuple(DEFAULT_WEIGHTS),
    l2: float = 1.0,
    defaults: Mapping[str, float] = DEFAULT_WEIGHTS,
    min_cases: int = MIN_CASES,
    max_steps: int = MAX_STEPS,
) -> dict[str, float]:
    """Weights of a conditional logit that make the right candidates likely.

    Minimises `sum over cases of (logsumexp(X w) - X[chosen] w) + l2 / 2 * |w|^2` over w >= 0,
    X the features standardised within each list. The problem is strictly convex, so the
    result does not depend on the start or on the order of the cases.

    Args:
        cases: Lists may differ in length; those with fewer than two candidates are left out.
        features: Which features to use; one that a case lacks counts 0 there.
        l2: Strength of the pull to 0, > 0.
        defaults: What comes back for too few cases, cut to `features`.
        min_cases: The fewest cases that are fitted, >= 1.
        max_steps: Newton steps, >= 1.

    Returns:
        Weights per feature, finite and >= 0.

    Raises:
        InputError: `l2` is not positive, or a case names a row it does not have.

    Source:
        Conditional logit: McFadden 1974. Projected Newton: Bertsekas, SIAM J. Control and
        Optimization 20(2), 1982.
    """
    if not (np.isfinite(l2) and l2 > 0):
        raise InputError(f"`l2` is {l2}, it must be positive")
    names = tuple(dict.fromkeys(features))
    usable = [case for case in cases if _size(case) >= 2]
    if len(usable) < max(min_cases, 1) or not names:
        return {name: float(defaults.get(name, 0.0)) for name in names}
    gain, mask = _differences(usable, names)
    weights = _newton(gain, mask, l2, max_steps)
    return dict(zip(names, weights.tolist(), strict=True))


def fit_gated(
    cases: Sequence[Case],
    *,
    features: Sequence[str] = tuple(DEFAULT_WEIGHTS),
    own: Sequence[str] = OWN,
    beside: Sequence[str] = (),
    groups: Sequence[int] | None = None,
    l2: float = 1.0,
    min_cases: int = MIN_CASES,
) -> Fitted:
    """Fit all features, but use the shared ones only if they pay on cases they were not fitted on.

    Four folds: each is judged with weights from the other three, once with all features and
    once with the own ones; candidates that score the same share the hit. The gate opens if the
    mean difference in hits at 1, minus 1.645 standard errors, is above 0; with too few groups it
    stays shut and own defaults come back. Features `beside` the others are left out unless they pay
    in the same way against all others.

    Args:
        cases: As in `fit`.
        features: All features.
        own: Those that need nobody else.
        beside: Those of them that have to pay beside all others.
        groups: Cases with the same number tell of one event and count as one; None: each its own.
        l2: As in `fit`, per group of cases.
        min_cases: The fewest groups the gate opens for.

    Raises:
        InputError: As in `fit`, or `groups` has another length than `cases`.
    """
    if groups is not None and len(groups) != len(cases):
        raise InputError(f"{len(groups)} groups for {len(cases)} cases")
    numbers = range(len(cases)) if groups is None else groups
    paired = [(case, number) for case, number in zip(cases, numbers, strict=True) if _size(case) >= 2]
    names = tuple(dict.fromkeys(features))
    mine = tuple(name for name in names if name in own)
    order = {number: at for at, number in enumerate(dict.fromkeys(number for _, number in paired))}
    if len(order) < max(min_cases, FOLDS):
        kept = {name: float(DEFAULT_WEIGHTS.get(name, 0.0)) if name in own else 0.0 for name in names}
        return Fitted(kept, False, 0.0, 0.0, len(order))
    usable = [case for case, _ in paired]
    group = np.array([order[number] for _, number in paired])
    pull = l2 * len(usable) / len(order)
    hits = _held_out(usable, group, names, pull)
    less = tuple(name for name in names if name not in beside)
    if less != names:
        without = _held_out(usable, group, less, pull)
        if _bounded(hits - without, group)[1] <= 0:
            names, hits = less, without
    gain, low = _bounded(hits - _held_out(usable, group, mine, pull), group)
    used = fit(usable, features=names if low > 0 else mine, l2=pull, min_cases=1)
    return Fitted({name: used.get(name, 0.0) for name in dict.fromkeys(features)}, low > 0, gain, low, len(order))


def _bounded(won: Floats, group: Counts) -> tuple[float, float]:
    """Mean over groups, and its lower bound."""
    each = np.bincount(group, weights=won) / np.bincount(group)
    return float(each.mean()), float(each.mean() - CONFIDENCE_Z * each.std(ddof=1) / len(each) ** 0.5)


def _held_out(cases: Sequence[Case], group: Counts, names: Sequence[str], l2: float) -> Floats:
    """Hit of each case with weights from the folds it is not in, shape (n,)."""
    gain, mask = _differences(cases, names)
    hits = np.zeros(len(cases))
    for fold in range(FOLDS):
        inside = group % FOLDS == fold
        weights = _newton(gain[~inside], mask[~inside], l2, MAX_STEPS) if names else np.zeros(0)
        hits[inside] = _chances(gain[inside], mask[inside], weights)
    return hits


def chance(case: Case, weights: Mapping[str, float]) -> float:
    """The chance of a hit where those that score the same come in any order: else any noise would beat silence."""
    gain, mask = _differences([case], tuple(weights))
    return float(_chances(gain, mask, np.fromiter(weights.values(), np.float64))[0])


def _chances(gain: Floats, mask: Bools, weights: Floats) -> Floats:
    """The same for each case, shape (n,)."""
    scores = gain @ weights
    same = mask & (np.abs(scores) <= 1e-12)
    better = mask & ~same & (scores > 0)
    return np.where(better.any(axis=1), 0.0, 1.0 / (1 + same.sum(axis=1)))


def hit(case: Case, weights: Mapping[str, float]) -> float:
    """1.0 if the right candidate beats all others, 0.0 if not; a tie is no hit."""
    if not weights:
        return 0.0
    gain, mask = _differences([case], tuple(weights))
    scores = gain[0] @ np.fromiter(weights.values(), np.float64)
    return float(np.all(scores[mask[0]] < 0))


def _size(case: Case) -> int:
    size = min((len(column) for column in case.columns.values()), default=0)
    if size and not 0 <= case.chosen < size:
        raise InputError(f"a case names row {case.chosen} of {size} candidates")
    return size


def _differences(cases: Sequence[Case], names: Sequence[str]) -> tuple[Floats, Bools]:
    """Standardised features of the other candidates minus the right one's, padded.

    Returns:
        Shape (n, c - 1, f) and which rows are real, shape (n, c - 1).
    """
    sizes = [_size(case) for case in cases]
    width = max(sizes)
    raw = np.full((len(cases), len(names), width), np.nan)
    for at, (case, size) in enumerate(zip(cases, sizes, strict=True)):
        for row, name in enumerate(names):
            column = case.columns.get(name)
            raw[at, row, :size] = 0.0 if column is None else column[:size]
    table: Floats = standardise(raw).transpose(0, 2, 1)
    chosen: Counts = np.array([[case.chosen] for case in cases], np.int64)
    first: Counts = np.arange(width - 1, dtype=np.int64)
    others: Counts = first + (first >= chosen)  # every row but the right one
    every: Counts = np.arange(len(cases), dtype=np.int64)[:, np.newaxis]
    mask: Bools = others < np.array(sizes, np.int64)[:, np.newaxis]
    gain: Floats = np.where(mask[:, :, np.newaxis], table[every, others] - table[every, chosen], 0.0)
    return gain, mask


def _loss(weights: Floats, gain: Floats, mask: Bools, l2: float) -> tuple[float, Floats]:
    """The objective, and the probability of each wrong candidate, shape (n, c - 1)."""
    scores = np.where(mask, gain @ weights, -np.inf)
    top = np.maximum(scores.max(axis=1), 0.0)  # the right one scores 0
    parts = np.exp(scores - top[:, None])
    whole = parts.sum(axis=1) + np.exp(-top)
    value = float((np.log(whole) + top).sum() + 0.5 * l2 * weights @ weights)
    return value, parts / whole[:, None]


def _newton(gain: Floats, mask: Bools, l2: float, max_steps: int) -> Floats:
    weights = np.zeros(gain.shape[2])
    value, chance = _loss(weights, gain, mask, l2)
    for _ in range(max_steps):
        mean = np.einsum("nc,ncf->nf", chance, gain)
        slope = mean.sum(axis=0) + l2 * weights
        free = (weights > 0) | (slope < 0)
        if not free.any() or float(np.abs(slope[free]).max()) < 1e-8 * len(gain):
            break
        curve = np.einsum("nc,ncf,ncg->fg", chance, gain, gain) - mean.T @ mean + l2 * np.eye(len(weights))
        step = np.zeros_like(weights)
        step[free] = -np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        found = _search(weights, step, slope, value, (gain, mask, l2))
        # Near the bound Newton's direction may point out of it; a scaled gradient never fails there.
        found = found or _search(weights, -slope / np.diag(curve), slope, value, (gain, mask, l2))
        if found is None:
            break
        weights, value, chance = found
    return weights


def _search(
    weights: Floats, step: Floats, slope: Floats, value: float, problem: tuple[Floats, Bools, float]
) -> tuple[Floats, float, Floats] | None:
    """Halve the step until the projected point is lower by enough; None if no step is."""
    for halving in range(40):
        tried = np.maximum(weights + step * 0.5**halving, 0.0)
        lower, chance = _loss(tried, *problem)
        if lower <= value + 1e-4 * float(slope @ (tried - weights)) and lower < value:
            return tried, lower, chance
    return None


__all__ = ["Case", "Fitted", "chance", "fit", "fit_gated", "hit"]
