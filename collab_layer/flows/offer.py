"""What the context of an entity says, queued for the stores that take derived items.

In:   what `context` answered.
Out:  deliveries: pending for what is said, retracting for facets that are said no more. Updates
      stay until they end by themselves. `deliver` sends them, and takes back what is erased or
      no longer allowed, whichever way it was queued.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlalchemy import Connection, select, update

from collab_layer.errors import UnknownIdError
from collab_layer.flows.cache import Cache
from collab_layer.flows.context import Request, context
from collab_layer.flows.deliver import PARKED, deliver
from collab_layer.flows.tools import Tools
from collab_layer.graph import derived
from collab_layer.graph.derived import COPY, Item, item_id
from collab_layer.graph.engine import upsert
from collab_layer.graph.names import find, salt
from collab_layer.graph.tables import deliveries
from collab_layer.graph.tables import derived as items
from collab_layer.types.entity import Entity
from collab_layer.types.facet import FacetKind

_CHUNK = 400


async def offer(tools: Tools, cache: Cache, request: Request, *, again: bool) -> int:
    """Bring every store that takes derived items up to date for one entity; how many items were settled.

    An entity that nobody knows of is offered nothing. Where the context is incomplete, nothing
    is taken back on its account.

    Raises:
        BackendError: A store did not take or give back an item; it is tried again by the worker.
    """
    tenant = request.scope.tenant
    try:
        memory = await context(tools, cache, request, None)  # `deliver` notes what is sent
    except UnknownIdError:
        return 0
    said = [facet.id for facet in memory.facets]
    await tools.in_thread(_queue, tools, request, said, again=again, whole=not memory.degraded)
    settled = 0
    while more := await deliver(tools, tenant):
        settled += more
    return settled


def _queue(tools: Tools, request: Request, said: Collection[str], *, again: bool, whole: bool) -> None:
    tenant, now, d = request.scope.tenant, tools.now(), deliveries.c
    with tools.store.database.write() as connection:
        found = derived.get(connection, tenant, list(said))  # what was erased since is not offered
        owner = find(connection, tenant, [str(request.entity)]).get(str(request.entity), -1)
        known = _readers_own(connection, tenant, request.entity, owner, found, now) if owner >= 0 else []
        theirs = items.c.owner == owner
        for backend in tools.delivered_to(tenant):
            base = {"tenant": tenant, "backend": backend, "state": "pending", "attempts": 0, "at": now}
            upsert(connection, deliveries, [{**base, "item": id_} for id_ in known])
            held = connection.execute(
                select(d.item, d.state, items.c.kind)
                .join(items, (items.c.tenant == d.tenant) & (items.c.id == d.item))
                .where(d.tenant == tenant, d.backend == backend, theirs, d.state != "retracting")
            ).all()
            over = [id_ for id_, _, kind in held if whole and kind != FacetKind.UPDATE.value and id_ not in known]
            anew = [id_ for id_, state, _ in held if again and state in ("delivered", PARKED) and id_ not in over]
            for ids, state in ((over, "retracting"), (anew, "pending")):
                for start in range(0, len(ids), _CHUNK):
                    mine = d.item.in_(ids[start : start + _CHUNK])
                    connection.execute(
                        update(deliveries)
                        .where(d.tenant == tenant, d.backend == backend, mine)
                        .values(state=state, attempts=0, at=now)
                    )


def _readers_own(
    connection: Connection, tenant: str, reader: Entity, owner: int, items: dict[str, Item], now: int
) -> list[str]:
    """Ids to send. A notice is for many: each reader's store gets a copy, which goes with it."""
    secret, copies = salt(connection, tenant), list[Item]()
    for notice in [item for item in items.values() if item.kind is FacetKind.NOTICE]:
        key = f"{COPY}{notice.id}"
        id_ = item_id(secret, str(reader), FacetKind.NOTICE, key, notice.text, [notice.id])
        behind = ((notice.id, notice.owner, 1.0),)
        copies.append(replace(notice, id=id_, owner=owner, key=key, links=(), sources=behind, at=now))
    derived.put(connection, tenant, copies)
    rest = [id_ for id_, item in items.items() if item.kind is not FacetKind.NOTICE]
    return [*rest, *(copy.id for copy in copies)]
