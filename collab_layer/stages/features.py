"""What curation knows about each candidate, as bounded numbers.

In:   a `Neighborhood` of n candidates.
Out:  float64 columns of shape (n,), each within its declared [low, high], never NaN.
Pure: vectorised numpy, no loop over candidates. Sums over pairs do not depend on their order.

Owners and own things share the columns. Where a feature speaks of "both hold", a thing
has no such pairs and gets 0, unless its docstring says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from collab_layer.errors import PluginError
from collab_layer.types.graph import Floats, Ids, Neighborhood

DAY_US = 86_400_000_000
MAX_COUNT = 1e6
MAX_DAYS = 36_500.0
_GRID = 2.0**30


class FeatureLike(Protocol):
    """What any feature declares; a plugin's `FeatureSpec` fits."""

    @property
    def name(self) -> str:
        """As written in rules."""
        ...

    @property
    def summary(self) -> str:
        """One line for people."""
        ...

    @property
    def low(self) -> float:
        """Least value."""
        ...

    @property
    def high(self) -> float:
        """Largest value."""
        ...

    @property
    def compute(self) -> Callable[[Neighborhood], Floats]:
        """Values of all candidates, shape (n,)."""
        ...


@dataclass(frozen=True, slots=True)
class Feature:
    """A built-in feature.

    Attributes:
        name: As written in rules.
        summary: One line for people.
        low, high: Bounds of its values; the exact prune relies on them.
        compute: All candidates, shape (n,).
        at: Only the rows given. Set for features worth postponing, which reads vectors.
    """

    name: str
    summary: str
    low: float
    high: float
    compute: Callable[[Neighborhood], Floats]
    at: Callable[[Neighborhood, Ids], Floats] | None = None


def is_expensive(feature: FeatureLike) -> bool:
    """True if the feature can be had for a few rows only, and should."""
    return isinstance(feature, Feature) and feature.at is not None


def column(feature: FeatureLike, neighborhood: Neighborhood, rows: Ids | None = None) -> Floats:
    """One feature's values, shape (n,) or (len(rows),), clipped to its bounds; NaN becomes the lower one.

    Raises:
        PluginError: The feature returned something that is no column of n numbers.
    """
    if rows is not None and isinstance(feature, Feature) and feature.at is not None:
        return _bounded(feature, feature.at(neighborhood, rows), len(rows))
    values = _bounded(feature, feature.compute(neighborhood), len(neighborhood))
    return values if rows is None else values[rows]


def columns(features: Iterable[FeatureLike], neighborhood: Neighborhood, rows: Ids | None = None) -> dict[str, Floats]:
    """Several features by name, see `column`."""
    return {feature.name: column(feature, neighborhood, rows) for feature in features}


def _bounded(feature: FeatureLike, values: Floats, size: int) -> Floats:
    try:
        given = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise PluginError(feature.name, "the feature did not return numbers") from error
    if given.shape != (size,):
        raise PluginError(feature.name, f"the feature returned shape {given.shape}, expected ({size},)")
    return np.minimum(np.fmax(given, feature.low), feature.high)  # of NaN and a number `fmax` takes the number


def _exact(values: Floats) -> Floats:
    # On a grid of 2**-30 sums below 2**23 are exact, hence the same in any order.
    return np.round(values * _GRID) / _GRID


def _ratio(part: Floats, whole: Floats | float) -> Floats:
    """The quotient, 0 where `whole` is 0."""
    positive = np.asarray(whole, np.float64) > 0
    return np.where(positive, part / np.where(positive, whole, 1.0), 0.0)


def _per_candidate(neighborhood: Neighborhood, weights: Floats | None = None) -> Floats:
    """Sum over each candidate's pairs, shape (n,); without weights the number of pairs."""
    sums = np.bincount(neighborhood.pair_candidate, weights=weights, minlength=len(neighborhood))
    return sums.astype(np.float64)


def _of_own_thing(neighborhood: Neighborhood, values: Floats, otherwise: Floats) -> Floats:
    """Value of the own edge for own things, 0 for other things, `otherwise` for owners."""
    things, own = np.flatnonzero(~neighborhood.is_owner), neighborhood.own.ids
    out = otherwise.copy()
    out[things] = 0.0
    if len(own) and len(things):
        ids, order = neighborhood.ids[things], np.argsort(own, kind="stable")
        row = order[np.minimum(np.searchsorted(own, ids, sorter=order), len(own) - 1)]
        mine = own[row] == ids
        out[things[mine]] = values[row[mine]]
    return out


def edge_weight(neighborhood: Neighborhood) -> Floats:
    """How strong the tie to the focus is, in [0, 1].

    Owners: own targets both hold / own targets looked at. Own things:
    `weight / largest own weight * share of own targets that are not newer`.

    Source:
        Ordinal recency and overlap: MemRec (arXiv 2601.08816).
    """
    own = neighborhood.own
    share = _per_candidate(neighborhood) / max(len(own), 1)
    rank = np.searchsorted(np.sort(own.last), own.last, side="right") / max(len(own), 1)
    strength = _ratio(own.weight, float(own.weight.max(initial=0.0))) * rank
    return _of_own_thing(neighborhood, strength, share)


