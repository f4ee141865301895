"""Stores that are already full, and changes made past us: read, compared, taken in.

Resumable: the place in each owner's records is kept in `cursors`, in the database, after
each page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlalchemy import Connection, select

from collab_layer.errors import BackendError, InputError
from collab_layer.flows.observe import observe_changes, sound
from collab_layer.flows.tools import Tools
from collab_layer.graph.engine import upsert
from collab_layer.graph.names import find
from collab_layer.graph.spans import told
from collab_layer.graph.tables import cursors, entities, interactions
from collab_layer.ports.backend import Can, Change, ListsOwners, MemoryBackend, Watches
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.scope import Scope

PAGE = 500
FEED = ""
TRIES = 3
"""Looks at memories that somebody tells of at the same time."""
Progress = Callable[[int, int], None]
"""Called with owners done and owners in all."""


async def index(
    tools: Tools,
    scope: Scope,
    backend: MemoryBackend,
    owners: Sequence[Entity] | None,
    progress: Progress | None = None,
) -> int:
    """Bring a full store in; how many records were new or changed.

    Raises:
        InputError: The store cannot list its owners and none were given.
    """
    if owners is None:
        if Can.LIST_OWNERS not in backend.can or not isinstance(backend, ListsOwners):
            raise InputError(f"backend `{backend.name}` cannot list its owners; pass them: owners=[...]")
        owners = await backend.owners()
    taken = 0
    for done, owner in enumerate(owners):
        if progress is not None:
            progress(done, len(owners))
        taken += await _owner(tools, scope, backend, owner)
    if progress is not None:
        progress(len(owners), len(owners))
    return taken


async def reconcile(tools: Tools, scope: Scope, backend: MemoryBackend) -> int:
    """Take in what other processes wrote or deleted: by the store's feed, else by a sweep; how many.

    A feed that begins only now, as the store was down when it was attached, tells nothing of before: then both.
    """
    taken = 0
    if Can.WATCH in backend.can and isinstance(backend, Watches):
        begun = await tools.in_thread(_cursor, tools, scope.tenant, backend.name, FEED) is not None
        taken = await _follow(tools, scope, backend)
        if begun:
            return taken
    for owner in await tools.in_thread(_known_owners, tools, scope.tenant, backend.name):
        taken += await _sweep(tools, scope, backend, owner)
    return taken


async def start_feed(tools: Tools, scope: Scope, backend: MemoryBackend) -> None:
    """Remember where the store's feed stands now, unless a place is known, or the store is down."""
    if Can.WATCH not in backend.can or not isinstance(backend, Watches):
        return
    if await tools.in_thread(_cursor, tools, scope.tenant, backend.name, FEED) is None:
        try:
            changes = await backend.changes(None)
        except BackendError as error:
            if not error.retryable:
                raise
            tools.standing.down(scope.tenant, backend.name)
            return  # the layer opens without it; `reconcile` starts the feed once it is back
        await tools.in_thread(_keep, tools, scope.tenant, backend.name, FEED, changes.cursor, False)


async def _follow(tools: Tools, scope: Scope, backend: Watches) -> int:
    taken = 0
    while True:
        cursor = await tools.in_thread(_cursor, tools, scope.tenant, backend.name, FEED)
        changes = await backend.changes(cursor, limit=PAGE)
        if changes.items:
            taken += await _take(tools, scope, backend, changes.items)
        await tools.in_thread(_keep, tools, scope.tenant, backend.name, FEED, changes.cursor, False)
        if not changes.items or changes.cursor == cursor:
            return taken


async def _owner(tools: Tools, scope: Scope, backend: MemoryBackend, owner: Entity) -> int:
    after = await tools.in_thread(_cursor, tools, scope.tenant, backend.name, str(owner))
    taken = 0
    while True:
        page = await backend.records(owner, after=after, limit=PAGE)
        if page.records:
            news = [Change(record.ref, record) for record in page.records]
            taken += await observe_changes(tools, scope, backend.name, sound(news), current=True)
        await tools.in_thread(_keep, tools, scope.tenant, backend.name, str(owner), page.after, page.after is None)
        if page.after is None:
            return taken
        after = page.after


