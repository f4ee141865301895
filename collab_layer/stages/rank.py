"""Order candidates by the entity's own things and by what its curated neighbours hold.

In:   `Candidates`, cut to what the reader may see; weights per feature.
Out:  raw features per candidate, a score per candidate, one sentence of reasons.
Pure: no clock, no I/O, no randomness. Scores compare within one list only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from collab_layer.errors import InputError
from collab_layer.stages.company import co_holders, countable, distinct
from collab_layer.stages.products import on_grid, products
from collab_layer.types.graph import Bools, Candidates, Floats, Vectors, VectorView

OWN = ("own_centroid", "own_top3", "own_recent")
"""Features that need nobody else."""
SHARED = ("evidence", "log_lift", "popularity", "item_edges", "co_holders")
"""Features that come from other owners."""
BESIDE = ("co_holders",)
"""Those that say much the same as `item_edges`: for who holds much they count only where they pay beside it."""

DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "own_centroid": 0.2,
        "own_top3": 0.1,
        "own_recent": 0.35,
        "evidence": 0.55,
        "log_lift": 0.0,
        "popularity": 0.0,
        "item_edges": 0.0,
        "co_holders": 0.0,
    }
)
"""What each standardised feature counts until weights were fitted on the tenant's own cases.

Rounded from one fit on the fitting trials of a dense and a thin public film set together, with
popularity-matched candidates, both sets with about equal weight; see `docs/evidence/lift.md`.
"""

TIE = 1e-6
"""What the default weights of shared features are multiplied with while the gate is shut."""

RECENT_HALF_LIFE = 10.0
"""Own things, counted from the newest, after which one weighs half in `own_recent`."""
GOES_WITH = 0.05
"""Sum of edges from own things that is worth a word; less is said by nearly any of them."""
PRIOR_SHARE, PRIOR_FLOOR = 0.25, 0.02
"""Smoothing of `log_lift`."""


def features(candidates: Candidates, *, min_contributors: int = 3) -> dict[str, Floats]:
    """What speaks for each candidate, before any weighting.

    A candidate never speaks for itself: where the entity already has it, it is left out of
    the own side. What owners at the `facets` level hold counts only for candidates that at
    least `min_contributors` of them hold, so that no value rests on one of them.

    Args:
        candidates: c candidates, m own things, k neighbours; ids may repeat.
        min_contributors: Owners at the `facets` level that must agree, >= 1.

    Returns:
        Eight finite columns of shape (c,), 0 where nothing is known:
        `own_centroid` cosine with the mean of the own things, in [-1, 1];
        `own_top3` mean cosine with the three most similar own things, in [-1, 1];
        `own_recent` as `own_centroid`, weighted `0.5 ** (place / 10)` from the newest;
        `evidence` `ev(x) = sum of w_v over neighbours that hold x`, w summing to 1, in [0, 1];
        `log_lift` `log((ev + 0.25 p + 0.02) / (1.25 p + 0.02))` with p the share of visible
        owners that hold x; 0 for a candidate nobody holds;
        `popularity` `log(1 + visible holders)`, >= 0;
        `item_edges` sum of the edges into x from own things; below 0 they speak against it;
        `co_holders` how much those who hold own things hold x too, in [0, 1], see `stages.company`.

    Raises:
        InputError: `min_contributors` is below 1.

    Source:
        evidence: user-based neighbourhood model, Herlocker et al., SIGIR 1999. Smoothing and
        half-life: docs/evidence/lift.md.
    """
    if min_contributors < 1:
        raise InputError(f"`min_contributors` is {min_contributors}, it must be at least 1")
    own = _own(candidates)
    size = len(candidates.ids)
    held = countable(
        candidates.neighbor_level, candidates.hold_neighbor, candidates.hold_candidate, size, min_contributors
    )
    evidence = _evidence(candidates, held)
    holders = _holders(candidates, held, min_contributors)
    share = np.minimum(holders / max(candidates.owners_visible, 1), 1.0)
    lift = np.log((evidence + PRIOR_SHARE * share + PRIOR_FLOOR) / ((1.0 + PRIOR_SHARE) * share + PRIOR_FLOOR))
    shared = {
        "evidence": evidence,
        "log_lift": np.where(holders > 0, lift, 0.0),
        "popularity": np.log1p(holders),
        "item_edges": _edges(candidates),
        "co_holders": co_holders(candidates.company, holders, min_contributors),
    }
    return {name: _finite(column) for name, column in {**own, **shared}.items()}


def rank(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Score each candidate: `sum over features of weight * z(feature)`.

    Args:
        columns: Raw features, each of shape (c,). A value that is not finite counts as the
            mean of its column.
        weights: Finite and >= 0; a feature without one, or a weight without its feature, counts 0.

    Returns:
        Shape (c,), finite, higher is better.

    Raises:
        InputError: A weight is negative or not finite, or columns differ in length.
    """
    bad = sorted(name for name, weight in weights.items() if not (np.isfinite(weight) and weight >= 0))
    if bad:
        raise InputError(f"the weights of {', '.join(bad)} must be finite and not negative")
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("the feature columns differ in length")
    size = len(next(iter(columns.values()), ()))
    scores = np.zeros(size)
    for name in sorted(columns):
        scores += weights.get(name, 0.0) * standardise(columns[name])
    return scores