def idf_cosine(neighborhood: Neighborhood) -> Floats:
    """Likeness by shared targets, rare ones counting more, in [0, 1].

    `sum of idf^2 over shared targets / (|own|_idf * sqrt(degree) * rms own idf)`: the
    candidate's own norm is not known here (its other targets were not read) and is
    estimated as if they were as rare as those of the focus.

    Source:
        idf-cosine: Breese, Heckerman and Kadie, UAI 1998 (inverse user frequency).
    """
    squared = _exact(neighborhood.own_idf**2)
    total = float(squared.sum())
    norm = np.sqrt(total * np.maximum(neighborhood.degree, 1) * total / max(len(squared), 1))
    return _ratio(_per_candidate(neighborhood, squared[neighborhood.pair_own]), norm)


def co_interaction_count(neighborhood: Neighborhood) -> Floats:
    """Owners: own targets both hold. Own things: interactions of the focus with it."""
    counts = neighborhood.own.count.astype(np.float64)
    return _of_own_thing(neighborhood, counts, _per_candidate(neighborhood))


def recency_days(neighborhood: Neighborhood) -> Floats:
    """Days since the newest shared interaction of the candidate, else since its last; >= 0."""
    newest = np.full(len(neighborhood), np.iinfo(np.int64).min)
    np.maximum.at(newest, neighborhood.pair_candidate, neighborhood.pair_last)
    paired = _per_candidate(neighborhood) > 0
    last = np.where(paired, newest, neighborhood.last).astype(np.float64)
    return (neighborhood.now - last) / DAY_US


def metadata_overlap(neighborhood: Neighborhood) -> Floats:
    """Share of the own topics that the candidate holds too, weighted by idf, in [0, 1]; 0 without topics."""
    idf = _exact(np.where(neighborhood.own_topic, neighborhood.own_idf, 0.0))
    return _ratio(_per_candidate(neighborhood, idf[neighborhood.pair_own]), float(idf.sum()))


def importance(neighborhood: Neighborhood) -> Floats:
    """How much weight lies on what is shared, `w / (w + 1)`, in [0, 1).

    Owners: w is the mean weight of the shared edges. Own things: the own edge's weight.
    One plain interaction of weight 1 gives 0.5.
    """
    sums = _per_candidate(neighborhood, _exact(np.maximum(neighborhood.pair_weight, 0.0)))
    mean = _ratio(sums, _per_candidate(neighborhood))
    weight = _of_own_thing(neighborhood, np.maximum(neighborhood.own.weight, 0.0), mean)
    return weight / (weight + 1.0)


def memory_similarity(neighborhood: Neighborhood, rows: Ids | None = None) -> Floats:
    """Cosine of the candidate's memories with those of the focus, centred; 0 if unknown."""
    return neighborhood.vectors.dot(neighborhood.focus_vector, slice(None) if rows is None else rows)


def query_similarity(neighborhood: Neighborhood, rows: Ids | None = None) -> Floats:
    """Cosine of the candidate's memories with the query; 0 without a query."""
    return neighborhood.vectors.dot(neighborhood.query_vector, slice(None) if rows is None else rows)


BUILTIN: Mapping[str, Feature] = MappingProxyType(
    {
        feature.name: feature
        for feature in (
            Feature("edge_weight", "strength of the tie to the focus", 0, 1, edge_weight),
            Feature("idf_cosine", "likeness by shared targets, rare ones count more", 0, 1, idf_cosine),
            Feature("co_interaction_count", "shared targets", 0, MAX_COUNT, co_interaction_count),
            Feature("recency_days", "days since the newest shared interaction", 0, MAX_DAYS, recency_days),
            Feature("metadata_overlap", "share of the own topics also held", 0, 1, metadata_overlap),
            Feature(
                "memory_similarity",
                "cosine with the memories of the focus",
                -1,
                1,
                memory_similarity,
                memory_similarity,
            ),
            Feature("query_similarity", "cosine with the query", -1, 1, query_similarity, query_similarity),
            Feature(
                "activity", "distinct targets of the candidate", 0, MAX_COUNT, lambda n: n.degree.astype(np.float64)
            ),
            Feature("peer", "similarity of a semantic peer", -1, 1, lambda n: n.peer),
            Feature("group", "1 for members of a group of the focus", 0, 1, lambda n: n.group.astype(np.float64)),
            Feature("is_owner", "1 for owners, 0 for things", 0, 1, lambda n: n.is_owner.astype(np.float64)),
            Feature("importance", "weight that lies on what is shared", 0, 1, importance),
        )
    }
)
"""The built-in features by name."""

__all__ = ["BUILTIN", "Feature", "FeatureLike", "column", "columns", "is_expensive"]