async def _sweep(tools: Tools, scope: Scope, backend: MemoryBackend, owner: Entity) -> int:
    there: dict[str, Change] = {}
    after: str | None = None
    while True:
        page = await backend.records(owner, after=after, limit=PAGE)
        there.update((record.ref.id, Change(record.ref, record)) for record in page.records)
        if page.after is None:
            break
        after = page.after
    here = await tools.in_thread(_versions, tools, scope.tenant, backend.name, owner)
    news = [change for id_, change in there.items() if here.get(id_) != change.ref.version]
    news += [Change(MemoryRef(backend=backend.name, id=id_), None) for id_ in here if id_ not in there]
    return await _take(tools, scope, backend, news) if news else 0


async def _take(tools: Tools, scope: Scope, backend: MemoryBackend, news: Sequence[Change]) -> int:
    """Take in what was found, as it is now: what is told of while the store is asked is newer, and asked for again."""
    left, taken = {change.ref.id: change.ref for change in news}, 0
    for tried in range(TRIES):
        before = await tools.in_thread(_told, tools, scope.tenant, backend.name, left)
        there = {record.ref.id: record for record in await backend.read(list(left.values()))}
        after = await tools.in_thread(_told, tools, scope.tenant, backend.name, left)
        moved = {id_: ref for id_, ref in left.items() if before.get(id_) != after.get(id_)}
        still = {id_: ref for id_, ref in left.items() if id_ not in moved or tried == TRIES - 1}
        changes = [Change(one.ref, one) for id_, one in there.items() if id_ in still]
        changes += [Change(ref, None) for id_, ref in still.items() if id_ in after and id_ not in there]
        if changes:
            taken += await observe_changes(tools, scope, backend.name, sound(changes), current=True)
        left = moved
        if not left:
            break
    return taken


def _told(tools: Tools, tenant: str, backend: str, ids: Iterable[str]) -> dict[str, set[int]]:
    """By memory what was told of it last, by each owner."""
    found: dict[str, set[int]] = {}
    with tools.store.database.read() as connection:
        for (_, id_, _), versions in told(connection, tenant, {(backend, one) for one in ids}).items():
            found.setdefault(id_, set()).add(max(version.id for version in versions))
    return found


def _versions(tools: Tools, tenant: str, backend: str, owner: Entity) -> dict[str, str]:
    i = interactions.c
    with tools.store.database.read() as connection:
        id_ = find(connection, tenant, [str(owner)]).get(str(owner))
        rows = connection.execute(
            select(i.native_id, i.version)
            .where(i.tenant == tenant, i.actor == (id_ or -1), i.backend == backend)
            .order_by(i.at, i.id)
        )
        return {native_id: version for native_id, version in rows}


def _known_owners(tools: Tools, tenant: str, backend: str) -> list[Entity]:
    i, e = interactions.c, entities.c
    with tools.store.database.read() as connection:
        rows = connection.execute(
            select(e.name)
            .where(
                e.tenant == tenant,
                e.id.in_(select(i.actor).where(i.tenant == tenant, i.backend == backend).distinct()),
            )
            .order_by(e.name)
        )
        return [Entity.parse(name) for name in rows.scalars()]


def cursor_of(connection: Connection, tenant: str, backend: str, owner: str) -> str | None:
    """The place that was kept, if any."""
    c = cursors.c
    return connection.execute(
        select(c.cursor).where(c.tenant == tenant, c.backend == backend, c.owner == owner)
    ).scalar()


def _cursor(tools: Tools, tenant: str, backend: str, owner: str) -> str | None:
    with tools.store.database.read() as connection:
        return cursor_of(connection, tenant, backend, owner)


def _keep(tools: Tools, tenant: str, backend: str, owner: str, cursor: str | None, done: bool) -> None:
    row = {"tenant": tenant, "backend": backend, "owner": owner, "cursor": cursor, "done": done}
    with tools.store.database.write() as connection:
        upsert(connection, cursors, [row], update=("cursor", "done"))
