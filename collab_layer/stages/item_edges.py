"""Which things go together, from who holds what: the edges between things, made in bulk.

In:   pairs "owner holds thing", and which owners share facets only.
Out:  what all others say for and against each thing; of very many things the few that say most for it.
Pure: no clock, no I/O, no randomness; with scipy or without it the same edges.

Where there are more than `EASE_THINGS` things, each edge needs the counts of its own column only: `spread` may
send ranges of columns elsewhere, and the same function runs there.

Up to `EASE_THINGS` things the weights are those of a linear model in closed form, all of them; above that
the cosines of item-based neighbourhoods. What owners at the `facets` level hold together counts only
where more than `minimum` of them do, so that no edge rests on a few of them, the reader among
them or not; weights are kept with three digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from collab_layer.errors import InputError
from collab_layer.types.graph import Bools, EdgeMatrix, Floats, Ids, ItemEdges

Method = Literal["ease", "knn"]
EASE_THINGS = 4_000
"""Above, a dense inverse costs too much memory and time."""
KNN_TOP = 32
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
) -> ItemEdges | EdgeMatrix:
    """The edges into each thing.

    `ease`: `w(i, j) = -P[i, j] / P[j, j]` with `P = (G + ridge I)^-1` and `G[i, j]` the sum over
    owners that hold both of `min(1, sqrt(median / n))`, n the things an owner holds; all of them.
    `knn`: `w(i, j) = n_ij / sqrt(n_i n_j) * n_ij / (n_ij + 10)`; the 32 largest into each j.

    Args:
        held: Who holds what. Things that one owner alone holds have no edges.
        minimum: At the `facets` level more owners than this must hold both, >= 1.
        method: None takes `ease` up to 4,000 things.
        spread: Where `knn` works its columns out; None is here.
        parts: Ranges of columns that it is given, >= 1.

    Returns:
        `ease`: a matrix. `knn`: edges ordered by thing, the strongest first, ties by the smaller id.

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
        return EdgeMatrix(pairs.things, _ease(pairs, owners), used, owners)
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
        found.append(_strongest(cosine * both / (both + KNN_SHRINK), start))
    to, other, weight = zip(*found, strict=True)
    return np.concatenate(to), np.concatenate(other), np.concatenate(weight)


def _here(call: Callable[[Pairs, range], Strongest], pairs: Pairs, ranges: Sequence[range]) -> Iterator[Strongest]:
    return (call(pairs, columns) for columns in ranges)


def _ranges(columns: int, parts: int) -> list[range]:
    """Ranges of about one size, each of one column at least."""
    ends = np.linspace(0, columns, min(parts, columns) + 1).astype(int).tolist()
    return [range(start, stop) for start, stop in pairwise(ends)]


def _together(pairs: Pairs, columns: range, weight: Floats | None = None) -> Iterator[tuple[int, Floats]]:
    """How many countable owners hold both, or what they weigh: a block of columns at a time, shape (things, <= 64)."""
    plain, distilled = _counter(pairs, ~pairs.facets, weight), _counter(pairs, pairs.facets, None)
    heavy = distilled if weight is None else _counter(pairs, pairs.facets, weight)
    for start in range(columns.start, columns.stop, _BLOCK):
        stop = min(start + _BLOCK, columns.stop)
        yield start, plain(start, stop) + np.where(distilled(start, stop) > pairs.minimum, heavy(start, stop), 0.0)


def _counter(pairs: Pairs, mask: Bools, weight: Floats | None) -> Callable[[int, int], Floats]:
    """Sums the owners of one block of columns, from one up to another."""
    owner, thing, size = pairs.owner[mask], pairs.thing[mask], len(pairs.things)
    each = None if weight is None else weight[owner]
    sparse = _sparse(owner, thing, each, size) if len(owner) else None

    def count(start: int, stop: int) -> Floats:
        if sparse is not None:
            holds, weighs = sparse
            return np.asarray((holds.T @ weighs[:, start:stop]).toarray(), np.float64)
        return _count(owner, thing, each, size, start, stop)

    return count


def _sparse(owner: Ids, thing: Ids, each: Floats | None, size: int) -> tuple[Any, Any] | None:
    """Who holds what, and what it weighs, as matrices of scipy; None without it. Counts below 2**24 are exact."""
    try:
        from scipy.sparse import csc_array  # pyright: ignore
    except ImportError:
        return None
    shape = (int(owner.max()) + 1, size)
    holds: Any = csc_array((np.ones(len(owner), np.float32), (owner, thing)), shape=shape)
    weighs: Any = holds if each is None else csc_array((each, (owner, thing)), shape=shape)
    return holds, weighs


def _count(owner: Ids, thing: Ids, each: Floats | None, size: int, start: int, stop: int) -> Floats:
    """The same without scipy: sum the owners' rows of the block over each thing's holders."""
    out = np.zeros((size, stop - start))
    if not len(owner):
        return out
    inside = (thing >= start) & (thing < stop)
    weighs = np.zeros((int(owner.max()) + 1, stop - start))
    weighs[owner[inside], thing[inside] - start] = 1.0 if each is None else each[inside]
    rows, first = np.unique(thing, return_index=True)
    out[rows] = np.add.reduceat(weighs[owner], first, axis=0)
    return out


def _weights(pairs: Pairs) -> Floats:
    """What each owner weighs: 1, less if it holds more than half of them do; in steps of 1 / 1,024: sums are exact."""
    held = np.bincount(pairs.owner)
    weight = np.minimum(np.sqrt(np.median(held) / np.maximum(held, 1)), 1.0)
    return np.maximum(np.round(weight * 1024.0), 1.0) / 1024.0


def _ease(pairs: Pairs, owners: int) -> NDArray[np.float16]:
    """What every thing says for each, a row per thing."""
    gram = np.concatenate([block for _, block in _together(pairs, range(len(pairs.things)), _weights(pairs))], axis=1)
    ridge = float(np.clip(owners / 2, *RIDGE))
    inverse = np.linalg.inv(_solid(gram, ridge, distilled=bool(pairs.facets.any())))
    out = np.zeros(inverse.shape, np.float16)
    for start in range(0, len(gram), _BLOCK):
        part = inverse[:, start : start + _BLOCK]
        # Three digits, by rounding to half precision: what one owner more or less would show is mostly lost in it.
        out[start : start + _BLOCK] = (-part / np.diagonal(inverse)[start : start + _BLOCK]).T
    np.fill_diagonal(out, 0.0)
    return out


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


def _strongest(weights: Floats, start: int) -> Strongest:
    """Of each column the largest positive ones, not its own: (column, row, weight)."""
    kept = weights.copy()
    columns: Ids = np.arange(kept.shape[1], dtype=np.int64)
    kept[start + columns, columns] = 0.0
    order = np.argsort(-kept, axis=0, kind="stable")[:KNN_TOP].T
    picked = np.take_along_axis(kept.T, order, axis=1).astype(np.float16).astype(np.float64)
    good = picked > 0
    return np.repeat(start + columns, order.shape[1])[good.ravel()], order[good], picked[good]


__all__ = ["Holdings", "Method", "Pairs", "Spread", "Strongest", "item_edges", "knn"]
