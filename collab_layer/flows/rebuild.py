"""Who holds what to edges between things, for the whole tenant.

load:   every holding of the owners that everybody in the tenant may read (`governance.commons`);
stages: `item_edges`;
save:   all edges in one transaction, unless something was erased meanwhile.

An owner that lets only some read it moves no edge, whoever reads: an edge is made once, and each
of its readers could have read each owner behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sqlalchemy import Connection

from collab_layer.errors import StoreConflictError
from collab_layer.flows.tools import Tools
from collab_layer.governance.commons import commons
from collab_layer.graph import item_edges as stored
from collab_layer.graph import policy, upkeep
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.item_edges import Made
from collab_layer.stages.item_edges import Holdings, Spread, item_edges
from collab_layer.types.graph import EdgeMatrix, Ids, ItemEdges, Levels
from collab_layer.types.lift import Rebuilt
from collab_layer.types.scope import Level

TRIES = 3
PARTS = 4
"""Ranges of columns for each worker elsewhere: some are dearer than others."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What edges may be made of, and until when.

    Attributes:
        held: With all aliases of one principal as one owner.
        owners, levels: Whom it rests on, each alias for itself, as pairs.
        minimum: The tenant's `min_contributors`.
        until: When the first grant ends that it rests on.
    """

    held: Holdings
    owners: Ids
    levels: Levels
    minimum: int
    until: int


@dataclass(frozen=True, slots=True)
class Away:
    """Who does the counting elsewhere, and with how many workers; it is opened for this one time."""

    open: Callable[[int], AbstractContextManager[Spread]]
    workers: int


async def rebuild(tools: Tools, tenant: str, away: Away | None = None) -> Rebuilt:
    """Make the tenant's edges between things anew, here or away.

    Raises:
        StoreConflictError: Something was erased each time they were ready.
    """
    return await tools.in_thread(_rebuild, tools, tenant, away)


def shared(tools: Tools, connection: Connection, index: TenantIndex, as_of: int | None) -> Shared:
    """Holdings that may move edges, under today's grants: at the present, or as they were.

    Args:
        tools: The layer's parts.
        connection: One snapshot.
        index: The tenant's; its lock is taken for a moment only, since every read waits for it.
        as_of: A moment; None is the present.
    """
    now = tools.now()
    open_to_all = commons(policy.rows(connection, index.tenant, now), now)
    owner, thing = stored.holdings(connection, index.tenant, as_of, now)
    with index.lock:
        index.refresh(connection, now)
        is_owner, is_thing, party = index.is_owner(owner), ~index.is_owner(thing), index.party(owner)
    level = open_to_all.levels(owner, is_owner)
    keep = (level > Level.NONE) & is_thing
    owners, levels = owner[keep], level[keep]
    held = Holdings(party[keep], thing[keep], levels == Level.FACETS)
    least = policy.strictest_minimum(connection, index.tenant, now)
    return Shared(held, owners, levels, least, open_to_all.until)


def _rebuild(tools: Tools, tenant: str, away: Away | None) -> Rebuilt:
    begun = perf_counter()
    if away is None:
        found = _settled(tools, tenant, None, 1)
    else:
        with away.open(away.workers) as spread:
            found = _settled(tools, tenant, spread, PARTS * away.workers)
    edges = len(found)
    facts = {"edges": edges, "things": len(found.things) if edges else 0, "owners": found.owners}
    facts |= {"method": found.method if edges else "none", "seconds": perf_counter() - begun}
    return Rebuilt.model_validate(facts)


def _settled(tools: Tools, tenant: str, spread: Spread | None, parts: int) -> ItemEdges | EdgeMatrix:
    for _ in range(TRIES):
        found = _once(tools, tenant, spread, parts)
        if found is not None:
            return found
    raise StoreConflictError(str(tools.store.database.label), "something was erased meanwhile; rebuild again")


def _once(tools: Tools, tenant: str, spread: Spread | None, parts: int) -> ItemEdges | EdgeMatrix | None:
    """One try; None if something was erased between reading and writing."""
    index, now = tools.store.index(tenant), tools.now()
    with tools.store.database.read() as connection:
        of = shared(tools, connection, index, None)
        fence = upkeep.fence(connection, tenant)
    # Who holds what is counted by principal; what the edges rest on is kept by owner, as grants are.
    found = item_edges(of.held, minimum=of.minimum, spread=spread, parts=parts)
    whole = isinstance(found, EdgeMatrix)
    made = Made(now, *fence, of.until, of.minimum, found.owners, len(found.things), found.method, whole)
    behind, first = np.unique(of.owners, return_index=True)
    with tools.store.database.write() as connection:
        return found if stored.save(connection, tenant, made, found, behind, of.levels[first]) else None


__all__ = ["Away", "Shared", "rebuild", "shared"]
