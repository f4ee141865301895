"""Candidates beside those who speak for them: whom curation chose, and everybody who holds own things.

In:   what was read of the candidates, the pool, whom curation chose of it.
Out:  `Candidates` to rank, but for edges between things.
"""

from __future__ import annotations

from collab_layer.graph.wanted import Wanted
from collab_layer.stages.company import weights
from collab_layer.stages.curate import permitted
from collab_layer.types.graph import Candidates, Neighborhood, Selection


def beside(read: Wanted, pool: Neighborhood, chosen: Selection) -> Candidates:
    """The candidates with all that other owners say of them."""
    owners = permitted(pool, ("owner",))
    return read.beside(chosen, read.company(owners, weights(owners)))


__all__ = ["beside"]
