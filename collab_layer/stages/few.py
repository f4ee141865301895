"""What an owner of few things is ranked by: weights of its own, and past choices seen as if little had been known.

In:   weights for who holds much and for who holds little; columns of an owner that holds much.
Out:  the weights for who holds n things; the same columns as if only the newest n were there.
Pure: no clock, no I/O, no randomness.

Edges between things are sums over what one holds. A sum of a hundred says which of ten things
comes next; of one or two it is mostly noise, and standardising it within a list hides that. So
the same feature must count differently, and how much is fitted where little is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from collab_layer.types.graph import Neighborhood

CUTS = (1, 3)
"""Newest things that a past choice is seen with, to fit the weights of who holds little."""
HALF, ORDER = 14, 4
"""Things at which both sets of weights count alike, and how sharp the change is."""


def share(held: float) -> float:
    """How much the weights of who holds much count: `n^4 / (n^4 + 14^4)`, in [0, 1], rising with n.

    Source:
        Hill curve; both numbers: docs/evidence/lift.md.
    """
    return held**ORDER / (held**ORDER + HALF**ORDER)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of each feature, finite and >= 0.

    Attributes:
        much: Of who holds much.
        few: Of who holds nothing or little; None: the same for everybody.
    """

    much: Mapping[str, float]
    few: Mapping[str, float] | None = None

    def at(self, held: float) -> dict[str, float]:
        """The weights for an owner that holds so many things, between the two by `share`."""
        if self.few is None:
            return dict(self.much)
        part = share(held)
        names = dict.fromkeys((*self.much, *self.few))
        return {name: part * self.much.get(name, 0.0) + (1.0 - part) * self.few.get(name, 0.0) for name in names}


def newest_around(neighborhood: Neighborhood, count: int) -> Neighborhood:
    """The same pool as if the entity had its newest `count` things only, and the topics that came with them.

    Who holds none of these stays in the pool and shares nothing. Memories keep their vectors.
    """
    own = neighborhood.own
    places = np.flatnonzero(~neighborhood.own_topic)[:count]
    since = int(own.last[places[-1]]) if len(places) else 0
    keep = neighborhood.own_topic & (own.last >= since)
    keep[places] = True
    row = np.cumsum(keep) - 1
    pairs = keep[neighborhood.pair_own]
    return replace(
        neighborhood,
        own=own.take(keep),
        own_topic=neighborhood.own_topic[keep],
        own_idf=neighborhood.own_idf[keep],
        own_degree=int(keep.sum()),
        pair_own=row[neighborhood.pair_own[pairs]].astype(neighborhood.pair_own.dtype),
        pair_candidate=neighborhood.pair_candidate[pairs],
        pair_weight=neighborhood.pair_weight[pairs],
        pair_last=neighborhood.pair_last[pairs],
        own_tie=None if neighborhood.own_tie is None else neighborhood.own_tie[keep],
    )


__all__ = ["CUTS", "HALF", "Weights", "newest_around", "share"]