def held_back(own: Mapping[str, float]) -> dict[str, float]:
    """Weights while the gate is shut: the own ones, and neighbours only where own memory sees no difference."""
    shared = {name: TIE * DEFAULT_WEIGHTS[name] for name in SHARED}
    return {**{name: float(own.get(name, 0.0)) for name in OWN}, **shared}


def standardise(columns: Floats) -> Floats:
    """Subtract the mean, divide by the standard deviation over the list; a constant column gives zeros.

    Args:
        columns: Shape (..., c), each list along the last axis. Values that are not finite become 0 in the result.
    """
    known = np.isfinite(columns)
    count = np.maximum(known.sum(axis=-1, keepdims=True), 1)
    values = np.where(known, columns, 0.0)
    scale = np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    values = values / np.where(scale > 0, scale, 1.0)  # squares of very large values would overflow
    centred = np.where(known, values - values.sum(axis=-1, keepdims=True) / count, 0.0)
    spread = np.sqrt(np.square(centred).sum(axis=-1, keepdims=True) / count)
    return np.where(spread > 1e-9, centred / np.where(spread > 1e-9, spread, 1.0), 0.0)


def rationale(raw: Mapping[str, float], *, holders: int) -> str:
    """One sentence that says what the evidence shows, and no more.

    Args:
        raw: One candidate's features.
        holders: Curated neighbours that hold it and may be named, >= 0.
    """
    own = max(raw.get("own_centroid", 0.0), raw.get("own_top3", 0.0))
    said: list[str] = []
    if holders:
        said.append(f"{holders} similar {'owner has' if holders == 1 else 'owners have'} it")
    elif raw.get("evidence", 0.0) > 0:
        said.append("several similar owners have it")
    elif raw.get("co_holders", 0.0) > 0:
        said.append("owners of the same things have it")
    if said and raw.get("log_lift", 0.0) > 0:
        said[0] += ", more than among everybody"
    if own >= 0.1:
        said.append("it is like the entity's own things")
    elif own <= -0.1:
        said.append("it is unlike the entity's own things")
    if raw.get("item_edges", 0.0) >= GOES_WITH:
        said.append("it goes with things the entity has")
    if raw.get("instruction", 0.0) >= 0.1:
        said.append("it fits the instruction")
    return "; ".join(said) or "nothing known speaks for or against it"


