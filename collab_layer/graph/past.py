"""A tenant's index as it was at a moment: what was told of by then, and held then.

In:   the index of the present, a moment.
Out:  the same views, each as a fresh index of the events up to that moment would give it.

Made for one read and cheap to make. Sharing the present
index's arrays, it is used under its lock. What was erased since is in neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from collab_layer.graph.centring import Mean
from collab_layer.graph.index import CardColumns, TenantIndex
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Bools, Floats, Ids, Rows, Vectors, VectorView


class PastIndex(TenantIndex):
    """The views of `TenantIndex` as of a moment; it is never refreshed."""

    def __init__(self, present: TenantIndex, at: int) -> None:
        self.__dict__.update(present.__dict__)
        self.moment, self._cards = at, None
        column = self._columns
        held = (column["at"].view <= at) & (column["valid_to"].view > at)
        self._mean = Mean(self.dim)
        self._mean.update(*self._vectors.raw, held & self._current.view & self._vectors.have)

    @property
    def known(self) -> Mapping[str, Entity]:
        """Things and topics that some event had named."""
        return self.known_names.by(self.moment)

    @property
    def cards(self) -> CardColumns:
        """Columns of every card; `alive` are those that held."""
        if self._cards is None:
            every = self.all_cards
            held = every.alive & (every.at <= self.moment) & (every.valid_to > self.moment)
            self._cards = replace(every, alive=held)
        return self._cards

    def centred(self, vectors: Vectors, have: Bools | None = None) -> Vectors:
        """Unit vectors about the mean of then; rows without a vector stay zero."""
        return self._mean.centred(vectors, have)

    def vectors(self, rows: Ids | Rows) -> Vectors:
        """The centred vectors of some cards."""
        return self._vectors.of(rows, self._mean)

    def nearest(self, vector: Vectors, among: Bools, count: int, beside: Ids) -> tuple[Ids, Floats]:
        """Rows and cosines of the cards nearest to a vector as it was embedded."""
        return self._vectors.nearest(vector, among, count, beside, self._mean)

    def centroids(self, ids: Ids) -> VectorView:
        """The mean memory of each entity."""
        raw, _ = self._vectors.raw
        means, have = self._mean.centroids(raw, *self._rows_of(ids))
        return VectorView(means, np.where(have, np.cumsum(have) - 1, -1).astype(np.int32))

    def nearest_means(self, ids: Ids, vector: Vectors, count: int, floor: float) -> tuple[Ids, Floats]:
        """All of them: the past is read seldom, and codes of it would be kept for nobody."""
        return np.arange(len(ids)), self.centroids(ids).dot(vector)

    def _hold(self, rows: Ids) -> Bools:
        """Which of these cards, none of them dead, have a vector and held."""
        begin, end = self._columns["at"].view[rows], self._columns["valid_to"].view[rows]
        return self._vectors.have[rows] & (begin <= self.moment) & (self.moment < end)

    def met(self, ids: Ids) -> Bools:
        """Which of the entities some event had named."""
        return self.since(ids) <= self.moment

    def owners_met(self) -> Bools:
        """Which of all entities are owners that some event had named."""
        return self._is_owner.view & (self._since.view <= self.moment)

    def named(self, id_: int) -> bool:
        """Whether a dense id has a name, and had one."""
        return super().named(id_) and bool(self.met(np.array([id_]))[0])

    def owners(self) -> Ids:
        """Every owner that some event had named."""
        known = super().owners()
        return known[self.met(known)]
