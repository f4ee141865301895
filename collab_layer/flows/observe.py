"""Interactions to one commit each batch; changes seen in a store to interactions.

What the layer wrote itself into a store comes back as news: it is turned away here, by
the delivery it matches.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from collab_layer.errors import InputError, NotPermittedError, StoreConflictError
from collab_layer.flows.erase import forget_cards
from collab_layer.flows.tools import Tools
from collab_layer.graph import writer
from collab_layer.graph.tables import deliveries
from collab_layer.ports.backend import Change
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Scope

TRIES = 4
MAX_BATCH = 50_000


async def observe(tools: Tools, scope: Scope, batch: Sequence[Interaction]) -> list[str]:
    """Store interactions; returns after the commit with the id of each.

    Raises:
        InputError: More than 50,000 at once.
        NotPermittedError: The acting principal speaks for somebody else.
    """
    if len(batch) > MAX_BATCH:
        raise InputError(f"{len(batch)} interactions at once, at most {MAX_BATCH} are allowed; pass them in parts")
    for item in batch:
        if not isinstance(item, Interaction):  # pyright: ignore[reportUnnecessaryIsInstance]  callers pass anything
            raise InputError(f"a {type(item).__name__} is no Interaction; pass Interaction(actor=..., ...)")
        _may_speak(scope, item)
    return await tools.in_thread(_store, tools, scope.tenant, batch)


async def observe_changes(tools: Tools, scope: Scope, backend: str, changes: Sequence[Change]) -> int:
    """Take in what changed in a store: records are remembered, vanished ones forgotten; how many."""
    own = await tools.in_thread(_own_writes, tools, scope.tenant, backend, [change.ref.id for change in changes])
    # Of several changes of one memory the last is what holds.
    news = list({change.ref.id: change for change in changes if change.ref.id not in own}.values())
    gone = [change.ref.id for change in news if change.record is None]
    batch = [
        Interaction(
            actor=change.record.owner,
            verb="remembered",
            links=change.record.links,
            at=change.record.at,
            key=f"{backend}:{change.ref.id}:{change.record.ref.version}",
            ref=change.record.ref,
        )
        for change in news
        if change.record is not None
    ]
    if gone:
        await tools.in_thread(forget_cards, tools, scope.tenant, backend, gone)
    if batch:
        await observe(tools, scope, batch)
    return len(news)


def _store(tools: Tools, tenant: str, batch: Sequence[Interaction]) -> list[str]:
    for tried in range(TRIES):
        try:
            with tools.store.database.write() as connection:
                return writer.observe(connection, tools.store.adjacency, tenant, batch, tools.now())
        except StoreConflictError:
            # Another process made the same entity or key first; the second look finds it.
            if tried == TRIES - 1:
                raise
    return []


def _may_speak(scope: Scope, item: Interaction) -> None:
    if scope.principal is not None and item.actor != scope.principal:
        raise NotPermittedError(str(scope.principal), "speak for", str(item.actor))
    joins = item.verb in (writer.JOINED, writer.LEFT)
    if joins and item.verb == writer.JOINED and scope.principal is not None:
        # Membership opens what was granted to the group: only the operator lets somebody in.
        raise NotPermittedError(str(scope.principal), "join by itself", str(item.target or Entity("team", "none")))


def _own_writes(tools: Tools, tenant: str, backend: str, ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    with tools.store.database.read() as connection:
        for start in range(0, len(ids), 400):
            found.update(
                connection.execute(
                    select(deliveries.c.native_id).where(
                        deliveries.c.tenant == tenant,
                        deliveries.c.backend == backend,
                        deliveries.c.native_id.in_(list(ids[start : start + 400])),
                    )
                ).scalars()
            )
    return found
