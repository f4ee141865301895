"""Other ways to the same neighbours, for comparison within one run.

- `full`: every feature of the whole pool, then the best; it must give the same answer.
- `Dicts`: MemRec's pruner as its released code works, over dicts and lists.
- `in_sql`: one query over the store's own tables.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import exp

import numpy as np
from sqlalchemy import Connection, text

from collab_layer.bench.perf.graphs import Graph
from collab_layer.graph.adjacency import Kind
from collab_layer.stages.curate import permitted
from collab_layer.stages.features import columns
from collab_layer.stages.rules import Scorer
from collab_layer.types.graph import Ids, Neighborhood

K, MIN_OWNERS, MIN_THINGS = 16, 4, 6


def full(hood: Neighborhood, scorer: Scorer) -> Ids:
    """The selection, strongest first, by scoring everybody."""
    pool = permitted(hood)
    score = scorer.score(columns([*scorer.cheap, *scorer.expensive], pool))
    order = np.lexsort((pool.ids if pool.tie is None else pool.tie, -score))
    order = order[score[order] > 0]
    owner = pool.is_owner[order]
    taken = np.zeros(len(order), np.bool_)
    taken[np.flatnonzero(owner)[:MIN_OWNERS]] = True
    taken[np.flatnonzero(~owner)[:MIN_THINGS]] = True
    taken[np.flatnonzero(~taken)[: K - int(taken.sum())]] = True
    return pool.ids[order[taken]]


@dataclass(frozen=True, slots=True)
class Dicts:
    """MemRec's curation: own things by place in the list, co-users by overlap; then the rules as they run.

    Source: MemRec (arXiv 2601.08816): 100 own things, 50 co-users, k = 16, at least 4 and 6.
    """

    held: dict[int, list[int]]
    holders: dict[int, set[int]]

    @classmethod
    def of(cls, graph: Graph) -> Dicts:
        """Index a graph."""
        held: dict[int, list[int]] = {}
        holders: dict[int, set[int]] = {}
        for owner, thing in zip(graph.owner.tolist(), graph.thing.tolist(), strict=True):
            held.setdefault(owner, []).append(thing)
            holders.setdefault(thing, set()).add(owner)
        return cls(held, holders)

    def curate(self, owner: int) -> list[tuple[str, int]]:
        """The neighbours of one owner, strongest first."""
        mine = self.held[owner]
        place = {thing: (at + 1) / len(mine) for at, thing in enumerate(mine)}
        own = sorted(place, key=lambda thing: -place[thing])[:100]
        shared = Counter(other for thing in mine for other in self.holders[thing] if other != owner)
        scored = [(place[thing] * _faded(365 * (1 - place[thing])), "thing", thing) for thing in own]
        scored += [
            (count / len(mine) * (1.8 if count > 3 else 1.0), "owner", other) for other, count in shared.most_common(50)
        ]
        scored.sort(reverse=True)
        best = [row for row in scored if row[1] == "owner"][:MIN_OWNERS]
        best += [row for row in scored if row[1] == "thing"][:MIN_THINGS]
        best += [row for row in scored if row not in best][: K - len(best)]
        return [(kind, id_) for _, kind, id_ in sorted(best, reverse=True)]


def _faded(days: float) -> float:
    return exp(-0.004 * days) if days > 180 else 1.0


_IN_SQL = text("""
WITH own AS (
  SELECT dst AS thing, max(at) AS last FROM edges
  WHERE tenant = :tenant AND src = :focus AND kind = :forth AND valid_to > :now
  GROUP BY dst ORDER BY last DESC LIMIT 50
)
SELECT holder.dst, count(*) AS shared, max(holder.at) AS newest
FROM own JOIN edges AS holder ON holder.tenant = :tenant AND holder.src = own.thing
WHERE holder.kind = :back AND holder.dst <> :focus AND holder.valid_to > :now
GROUP BY holder.dst ORDER BY shared DESC, newest DESC LIMIT 16
""")


def in_sql(connection: Connection, tenant: str, focus: int, now: int) -> list[int]:
    """Owners that share most of the 50 newest things; no grants, no idf, no vectors."""
    given = {"tenant": tenant, "focus": focus, "now": now, "forth": int(Kind.INTERACTED), "back": int(Kind.HELD_BY)}
    return [row[0] for row in connection.execute(_IN_SQL, given)]


__all__ = ["K", "Dicts", "full", "in_sql"]
