"""Everybody's memories in one pool: what sharing ranks like when nobody curates it.

In:   item texts as vectors; who holds what so far.
Out:  by name, a score per item for one user.
Pure. The pool forgets whose memory it is: that is the point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collab_layer.bench.phases import Clock, unclocked
from collab_layer.types.graph import Counts, Floats, Ids, Vectors

NAMES = ("naive_pool", "naive_search")
FOUND = 16
"""Memories that a search of the pool brings; copies of a thing count as often as it is held."""


class Pool:
    """All memories of all users.

    Args:
        items: Ids, ascending, shape (i,).
        vectors: Of their texts, shape (i, d); their mean is taken off here.
    """

    def __init__(self, items: Sequence[int], vectors: Vectors) -> None:
        self._place = {item: at for at, item in enumerate(items)}
        centred = vectors.astype(np.float64) - vectors.mean(axis=0)
        self._vectors: Floats = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
        self._count: Counts = np.zeros(len(items), np.int64)
        self._sum: Floats = np.zeros(vectors.shape[1])

    def add(self, item: int) -> None:
        """Somebody came to hold an item."""
        at = self._place[item]
        self._count[at] += 1
        self._sum += self._vectors[at]

    def scores(self, held: Sequence[int], items: Sequence[int], clock: Clock = unclocked) -> Mapping[str, Floats]:
        """Cosine of some items with what a user is shown, shape (n,) each.

        `naive_pool`: with the mean of the user's own memories and of everybody's, all in one.
        `naive_search`: with the mean of the user's own memories and of the 16 that a search of the
        pool for them finds.
        """
        own: Ids = np.array([self._place[item] for item in held], np.int64)
        wanted = self._vectors[[self._place[item] for item in items]]
        mine: Floats = self._vectors[own].sum(axis=0)
        out: dict[str, Floats] = {}
        with clock("naive_pool"):
            out["naive_pool"] = wanted @ _unit(mine + self._sum)
        with clock("naive_search"):
            out["naive_search"] = wanted @ _unit(mine + self._nearest(mine))
        return out

    def _nearest(self, mine: Floats) -> Floats:
        """The sum of the `FOUND` memories of the pool that are nearest; one per holder."""
        order = np.argsort(-(self._vectors @ mine), kind="stable")
        copies = np.minimum(self._count[order], FOUND)
        copies = np.clip(FOUND - (np.cumsum(copies) - copies), 0, copies)
        return copies.astype(np.float64) @ self._vectors[order]


def _unit(vector: Floats) -> Floats:
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


__all__ = ["FOUND", "NAMES", "Pool"]
