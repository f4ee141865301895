"""Vectors about a tenant's mean, as a function of the set of cards and of nothing else.

In:   vectors as stored, a key of each; which of them hold.
Out:  a mean, unit vectors about it, the mean of an owner's; the vectors nearest to a direction.

The mean is taken over the `SAMPLE` cards with the smallest keys. A key is a hash of the card, so that
the sample is as good as drawn at random, the same in every process and in any order of arrival, and
hardly ever changes: one more card among n changes it with probability `SAMPLE / n`. That matters,
since what was made about it is made anew when it does; each when it is next asked for. Vectors are
kept as they are stored and centred when they are asked for: few ever are.
Source: bottom-k sampling, Cohen and Kaplan, PODC 2007.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collab_layer.graph.centroids import Centroids
from collab_layer.graph.codes import Codes
from collab_layer.graph.growing import Growing
from collab_layer.types.graph import Bools, Floats, Ids, Rows, Vectors, VectorView

SAMPLE = 256
"""Cards in the mean: its error, 1/16 of the spread of vectors, moves a cosine by at most 0.004."""
FULL = 16
"""Cards from which on the whole mean is subtracted: one or two are their own mean, and would vanish."""
_AT_ONCE = 4_096
_NOTHING = 1e-9
NEARLY = 1e-4
"""Above what a cosine of float32 may be rounded by."""
RowsOf = Callable[[Ids], tuple[Ids, Ids]]
"""The rows of some entities' cards, of one after another, and how many each has."""


def key_of(vector: bytes, owner: str, at: int) -> int:
    """A card's place in the order in which cards are sampled, 64 bits."""
    return int.from_bytes(hashlib.blake2b(b"%s:%d:%s" % (owner.encode(), at, vector), digest_size=8).digest(), "big")


