"""The graph store: one database, every tenant's index, snapshots for readers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from collab_layer.governance.grants import Audience, Reader, audience
from collab_layer.governance.limits import Limit, minimum
from collab_layer.graph import limits, policy, schema
from collab_layer.graph.adjacency import Adjacency
from collab_layer.graph.engine import Database
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.item_edges import RelatedThings
from collab_layer.graph.past import PastIndex
from collab_layer.graph.policy import NOBODY
from collab_layer.graph.reader import Reading
from collab_layer.graph.tables import cards, entities, interactions, tenants
from collab_layer.types.entity import Entity
from collab_layer.types.scope import Level, Scope
from collab_layer.types.time import micros

AUDIENCES = 1_000
"""Readers of a tenant whose grants are not looked up at every read."""
_State = tuple[int, int, tuple[Limit, ...]]


@dataclass(frozen=True, slots=True)
class Opened:
    """A snapshot and the focus in it; `now` also where the past is read, `who` is the reader as grants know it."""

    reading: Reading
    focus: int
    reader: int
    policy: int
    now: int
    who: Reader


class GraphStore:
    """Owned by the layer; safe from any thread. Open with `open`, close with `close`."""

    def __init__(self, database: Database, embedder: str, dim: int) -> None:
        self.database = database
        self.adjacency = Adjacency()
        self.related = RelatedThings()
        self.embedder, self.dim = embedder, dim
        self._indexes: dict[str, TenantIndex] = {}
        self._lock = threading.Lock()
        self._audiences: dict[str, tuple[_State, OrderedDict[Reader, tuple[int, Audience]]]] = {}

    @classmethod
    def open(cls, url: str, *, embedder: str, dim: int, durable: bool = False) -> GraphStore:
        """Open or make the database and bring its schema forward."""
        database = Database(url, durable=durable)
        try:
            schema.ensure(database)
        except BaseException:
            database.dispose()
            raise
        return cls(database, embedder, dim)

    def use_embedder(self, embedder: str, dim: int) -> None:
        """Compare vectors of another embedder from now on."""
        with self._lock:
            self.embedder, self.dim = embedder, dim
            self._indexes.clear()

    def index(self, tenant: str) -> TenantIndex:
        """The tenant's columns in memory."""
        with self._lock:
            if tenant not in self._indexes:
                self._indexes[tenant] = TenantIndex(tenant, self.embedder, self.dim)
            return self._indexes[tenant]

    @contextmanager
    def reading(self, scope: Scope, focus: Entity, now: int) -> Generator[Opened]:
        """One snapshot for the scope's principal, or for the focus itself where there is none."""
        principal = scope.principal or focus
        index = self.index(scope.tenant)
        with self.database.read() as connection, index.lock:
            index.refresh(connection, now)
            ids = index.find(connection, (str(focus), str(principal)))
            reader = ids.get(str(principal), NOBODY)
            who = self.who(connection, scope.tenant, principal, reader, scope.purpose)
            known = tuple(limits.of(connection, scope.tenant, now)) if index.state.limited else ()
            seen = self._seen(connection, index, who, now, known)
            as_of = None if scope.as_of is None else micros(scope.as_of)
            reading = Reading(
                connection,
                scope.tenant,
                index if as_of is None else PastIndex(index, as_of),
                self.adjacency,
                seen,
                now if as_of is None else as_of,
                as_of,
                self._minimum(index, known, who, seen),
            )
            about = ids.get(str(focus), NOBODY)
            if as_of is not None and about != NOBODY and not reading.index.named(about):
                about = NOBODY  # nobody had told of it by then
            yield Opened(reading, about, reader, index.policy, now, who)

    def audience(
        self, connection: Connection, tenant: str, principal: Entity, id_: int, purpose: str | None, now: int
    ) -> Audience:
        """What one principal may use, inside a caller's transaction."""
        return policy.audience_of(connection, tenant, self.who(connection, tenant, principal, id_, purpose), now)

    @staticmethod
    def _minimum(index: TenantIndex, known: Sequence[Limit], who: Reader, seen: Audience) -> int:
        """Contributors behind a facet for one reader: the tenant's, or that of a stricter team it has to do with."""
        least = policy.parsed(index.state.sharing).min_contributors
        distilled = {owner for one in known for owner in one.members if seen.level(owner) == Level.FACETS}
        return minimum(known, least, who.names, frozenset(distilled))

    def who(self, connection: Connection, tenant: str, principal: Entity, id_: int, purpose: str | None) -> Reader:
        """One principal as grants know it: itself, its kind, the groups it is in now."""
        if id_ == NOBODY:
            return policy.stranger(principal, purpose)
        return policy.readers(connection, self.adjacency, tenant, [id_], purpose, self.index(tenant).names)[0]

    def _seen(
        self, connection: Connection, index: TenantIndex, who: Reader, now: int, known: tuple[Limit, ...]
    ) -> Audience:
        """What a reader may use; not looked up again while no grant changes and none of its own ends.

        Nor while nobody joins or leaves a team that has a policy.
        """
        state = (index.policy, index.generation, known)
        kept = self._audiences.get(index.tenant)
        if kept is None or kept[0] != state:
            kept = self._audiences[index.tenant] = state, OrderedDict[Reader, tuple[int, Audience]]()
        made, seen = kept[1].pop(who, (now, None))
        if seen is None or not made <= now < seen.until:
            made, seen = now, audience(policy.rows(connection, index.tenant, now, known=known), who, now)
        kept[1][who] = made, seen
        if len(kept[1]) > AUDIENCES:
            kept[1].popitem(last=False)
        return seen

    def close(self) -> None:
        """Close every connection."""
        self.database.dispose()


def policy_version(connection: Connection, tenant: str) -> int:
    """The version of the tenant's grants."""
    return connection.execute(select(tenants.c.policy).where(tenants.c.tenant == tenant)).scalar() or 0


def table_counts(connection: Connection, tenant: str) -> dict[str, int]:
    """Rows a person would ask about."""
    found: dict[str, int] = {}
    for label, table in (("entities", entities), ("interactions", interactions), ("cards", cards)):
        found[label] = connection.execute(
            select(func.count()).select_from(table).where(table.c.tenant == tenant)
        ).scalar_one()
    return found
