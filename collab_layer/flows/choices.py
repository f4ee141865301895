"""Past choices of a tenant's owners as cases to fit and to judge on.

In:   owners; for each the moment before a choice, read as of then.
Out:  `Case`s: the raw features of the thing chosen, first, and of nine others of like popularity.

Nobody reads more than it may: each case is read as its owner, under today's grants. Nor does any
case know what came later: edges between things are made anew for each quarter of the cases, of
what had happened before the first of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from collab_layer.flows.beside import beside
from collab_layer.flows.context import NEIGHBORS
from collab_layer.flows.rebuild import shared
from collab_layer.flows.tools import Tools
from collab_layer.graph import policy
from collab_layer.graph.adjacency import Kind, pick
from collab_layer.graph.past import PastIndex
from collab_layer.graph.reader import Reading, neighborhood
from collab_layer.graph.wanted import Wanted, wanted
from collab_layer.stages import rank as stage
from collab_layer.stages.curate import curate
from collab_layer.stages.few import newest_around
from collab_layer.stages.fit import Case
from collab_layer.stages.item_edges import item_edges
from collab_layer.types.entity import Entity
from collab_layer.types.graph import EdgeMatrix, Edges, ItemEdges, Neighborhood

LEAST_HISTORY = 5
"""Choices an owner must have made for its newest to be a case."""
NEGATIVES = 9
"""Other things beside the one chosen, those nearest in popularity."""
BLOCKS = 4
"""Parts of the cases, by time, that edges between things are made for anew."""
PAGE = 4
"""Cases read in one snapshot and under the index's lock: readers and writers are not kept waiting."""


@dataclass(frozen=True, slots=True)
class Past:
    """One choice of one owner, and the moment before it."""

    owner: int
    held: frozenset[int]
    chosen: int
    before: int


@dataclass(frozen=True, slots=True)
class Seen:
    """One choice as a case to fit and to judge on.

    Attributes:
        whole: With everything its owner held.
        held: How many things that was.
        cut: As if it had held its newest few only, for each number asked for that is smaller.
    """

    whole: Case
    held: int
    cut: Sequence[Case] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """Past choices, and things by how many owners hold each."""

    pasts: list[Past]
    order: list[tuple[int, int]]


async def choices(tools: Tools, tenant: str, owners: int, *, of: int | None = None, each: int = 1) -> Choices:
    """The newest choices of up to `owners` owners, spread evenly over all, or of one.

    Args:
        tools: The layer's parts.
        tenant: Whose.
        owners: How many to take; popularity is counted over them.
        of: The one whose choices are wanted; None is all of them.
        each: Choices of each owner.
    """
    return await tools.in_thread(_choices, tools, tenant, owners, of, each)


async def cases(tools: Tools, tenant: str, found: Choices, cuts: Sequence[int] = ()) -> list[Seen]:
    """Read each choice as of the moment before it, the earliest first.

    Args:
        tools: The layer's parts.
        tenant: Whose.
        found: Of `choices`.
        cuts: Numbers of newest things that the owners are also seen with, as if they held no others.
    """
    pasts = sorted(found.pasts, key=lambda past: (past.before, past.owner))
    out: list[Seen] = []
    size = -(-len(pasts) // BLOCKS)
    for begin in range(0, len(pasts), max(size, 1)):
        block = pasts[begin : begin + size]
        edges = await tools.in_thread(_edges, tools, tenant, block[0].before)
        for start in range(0, len(block), PAGE):
            part = block[start : start + PAGE]
            out += await tools.in_thread(_cases, tools, tenant, part, found.order, edges, cuts)
    return out


def _edges(tools: Tools, tenant: str, before: int) -> ItemEdges | EdgeMatrix:
    """Edges between things as they would have been made at a moment, under today's grants."""
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection:
        of = shared(tools, connection, index, before)
    return item_edges(of.held, minimum=of.minimum)


def _choices(tools: Tools, tenant: str, owners: int, of: int | None, each: int) -> Choices:
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)
        known = index.owners()
        counted = index.degree(known)  # 0 where it never was
        known = known[(counted >= LEAST_HISTORY) | (counted == 0)]  # the others would be drawn in vain
        some = known[np.linspace(0, len(known) - 1, min(owners, len(known))).astype(np.int64)] if len(known) else known
        read = some if of is None else np.union1d(some, [of])
        packed = tools.store.adjacency.edges(connection, tenant, read.tolist())
        held = {owner: _things(tools, tenant, pick(packed[owner], Kind.INTERACTED)) for owner in read.tolist()}
    popularity: dict[int, int] = {}
    for mine in held.values():
        for thing in mine.ids.tolist():
            popularity[thing] = popularity.get(thing, 0) + 1
    pasts = [
        Past(owner, frozenset(mine.ids.tolist()), int(mine.ids[at]), int(mine.last[at]) - 1)
        for owner, mine in held.items()
        if of in (None, owner)
        for at in range(min(each, len(mine) - LEAST_HISTORY + 1))
    ]
    return Choices(pasts, sorted((count, thing) for thing, count in popularity.items()))


def _things(tools: Tools, tenant: str, edges: Edges) -> Edges:
    return edges.take(~tools.store.index(tenant).is_owner(edges.ids))


def _cases(
    tools: Tools,
    tenant: str,
    pasts: Sequence[Past],
    order: Sequence[tuple[int, int]],
    edges: ItemEdges | EdgeMatrix,
    cuts: Sequence[int],
) -> list[Seen]:
    index, now = tools.store.index(tenant), tools.now()
    count = {thing: count for count, thing in order}
    out: list[Seen] = []
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)
        minimum = policy.sharing(connection, tenant).min_contributors
        for past in pasts:
            others = _like(past, order, count[past.chosen])
            if not others or not index.named(past.owner):  # erased since the choices were read
                continue
            entity = Entity.parse(index.names[past.owner])
            seen = tools.store.audience(connection, tenant, entity, past.owner, None, now)
            then = PastIndex(index, past.before)
            reading = Reading(connection, tenant, then, tools.store.adjacency, seen, past.before, past.before, minimum)
            hood = neighborhood(reading, past.owner)
            read = wanted(reading, past.owner, np.array([past.chosen, *others], np.int64))

            def case(hood: Neighborhood, read: Wanted, reading: Reading = reading) -> Case:
                chosen = curate(hood, tools.scorer_of(reading), k=NEIGHBORS, min_things=0, kinds=("owner",))
                laid = beside(read, hood, chosen)
                laid = replace(laid, edges=edges.into(laid.ids, laid.own.ids))
                return Case(stage.features(laid, min_contributors=minimum), 0)

            held = len(read.own)
            fewer = [case(newest_around(hood, cut), read.newest(cut)) for cut in cuts if cut < held]
            out.append(Seen(case(hood, read), held, fewer))
    return out


def _like(past: Past, order: Sequence[tuple[int, int]], popularity: int) -> list[int]:
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


__all__ = ["Choices", "Past", "Seen", "cases", "choices"]