def _own(candidates: Candidates) -> dict[str, Floats]:
    vectors, known = _rows(candidates.candidate_vectors, len(candidates.ids))
    own, has = _rows(candidates.own_vectors, len(candidates.own))
    if not known.any() or not has.any():
        return {name: np.zeros(len(candidates.ids)) for name in OWN}
    own, ids = own[has], candidates.own.ids[has]
    cosine = products(on_grid(vectors), on_grid(own))
    itself = candidates.ids[:, None] == ids[None, :]
    recent = 0.5 ** (np.flatnonzero(has) / RECENT_HALF_LIFE)
    columns = (
        _like_mean(cosine, itself, own, np.ones(len(own))),
        _like_top(cosine, itself, 3),
        _like_mean(cosine, itself, own, recent),
    )
    return {name: np.where(known, column, 0.0) for name, column in zip(OWN, columns, strict=True)}


def _rows(view: VectorView, size: int) -> tuple[Vectors, Bools]:
    """Vectors of the entities, zeros where one has none, and who has one."""
    known = view.row >= 0
    if not len(view.matrix):
        return np.zeros((size, 1), np.float32), np.zeros(size, np.bool_)
    picked = view.matrix[np.maximum(view.row, 0)] * known[:, None].astype(np.float32)
    return picked, known & picked.any(axis=1)


def _like_mean(cosine: Floats, itself: Bools, own: Vectors, weight: Floats) -> Floats:
    """Cosine with the weighted mean of the own things, each candidate itself left out.

    `|s - w o|^2 = |s|^2 - 2 w (s . o) + w^2 |o|^2` with s the weighted sum, o the candidate itself.
    """
    things = own.astype(np.float64)
    whole = weight @ things
    less = 2.0 * weight * (things @ whole) - weight**2 * np.einsum("md,md->m", things, things)
    # Not `@`: BLAS rounds a candidate differently depending on which candidates stand beside it.
    length = np.sqrt(np.maximum(whole @ whole - np.einsum("cm,m->c", itself, less), 0.0))
    total = np.einsum("cm,m->c", np.where(itself, 0.0, cosine), weight)
    return np.clip(np.where(length > 1e-6, total / np.maximum(length, 1e-6), 0.0), -1.0, 1.0)


def _like_top(cosine: Floats, itself: Bools, top: int) -> Floats:
    ordered = -np.sort(-np.where(itself, -np.inf, cosine), axis=1)[:, :top]
    counted = np.isfinite(ordered)
    return np.where(counted, ordered, 0.0).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)


def _evidence(candidates: Candidates, counts: Bools) -> Floats:
    pairs = np.unique(np.stack([candidates.hold_candidate[counts], candidates.hold_neighbor[counts]]), axis=1)
    weight = np.maximum(_finite(candidates.neighbor_weight), 0.0)
    total = float(weight.sum())
    share = weight / total if total > 0 else weight
    held = np.bincount(pairs[0], weights=share[pairs[1]], minlength=len(candidates.ids))
    return np.minimum(held.astype(np.float64), 1.0)


def _edges(candidates: Candidates) -> Floats:
    """What the own things say for each candidate; nothing speaks for itself."""
    pairs = candidates.edges
    weight = np.where(candidates.own.ids[pairs.own] == candidates.ids[pairs.candidate], 0.0, _finite(pairs.weight))
    return np.bincount(pairs.candidate, weights=weight, minlength=len(candidates.ids)).astype(np.float64)


def _holders(candidates: Candidates, counts: Bools, min_contributors: int) -> Floats:
    """Holders that may be counted: all visible ones if they are enough, else the curated ones that count."""
    curated = distinct(candidates.hold_neighbor[counts], candidates.hold_candidate[counts], len(candidates.ids))
    visible = np.maximum(_finite(candidates.popularity), 0.0)
    return np.where(visible >= min_contributors, np.maximum(visible, curated), curated)


def _finite(column: Floats) -> Floats:
    return np.where(np.isfinite(column), column, 0.0)


__all__ = ["BESIDE", "DEFAULT_WEIGHTS", "OWN", "SHARED", "features", "held_back", "rank", "rationale", "standardise"]
