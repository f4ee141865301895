"""Earlier choices of a tenant's owners to ranking weights.

load:   for each of some owners, the moment before its newest choice, read as of then;
stages: curate, rank, fit;
save:   the weights, one row.

Nobody reads more than it may: each case is read as its owner, under today's grants.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.flows.context import NEIGHBORS
from collab_layer.flows.rank import set_weights
from collab_layer.flows.tools import Tools
from collab_layer.graph import policy
from collab_layer.graph.adjacency import Kind, pick
from collab_layer.graph.past import PastIndex
from collab_layer.graph.reader import Reading, candidates, neighborhood
from collab_layer.stages import rank as stage
from collab_layer.stages.curate import curate
from collab_layer.stages.fit import Case, fit
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Edges
from collab_layer.types.scope import Scope

LEAST_HISTORY = 5
"""Choices an owner must have made for its newest to be a case."""
NEGATIVES = 9
"""Other things beside the one chosen, those nearest in popularity."""
PAGE = 20
"""Owners read in one snapshot, so that writers are not kept waiting for a log that cannot be folded."""


@dataclass(frozen=True, slots=True)
class _Past:
    """One owner's choices before the newest, and the newest."""

    owner: int
    held: frozenset[int]
    chosen: int
    before: int


async def refit(tools: Tools, scope: Scope, owners: int) -> dict[str, float]:
    """Fit on the newest choice of up to `owners` owners and keep the weights; the defaults if there are too few."""
    pasts, order = await tools.in_thread(_pasts, tools, scope.tenant, owners)
    cases: list[Case] = []
    for start in range(0, len(pasts), PAGE):
        cases += await tools.in_thread(_cases, tools, scope.tenant, pasts[start : start + PAGE], order)
    fitted = await tools.in_thread(fit, cases)
    await tools.in_thread(set_weights, tools, scope.tenant, fitted)
    return fitted


def _pasts(tools: Tools, tenant: str, most: int) -> tuple[list[_Past], list[tuple[int, int]]]:
    """Owners with enough choices, spread evenly over all, and things by how many of them hold each."""
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)
        known = index.owners()
        some = known[np.linspace(0, len(known) - 1, min(most, len(known))).astype(np.int64)] if len(known) else known
        packed = tools.store.adjacency.edges(connection, tenant, some.tolist())
        held = {owner: _things(tools, tenant, pick(packed[owner], Kind.INTERACTED)) for owner in some.tolist()}
    popularity: dict[int, int] = {}
    for mine in held.values():
        for thing in mine.ids.tolist():
            popularity[thing] = popularity.get(thing, 0) + 1
    pasts = [
        _Past(owner, frozenset(mine.ids.tolist()), int(mine.ids[0]), int(mine.last[0]) - 1)
        for owner, mine in held.items()
        if len(mine) >= LEAST_HISTORY
    ]
    return pasts, sorted((count, thing) for thing, count in popularity.items())


def _things(tools: Tools, tenant: str, edges: Edges) -> Edges:
    return edges.take(~tools.store.index(tenant).is_owner(edges.ids))


def _cases(tools: Tools, tenant: str, pasts: Sequence[_Past], order: Sequence[tuple[int, int]]) -> list[Case]:
    index, now = tools.store.index(tenant), tools.now()
    count = {thing: count for count, thing in order}
    out: list[Case] = []
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)
        minimum = policy.sharing(connection, tenant).min_contributors
        for past in pasts:
            others = _like(past, order, count[past.chosen])
            if not others:
                continue
            entity = Entity.parse(index.names[past.owner])
            seen = tools.store.audience(connection, tenant, entity, past.owner, None, now)
            then = PastIndex(index, past.before)
            reading = Reading(connection, tenant, then, tools.store.adjacency, seen, past.before, past.before, minimum)
            chosen = curate(
                neighborhood(reading, past.owner), tools.scorer_of(reading), k=NEIGHBORS, min_things=0, kinds=("owner",)
            )
            laid = candidates(reading, past.owner, np.array([past.chosen, *others], np.int64), chosen)
            out.append(Case(stage.features(laid, min_contributors=minimum), 0))
    return out


def _like(past: _Past, order: Sequence[tuple[int, int]], popularity: int) -> list[int]:
    """Things nearest in popularity to the chosen one that the owner does not hold."""
    right = bisect_left(order, (popularity, past.chosen))
    left = right - 1
    found: list[int] = []
    while len(found) < NEGATIVES and (left >= 0 or right < len(order)):
        near_left = left >= 0 and (right >= len(order) or popularity - order[left][0] <= order[right][0] - popularity)
        thing = order[left][1] if near_left else order[right][1]
        left, right = (left - 1, right) if near_left else (left, right + 1)
        if thing not in past.held:
            found.append(thing)
    return found
