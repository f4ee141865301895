"""Which things go together, from who holds what: the edges between things, made in bulk.

In:   pairs "owner holds thing", and which owners share facets only.
Out:  for each thing the few others that speak for it, each with a weight > 0.
Pure: no clock, no I/O, no randomness; with scipy or without it the same edges.

Where there are more than `EASE_THINGS` things, each edge needs the counts of its own column only: `spread` may
send ranges of columns elsewhere, and the same function runs there.

Up to `EASE_THINGS` things the weights are those of a linear model in closed form, above that the
cosines of item-based neighbourhoods. What owners at the `facets` level hold together counts only
where more than `minimum` of them do, so that no edge rests on a few of them, the reader among
them or not; weights are kept with three digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from collab_layer.errors import InputError
from collab_layer.types.graph import Bools, Floats, Ids, ItemEdges

Method = Literal["ease", "knn"]
EASE_THINGS = 4_000
"""Above, a dense inverse costs too much memory and time."""
EASE_TOP, KNN_TOP = 128, 32
KNN_SHRINK = 10.0
RIDGE = (10.0, 500.0)
"""Least and most; half the number of owners between."""
_BLOCK = 64
Strongest = tuple[Ids, Ids, Floats]
"""Edges as columns: into which thing, from which, how strong."""
Spread = Callable[[Callable[["Pairs", range], Strongest], "Pairs", Sequence[range]], Iterable[Strongest]]
"""Calls a function with the pairs and each range of columns, wherever; the answers in the order of the ranges."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """Who holds what, p pairs.

    Attributes:
        owner, thing: Ids, shape (p,); a pair that is there twice counts once.
        facets: True where the owner shares facets only, shape (p,).
    """

    owner: Ids
    thing: Ids
    facets: Bools

    def __len__(self) -> int:
        return len(self.owner)


def item_edges(
    held: Holdings,
    *,
    minimum: int = 3,
    method: Method | None = None,
    spread: Spread | None = None,
    parts: int = 1,
) -> ItemEdges:
    """The strongest edges into each thing.

    `ease`: `w(i, j) = -P[i, j] / P[j, j]` with `P = (G + ridge I)^-1`, G the matrix of how many
    owners hold both; the 128 largest positive ones into each j.
    `knn`: `w(i, j) = n_ij / sqrt(n_i n_j) * n_ij / (n_ij + 10)`; the 32 largest into each j.

    Args:
        held: Who holds what. Things that one owner alone holds have no edges.
        minimum: At the `facets` level more owners than this must hold both, >= 1.
        method: None takes `ease` up to 4,000 things.
        spread: Where `knn` works its columns out; None is here.
        parts: Ranges of columns that it is given, >= 1.

    Returns:
        Edges ordered by thing, the strongest first, ties by the smaller id.

    Raises:
        InputError: `minimum` is below 1.

    Source:
        EASE: Steck, WWW 2019. Item-based neighbourhoods: Sarwar et al., WWW 2001; shrinkage
        n / (n + b): Bell and Koren, ICDM 2007. Defaults: docs/evidence/lift.md.
    """
    if minimum < 1:
        raise InputError(f"`minimum` is {minimum}, it must be at least 1")
    pairs = _pairs(held, minimum)
    used: Method = method or ("ease" if len(pairs.things) <= EASE_THINGS else "knn")
    if not len(pairs.things):
        return ItemEdges.empty(used)
    owners = len(np.unique(pairs.owner))
    if used == "ease":
        found = [_strongest(weights, start, EASE_TOP) for start, weights in _ease(pairs, owners)]
    else:
        found = list((spread or _here)(knn, pairs, _ranges(len(pairs.things), parts)))
    to: Ids = np.concatenate([part[0] for part in found])
    other: Ids = np.concatenate([part[1] for part in found])
    weight: Floats = np.concatenate([part[2] for part in found])
    return ItemEdges(pairs.things[to], pairs.things[other], weight, used, owners)


@dataclass(frozen=True, slots=True)
class Pairs:
    """The same as rows, sorted by thing: `thing` into `things`, `owner` counted from 0."""

    things: Ids
    owner: Ids
    thing: Ids
    facets: Bools
    minimum: int


def _pairs(held: Holdings, minimum: int) -> Pairs:
    """Distinct pairs of the things that enough owners hold to be counted at all."""
    if not len(held):
        return Pairs(held.thing, held.owner, held.thing, held.facets, minimum)
    _, first = np.unique(np.stack([held.thing, held.owner]), axis=1, return_index=True)
    owner, thing, facets = held.owner[first], held.thing[first], held.facets[first]
    things, row = np.unique(thing, return_inverse=True)
    distilled = np.bincount(row[facets], minlength=len(things))
    count = np.bincount(row[~facets], minlength=len(things)) + np.where(distilled > minimum, distilled, 0)
    keep = (count >= 2)[row]
    things, row = np.unique(thing[keep], return_inverse=True)
    owner = np.unique(owner[keep], return_inverse=True)[1]
    order = np.lexsort((owner, row))
    return Pairs(things, owner[order], row[order], facets[keep][order], minimum)


def knn(pairs: Pairs, columns: range) -> Strongest:
    """The edges into the things of one range of columns, by cosines."""
    distilled = np.bincount(pairs.thing[pairs.facets], minlength=len(pairs.things))
    count = np.bincount(pairs.thing[~pairs.facets], minlength=len(pairs.things))
    norm = np.sqrt(count + np.where(distilled > pairs.minimum, distilled, 0))
    found: list[Strongest] = []
    for start, both in _together(pairs, columns):
        cosine = both / np.outer(norm, norm[start : start + both.shape[1]])
        found.append(_strongest(cosine * both / (both + KNN_SHRINK), start, KNN_TOP))
    to, other, weight = zip(*found, strict=True)
    return np.concatenate(to), np.concatenate(other), np.concatenate(weight)


def _here(call: Callable[[Pairs, range], Strongest], pairs: Pairs, ranges: Sequence[range]) -> Iterator[Strongest]:
    return (call(pairs, columns) for columns in ranges)


def _ranges(columns: int, parts: int) -> list[range]:
    """Ranges of about one size, each of one column at least."""
    ends = np.linspace(0, columns, min(parts, columns) + 1).astype(int).tolist()
    return [range(start, stop) for start, stop in pairwise(ends)]


def _together(pairs: Pairs, columns: range) -> Iterator[tuple[int, Floats]]:
    """How many countable owners hold both: a block of columns at a time, shape (things, at most 64)."""
    plain, distilled = (_counter(pairs, ~pairs.facets), _counter(pairs, pairs.facets))
    for start in range(columns.start, columns.stop, _BLOCK):
        stop = min(start + _BLOCK, columns.stop)
        few = distilled(start, stop)
        yield start, plain(start, stop) + np.where(few > pairs.minimum, few, 0.0)


def _counter(pairs: Pairs, mask: Bools) -> Callable[[int, int], Floats]:
    """Counts one block of columns, from one up to another."""
    owner, thing, size = pairs.owner[mask], pairs.thing[mask], len(pairs.things)
    sparse = _sparse(owner, thing, size) if len(owner) else None

    def count(start: int, stop: int) -> Floats:
        if sparse is not None:
            return (sparse.T @ sparse[:, start:stop]).toarray().astype(np.float64)
        return _count(owner, thing, size, start, stop)

    return count


def _sparse(owner: Ids, thing: Ids, size: int) -> Any:
    """Who holds what as a matrix of scipy; None without scipy. Sums of ones below 2**24 are exact in float32."""
    try:
        from scipy.sparse import csc_array  # pyright: ignore
    except ImportError:
        return None
    made: Any = csc_array((np.ones(len(owner), np.float32), (owner, thing)), shape=(int(owner.max()) + 1, size))
    return made


def _count(owner: Ids, thing: Ids, size: int, start: int, stop: int) -> Floats:
    """The same without scipy: sum the owners' rows of the block over each thing's holders."""
    out = np.zeros((size, stop - start))
    if not len(owner):
        return out
    inside = (thing >= start) & (thing < stop)
    holds = np.zeros((int(owner.max()) + 1, stop - start), np.float32)
    holds[owner[inside], thing[inside] - start] = 1.0
    rows, first = np.unique(thing, return_index=True)
    out[rows] = np.add.reduceat(holds[owner], first, axis=0)
    return out


def _ease(pairs: Pairs, owners: int) -> Iterator[tuple[int, Floats]]:
    gram = np.concatenate([block for _, block in _together(pairs, range(len(pairs.things)))], axis=1)
    ridge = float(np.clip(owners / 2, *RIDGE))
    inverse = np.linalg.inv(_solid(gram, ridge, distilled=bool(pairs.facets.any())))
    for start in range(0, len(gram), _BLOCK):
        part = inverse[:, start : start + _BLOCK]
        yield start, -part / np.diagonal(inverse)[start : start + _BLOCK]


def _solid(gram: Floats, ridge: float, *, distilled: bool) -> Floats:
    """The matrix with its ridge; counts left out can make it indefinite, then the ridge is doubled."""
    eye = np.eye(len(gram))
    while distilled:
        try:
            np.linalg.cholesky(gram + ridge * eye)
        except np.linalg.LinAlgError:
            ridge *= 2.0
        else:
            break
    return gram + ridge * eye


def _strongest(weights: Floats, start: int, top: int) -> Strongest:
    """Of each column the largest positive ones, not its own: (column, row, weight)."""
    kept = weights.copy()
    columns: Ids = np.arange(kept.shape[1], dtype=np.int64)
    kept[start + columns, columns] = 0.0
    order = np.argsort(-kept, axis=0, kind="stable")[:top].T
    # Three digits, by rounding to half precision: what one owner more or less would show is mostly lost in it.
    picked = np.take_along_axis(kept.T, order, axis=1).astype(np.float16).astype(np.float64)
    good = picked > 0
    return np.repeat(start + columns, order.shape[1])[good.ravel()], order[good], picked[good]


__all__ = ["Holdings", "Method", "Pairs", "Spread", "Strongest", "item_edges", "knn"]
