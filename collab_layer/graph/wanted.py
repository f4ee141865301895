"""What ranking looks at for one reader: the candidates and who may be seen to hold them.

In:   a `Reading`, an entity, candidates; then whom curation chose.
Out:  `Candidates`, cut to the audience before anything is counted.

Read once; which of the holders count as neighbours is decided afterwards, as often as it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collab_layer.graph.adjacency import Kind
from collab_layer.graph.reader import Reading, join
from collab_layer.types.graph import (
    Bools,
    Candidates,
    Company,
    Edges,
    Floats,
    Ids,
    Neighborhood,
    Rows,
    Selection,
    VectorView,
    places_in,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """c candidates, and their q visible holders.

    Attributes:
        ids: Candidates, shape (c,).
        own: The entity's own targets, newest first.
        own_vectors, candidate_vectors: Views into the things' vectors.
        holders: One visible holder each, the entity itself included, shape (q,).
        row: Which candidate it holds, shape (q,).
        popularity, owners_visible: As in `Candidates`.
    """

    ids: Ids
    own: Edges
    own_vectors: VectorView
    candidate_vectors: VectorView
    holders: Edges
    row: Ids
    popularity: Floats
    owners_visible: int

    def newest(self, count: int) -> Wanted:
        """The same as if the entity had its newest `count` targets only."""
        own = self.own.take(slice(count))
        return replace(self, own=own, own_vectors=self.own_vectors.take(np.arange(len(own))))

    def beside(self, selection: Selection, company: Company) -> Candidates:
        """The same, with whom curation chose as neighbours, and who else holds own things."""
        neighbors = selection.ids[selection.is_owner]
        weight = selection.scores[selection.is_owner]
        total = float(weight.sum())
        owner, held = self._held_by(neighbors)
        return Candidates(
            ids=self.ids,
            own=self.own,
            own_vectors=self.own_vectors,
            candidate_vectors=self.candidate_vectors,
            neighbors=neighbors,
            neighbor_weight=weight / total if total > 0 else weight,
            neighbor_level=selection.level[selection.is_owner],
            hold_neighbor=owner,
            hold_candidate=self.row[held].astype(np.int32),
            hold_weight=self.holders.weight[held],
            popularity=self.popularity,
            owners_visible=self.owners_visible,
            company=company,
        )

    def company(self, pool: Neighborhood, weight: Floats) -> Company:
        """Which candidates the owners of a pool hold, each of whom has its weight."""
        owner, held = self._held_by(pool.ids)
        return Company(weight, pool.level, owner, self.row[held].astype(np.int32))

    def _held_by(self, owners: Ids) -> tuple[Rows, Bools]:
        """Of the pairs of holder and candidate those of some owners, and which of the owners each is."""
        order = np.argsort(owners)
        at, held = places_in(owners[order], self.holders.ids)
        return order[at[held]].astype(np.int32), held


def wanted(reading: Reading, focus: int, ids: Ids) -> Wanted:
    """Everything ranking looks at but whom curation chose."""
    own = reading.edges([focus])[focus].pick(Kind.INTERACTED)
    around = reading.edges(ids.tolist())
    parts = [around[thing].pick(Kind.HELD_BY) for thing in ids.tolist()]
    row = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    holders = join(parts)
    seen = reading.visible(holders.ids)
    row, holders = row[seen], holders.take(seen)
    others = holders.ids != focus
    return Wanted(
        ids=ids,
        own=own,
        own_vectors=reading.memory_of(own.ids),
        candidate_vectors=reading.memory_of(ids),
        holders=holders,
        row=row,
        popularity=reading.counted_each(holders.ids[others], row[others], len(ids)),
        owners_visible=reading.owners_visible(),
    )


__all__ = ["Wanted", "wanted"]
