"""The mean memory of each entity: some as vectors, all of them as codes once somebody looks for peers.

In:   ids, and how the means of some entities are made.
Out:  their vectors; those nearest to a direction.

A vector of each owner is what a process would hold most of, and nearly all lie far from whoever asks. So as
vectors only those asked for last are kept, and whoever looks through all reads a byte per number; what
may stand is made as a vector, so that no answer depends on the codes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from collab_layer.graph.codes import Codes
from collab_layer.graph.growing import Growing
from collab_layer.types.graph import Bools, Floats, Ids, Vectors, VectorView

KEPT = 8_192
"""Entities whose vectors are kept; one more, and they are made anew as they are asked for."""
_AT_ONCE = 2_048
Make = Callable[[Ids], tuple[Vectors, Bools]]
"""The means of those of some entities that have one, and which have."""


class Centroids:
    """By dense id; used under the lock of the index."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._row, self._made = Growing(np.int32), Growing(np.bool_)
        self._slot, self._coded = Growing(np.int32), Growing(np.bool_)
        self.forget()

    def grow(self, entities: int) -> None:
        """Make room for so many entities."""
        more = entities - len(self._row.view)
        for growing in (self._row, self._slot):
            growing.extend(np.full(more, -1, np.int32))
        for growing in (self._made, self._coded):
            growing.resize(entities)

    def forget(self, ids: Ids | None = None) -> None:
        """The means of these entities are others now; None means all."""
        if ids is not None:
            self._made.view[ids] = self._coded.view[ids] = False
            return
        self._forget_vectors()
        self._codes = Codes(self._dim)
        self._coded.view[:] = False
        self._slot.view[:] = -1

    def _forget_vectors(self) -> None:
        self._vector = Growing(np.float32, self._dim, KEPT)  # a view handed out before keeps the old ones
        self._made.view[:] = False

    def of(self, ids: Ids, make: Make) -> VectorView:
        """The vectors of some entities."""
        wanted = np.unique(ids[~self._made.view[ids]])
        if len(wanted) and len(self._vector.view) + len(wanted) > KEPT:
            self._forget_vectors()
            wanted = np.unique(ids)
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            means, have = make(part)
            first = len(self._vector.view)
            self._vector.extend(means)
            self._row.view[part] = np.where(have, first + np.cumsum(have) - 1, -1)
            self._made.view[part] = True
        return VectorView(self._vector.view, self._row.view[ids])

    def near(self, ids: Ids, make: Make, vector: Vectors, count: int, floor: float) -> tuple[Ids, Floats]:
        """Places of those entities that may be among the `count` nearest, in no order, and the cosine of each.

        Exact: left out is only what its code proves to lie below `floor`, or behind `count` others.
        """
        self._encode(np.unique(ids[~self._coded.view[ids]]), make)
        slot = self._slot.view[ids]
        at = np.flatnonzero(slot >= 0)
        above = (self._codes.products(vector) + self._codes.off * float(np.linalg.norm(vector)))[slot[at]]
        at, above = at[above >= floor], above[above >= floor]
        found, cosine, size = at[:0], np.zeros(0), 4 * count
        while len(at):
            best = np.argpartition(-above, size)[:size] if len(at) > size else np.arange(len(at))
            exact = self.of(ids[at[best]], make).dot(vector)
            found, cosine = np.concatenate([found, at[best]]), np.concatenate([cosine, exact])
            left = np.ones(len(at), np.bool_)
            left[best] = False
            if len(cosine) >= count:
                left &= above >= np.partition(cosine, len(cosine) - count)[len(cosine) - count]
            at, above, size = at[left], above[left], _AT_ONCE
        return found, cosine

    def _encode(self, wanted: Ids, make: Make) -> None:
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            means, have = make(part)
            slot = self._slot.view[part]
            old, new = have & (slot >= 0), have & (slot < 0)
            for place, mean in zip(slot[old].tolist(), means[old[have]], strict=True):
                self._codes.replace(place, mean)
            self._slot.view[part[new]] = len(self._codes) + np.arange(np.count_nonzero(new))
            self._codes.extend(means[new[have]])
            self._slot.view[part[~have]] = -1
            self._coded.view[part] = True


__all__ = ["KEPT", "Centroids"]