def tie_of(name: str) -> int:
    """A number that puts names in an order of no meaning, always the same."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1


def widened(stored: NDArray[Any]) -> Vectors:
    """Finite float16 as float32, the same values: numpy converts one by one, this ten times as fast.

    Sign and the other 15 bits are moved to where float32 has them, where they stand for `2**-112` times the value.
    """
    bits = stored.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= np.int32(-0x70002000)
    wide = bits.view(np.float32)
    wide *= np.float32(2.0**112)
    return wide


class Mean:
    """The mean of the cards that hold at one moment."""

    def __init__(self, dim: int) -> None:
        self.vector: Vectors = np.zeros(dim, np.float32)
        self._sample = np.zeros(0, np.uint64)
        self._count = 0
        self._nearness, self._shadow = Growing(np.float32), Growing(np.float32)

    def concerns(self, keys: Collection[int]) -> bool:
        """Whether the mean may be another one after cards with these keys came or went."""
        return self._count <= SAMPLE or any(key <= self._sample[-1] for key in keys)

    def update(self, raw: NDArray[Any], keys: NDArray[Any], held: Bools) -> bool:
        """Take the mean of the rows in `held`; whether it is another one now."""
        rows = np.flatnonzero(held)
        count = len(rows)
        if count > SAMPLE:
            rows = rows[np.argpartition(keys[rows], SAMPLE)[:SAMPLE]]
        sample = np.sort(keys[rows])
        same = np.array_equal(sample, self._sample) and min(count, FULL + 1) == min(self._count, FULL + 1)
        self._sample, self._count = sample, count
        if same:
            return False
        # Sums of float16 are exact in float64, hence the same in any order.
        mean = raw[rows].astype(np.float64).sum(axis=0) / max(len(rows), 1)
        self.vector = (mean * min(1.0, max(count - 1, 0) / FULL)).astype(np.float32)
        self._nearness, self._shadow = Growing(np.float32), Growing(np.float32)
        return True

    def centred(self, vectors: Vectors, have: Bools | None = None) -> Vectors:
        """Unit vectors about the mean; rows without a vector stay zero."""
        out = vectors - self.vector
        norm = np.sqrt(np.add.reduce(out * out, axis=1, keepdims=True))
        norm[norm <= _NOTHING] = np.inf
        out /= norm
        if have is not None and not have.all():
            out[~have] = 0
        return out.astype(np.float32, copy=False)

    def cosines_at_most(self, codes: Codes, vector: Vectors) -> Vectors:
        """At least the cosine of a vector with each one about the mean, shape (c,); up to `NEARLY` it is not positive.

        The products are those of the vector as it is embedded, since that of a short text is nearly empty. What
        float32 rounds is a thousandth of what codes may be off.
        """
        about = vector - self.vector
        length = float(np.linalg.norm(about))
        if length <= _NOTHING:
            return np.zeros(len(codes), np.float32)
        nearness, less = self._distances(codes)
        # `(product - shadow + wrong - about . mean) / length / distance`, in the memory of two columns.
        above, wrong = codes.products(vector), codes.off * float(np.linalg.norm(vector))
        above -= less
        above += wrong
        above -= float(about @ self.vector)
        above *= np.divide(nearness, length, out=wrong)
        np.minimum(above, 1.0, out=above)
        above += NEARLY
        return above

    def _distances(self, codes: Codes) -> tuple[Vectors, Vectors]:
        """One over how far from the mean each vector is at least; what its product with the mean is at least."""
        known = len(self._nearness.view)
        if known < len(codes):
            length, off = float(np.linalg.norm(self.vector)), codes.off[known:].astype(np.float64)
            shadow = codes.products(self.vector, known).astype(np.float64)
            square = codes.square[known:] - 2 * shadow + length**2
            wrong = 2 * length * off + NEARLY * (codes.square[known:] + length**2)
            self._nearness.extend(1.0 / np.sqrt(np.maximum(square - wrong, _NOTHING**2)))
            self._shadow.extend(shadow - off * length)
        return self._nearness.view, self._shadow.view

    def centroids(self, raw: NDArray[Any], rows: Ids, sizes: Ids) -> tuple[Vectors, Bools]:
        """The direction of the mean of each one's rows, centred, of all that have one; and who has.

        None has where they cancel out.

        Args:
            raw: Vectors as stored.
            rows: Of one after another.
            sizes: How many each one has.
        """
        have = sizes > 0
        if not len(rows):
            return np.zeros((0, raw.shape[1]), np.float32), have
        sizes = sizes[have]
        centred = self.centred(widened(raw.take(rows, axis=0))).astype(np.float64)
        means = (np.add.reduceat(centred, np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]).astype(np.float32)
        norm = np.linalg.norm(means, axis=1)
        some = norm >= 1e-9
        have[np.flatnonzero(have)] = some
        return means[some] / norm[some, None], have


class CentredVectors:
    """The vectors of cards by row, and the mean of each entity's; brought up to date when they are asked for."""

    def __init__(self, dim: int) -> None:
        self.mean = Mean(dim)
        self._dim = dim
        self._raw = Growing(np.float16, dim)
        self._key = Growing(np.uint64)
        self._have = Growing(np.bool_)
        self._codes = Codes(dim)
        self._centroids = Centroids(dim)
        self._changed: list[int] = []

    @property
    def raw(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Vectors as they are stored, float16 of shape (c, d), and the key of each."""
        return self._raw.view, self._key.view

    @property
    def have(self) -> Bools:
        """Which cards have a vector, shape (c,)."""
        return self._have.view

    def grow(self, entities: int) -> None:
        """Make room for so many entities."""
        self._centroids.grow(entities)

    def add(self, raw: NDArray[Any], keys: NDArray[Any], have: NDArray[Any]) -> None:
        """Add cards."""
        self._raw.extend(raw)
        self._key.extend(keys)
        self._have.extend(have)
        self._changed += keys.tolist()

    def gone(self, rows: Iterable[int]) -> None:
        """Cards in these rows hold no more."""
        self._changed += [int(self._key.view[row]) for row in rows]

    def settle(self, owners: Collection[int], held: Callable[[], Bools]) -> None:
        """Cards of these owners came or went; `held` tells which hold now."""
        changed, self._changed = self._changed, []
        self._centroids.forget(np.fromiter(owners, np.int64, len(owners)))
        if self.mean.concerns(changed) and self.mean.update(*self.raw, held()):
            self._centroids.forget()

    def of(self, rows: Ids | Rows, mean: Mean | None = None) -> Vectors:
        """The vectors of some cards about a mean, that of the present if none is given; zeros where a card has none."""
        return (mean or self.mean).centred(widened(self._raw.view.take(rows, axis=0)), self._have.view[rows])

    def nearest(
        self, vector: Vectors, among: Bools, count: int, beside: Ids, mean: Mean | None = None
    ) -> tuple[Ids, Floats]:
        """The cards whose cosine with a vector, about the mean, is positive and largest, ties by key; and some others.

        Exact: cards are left out only by what their codes prove.

        Args:
            vector: As it was embedded.
            among: Which cards may be taken, shape (c,).
            count: At most so many.
            beside: Cards that are wanted whatever their cosine is, each once.
            mean: About which; None takes that of the present.

        Returns:
            The rows of all of them, ascending, and the cosine of each, 0 where a card has no vector.
        """
        mean = mean or self.mean
        self._codes.extend(self._raw.view[len(self._codes) :])  # whoever asks nothing has none
        above, direction = mean.cosines_at_most(self._codes, vector), mean.centred(vector[None, :])[0]
        rows, cosine, size = beside, self._cosines(beside, direction, mean), 2 * count
        among = among & self._have.view
        known = among[beside]
        among[beside] = False
        todo = np.flatnonzero(among & (above >= _least(cosine[known], count)))
        while len(todo):
            now, todo = _split(todo, above, size)
            rows, cosine = np.concatenate([rows, now]), np.concatenate([cosine, self._cosines(now, direction, mean)])
            known = np.concatenate([known, np.ones(len(now), np.bool_)])
            todo = todo[above[todo] >= _least(cosine[known], count)]
            size = _AT_ONCE
        found = np.flatnonzero(known & (cosine > 0))
        best = found[np.lexsort((self._key.view[rows[found]], -cosine[found]))[:count]]
        taken = np.arange(len(rows)) < len(beside)
        taken[best] = True
        order = np.flatnonzero(taken)
        order = order[np.argsort(rows[order])]
        return rows[order], cosine[order]

    def _cosines(self, rows: Ids, direction: Vectors, mean: Mean) -> Floats:
        # Not `@`: BLAS rounds a row differently depending on which rows stand beside it.
        return np.einsum("ij,j->i", self.of(rows, mean), direction).astype(np.float64)

    def centroids(self, ids: Ids, rows_of: RowsOf) -> VectorView:
        """The mean memory of each entity."""
        return self._centroids.of(ids, partial(self._means, rows_of))

    def nearest_means(self, ids: Ids, rows_of: RowsOf, vector: Vectors, count: int, floor: float) -> tuple[Ids, Floats]:
        """Which entities may be among those whose mean memory lies nearest, see `Centroids.near`."""
        return self._centroids.near(ids, partial(self._means, rows_of), vector, count, floor)

    def _means(self, rows_of: RowsOf, ids: Ids) -> tuple[Vectors, Bools]:
        return self.mean.centroids(self._raw.view, *rows_of(ids))


def _least(known: Floats, count: int) -> float:
    """What a bound must reach at least so that a card may be among the nearest, where these cosines are known."""
    return max(NEARLY, float(np.partition(known, len(known) - count)[len(known) - count]) if len(known) >= count else 0)


def _split(todo: Ids, above: Vectors, size: int) -> tuple[Ids, Ids]:
    """The `size` of the largest bound, and the others."""
    if len(todo) <= size:
        return todo, todo[:0]
    order = np.argpartition(-above[todo], size)
    return todo[order[:size]], todo[order[size:]]
