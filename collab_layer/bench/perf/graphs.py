"""Seeded graphs with hubs: who interacted with what, and when.

In:   how many edges, a seed.
Out:  columns; the same seed gives the same graph.
Pure: nothing is stored here.

Popularity of things and activity of owners follow power laws, as they do in data of people. The
first thing is the hub: a quarter of all owners hold it, 25,000 at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collab_layer.types.graph import Counts, Ids
from collab_layer.types.time import DAY

OWNERS_PER_EDGE, THINGS_PER_EDGE = 0.1, 0.02
LEAST = 1_000
"""Edges of the smallest graph; a smaller one has not so many different pairs."""
HUB = 25_000
"""Owners that hold the hub, at most."""
ACTIVITY, POPULARITY = 0.5, 0.8
"""Exponents: the share of the r-th of them goes with r to the minus this."""
SPAN = 400 * DAY
START = 1_750_000_000_000_000
"""Time of the first event, microseconds."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Distinct (owner, thing) pairs, e of them, oldest first.

    Attributes:
        owners, things: How many there are.
        owner: In [0, owners), shape (e,).
        thing: In [0, things), shape (e,); 0 is the hub.
        at: Microseconds, shape (e,), ascending, no two the same.
    """

    owners: int
    things: int
    owner: Ids
    thing: Ids
    at: Counts

    def __len__(self) -> int:
        return len(self.owner)

    def activity(self) -> Counts:
        """Things of each owner, shape (owners,)."""
        return np.bincount(self.owner, minlength=self.owners)

    def holding_hub(self, newest: int) -> Ids:
        """Owners that have the hub among their newest so many things."""
        later = self.activity()
        order = np.lexsort((self.at, self.owner))
        first = np.concatenate([[0], np.cumsum(later)[:-1]])
        rank = np.arange(len(order)) - first[self.owner[order]]
        recent = rank >= later[self.owner[order]] - newest
        return self.owner[order][recent & (self.thing[order] == 0)]


def generate(edges: int, seed: int) -> Graph:
    """A graph of `edges` pairs, at least `LEAST`."""
    random = np.random.default_rng(seed)
    owners, things = int(edges * OWNERS_PER_EDGE), int(edges * THINGS_PER_EDGE)
    hub = random.choice(owners, min(HUB, owners // 4), replace=False).astype(np.int64)
    pairs = hub * things
    while len(pairs) < edges:
        short = int((edges - len(pairs)) * 1.2) + 10
        owner = _drawn(random, owners, ACTIVITY, short)
        thing = 1 + _drawn(random, things - 1, POPULARITY, short)
        pairs = np.unique(np.concatenate([pairs, owner * things + thing]))
    kept = random.permutation(pairs[pairs % things != 0])[: edges - len(hub)]
    pairs = random.permutation(np.concatenate([hub * things, kept]))
    at = START + np.sort(random.choice(SPAN // 1_000_000, edges, replace=edges > SPAN // 2_000_000)) * 1_000_000
    return Graph(owners, things, pairs // things, pairs % things, at + np.arange(edges) % 1_000)


def _drawn(random: np.random.Generator, size: int, exponent: float, count: int) -> Ids:
    """Numbers in [0, size), the r-th with a share that goes with (r + 1) ** -exponent."""
    share = np.cumsum((np.arange(size) + 1.0) ** -exponent, dtype=np.float64)
    return np.searchsorted(share, random.random(count) * float(share[-1])).astype(np.int64)


__all__ = ["HUB", "LEAST", "Graph", "generate"]
