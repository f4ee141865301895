"""Edges between things in the database: made for the whole tenant, used only while they may be.

In:   a tenant, a connection, who everybody may read (`governance.commons`).
Out:  holdings to make edges of; the edges into some candidates, or none.

They rest on owners that everybody may read. A read looks whether that still holds: after an
erasure they are gone, after a grant was taken back they are left unused until they are made
again, and no read of the past uses them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass
from sqlalchemy import Connection, delete, insert, select

from collab_layer.governance.commons import commons
from collab_layer.graph import policy, upkeep
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.engine import upsert
from collab_layer.graph.names import lock
from collab_layer.graph.reader import Reading
from collab_layer.graph.tables import edges, related, settings
from collab_layer.types.graph import EdgeMatrix, EdgePairs, Ids, ItemEdges, Levels, every_pair, pairs_of, places_in

MADE, BEHIND = "item_edges", "item_edge_owners"
"""Names in `settings`: how they were made, and which owners they rest on."""
PACKED = np.dtype([("other", "<i4"), ("weight", "<f2")])
"""A row of few edges."""
WHOLE = np.dtype("<f2")
"""A row of all edges: from each thing that has a row, ascending."""
_CHUNK = 500


@dataclass(frozen=True)
class Made:
    """How the stored edges were made.

    Attributes:
        at: When, microseconds.
        generation, policy: The tenant's, as it was read.
        until: When the first grant ends that they rest on.
        minimum: `min_contributors` of then.
        owners, things, method: What they rest on, and how.
        whole: Whether each row holds the weights from all things, ascending, and not a few named ones.
    """

    at: int
    generation: int
    policy: int
    until: int
    minimum: int
    owners: int
    things: int
    method: str
    whole: bool = False


_MADE, _BEHIND = TypeAdapter(Made), TypeAdapter(dict[int, int])


class RelatedThings:
    """Reads stored edges; remembers for which version of the grants they were found usable."""

    def __init__(self) -> None:
        self._good: dict[str, tuple[Made, int]] = {}
        self._order: dict[str, tuple[Made, Ids]] = {}
        self._lock = threading.Lock()

    def into(self, reading: Reading, things: Ids, held: Ids) -> EdgePairs:
        """The edges into candidates from things the entity holds; none where they may not be used."""
        if reading.as_of is not None or not len(held):
            return EdgePairs.empty()
        made = self.usable(reading.connection, reading.tenant, reading)
        if made is None:
            return EdgePairs.empty()
        packs = _packs(reading.connection, reading.tenant, things)
        if made.whole:
            return _whole(self._ordered(reading.connection, reading.tenant, made), packs, held)
        named = [np.frombuffer(pack, PACKED) for pack in packs]
        every = np.concatenate([*named, np.zeros(0, PACKED)])
        row = np.repeat(np.arange(len(named)), [len(pack) for pack in named])
        return pairs_of(row, every["other"].astype(np.int64), every["weight"].astype(np.float64), held)

    def usable(self, connection: Connection, tenant: str, reading: Reading) -> Made | None:
        """The edges there are, if everybody may still read all that they rest on."""
        made = load(connection, tenant)
        if made is None or made.until <= reading.now or made.minimum < reading.minimum:
            return None
        generation, version = upkeep.fence(connection, tenant)
        if generation != made.generation:
            return None
        if version == made.policy:
            return made
        with self._lock:
            if self._good.get(tenant) == (made, version):
                return made
        if not _still_open(connection, tenant, reading):
            return None
        with self._lock:
            self._good[tenant] = (made, version)
        return made

    def _ordered(self, connection: Connection, tenant: str, made: Made) -> Ids:
        """The things that have rows, ascending."""
        with self._lock:
            known = self._order.get(tenant)
        if known is None or known[0] != made:
            query = select(related.c.thing).where(related.c.tenant == tenant).order_by(related.c.thing)
            known = (made, np.array(connection.execute(query).scalars().all(), np.int64))
            with self._lock:
                self._order[tenant] = known
        return known[1]


def load(connection: Connection, tenant: str) -> Made | None:
    """How the stored edges were made; None if there are none."""
    text = _setting(connection, tenant, MADE)
    return None if text is None else _MADE.validate_json(text)


def holdings(connection: Connection, tenant: str, as_of: int | None, now: int) -> tuple[Ids, Ids]:
    """Every pair "somebody holds something", at the present or as of a time; not yet cut to anybody."""
    e = edges.c
    query = select(e.src, e.dst).where(e.tenant == tenant, e.kind == int(Kind.INTERACTED), e.weight > 0)
    query = query.where(e.valid_to > now) if as_of is None else query.where(e.at <= as_of, e.valid_to > as_of)
    pairs = np.array([tuple(row) for row in connection.execute(query.distinct())], np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def save(
    connection: Connection, tenant: str, made: Made, found: ItemEdges | EdgeMatrix, behind: Ids, levels: Levels
) -> bool:
    """Put the edges in the place of those before; False if something was erased meanwhile.

    Grants that changed meanwhile are looked at when the edges are read.
    """
    lock(connection, tenant)
    if upkeep.fence(connection, tenant)[0] != made.generation:
        return False
    drop(connection, tenant)
    rows = [{"tenant": tenant, "thing": thing, "packed": pack} for thing, pack in _rows(found)]
    for start in range(0, len(rows), _CHUNK):
        connection.execute(insert(related), rows[start : start + _CHUNK])
    behind_of = dict(zip(behind.tolist(), levels.tolist(), strict=True))
    upsert(
        connection,
        settings,
        [
            {"tenant": tenant, "name": MADE, "value": _MADE.dump_json(made).decode()},
            {"tenant": tenant, "name": BEHIND, "value": _BEHIND.dump_json(behind_of).decode()},
        ],
        update=("value",),
    )
    return True


def drop(connection: Connection, tenant: str) -> None:
    """Remove every edge, and the note of whom they rested on."""
    connection.execute(delete(related).where(related.c.tenant == tenant))
    connection.execute(delete(settings).where(settings.c.tenant == tenant, settings.c.name.in_((MADE, BEHIND))))


def _rows(found: ItemEdges | EdgeMatrix) -> Iterator[tuple[int, bytes]]:
    """Each thing with the edges into it."""
    if isinstance(found, EdgeMatrix):
        for thing, weight in zip(found.things.tolist(), found.weight, strict=True):
            yield thing, weight.astype(WHOLE).tobytes()
        return
    packed = np.zeros(len(found), PACKED)
    packed["other"], packed["weight"] = found.other, found.weight
    things, first = np.unique(found.thing, return_index=True)
    for thing, pack in zip(things.tolist(), np.split(packed, first[1:]) if len(things) else [], strict=True):
        yield thing, pack.tobytes()


def _packs(connection: Connection, tenant: str, things: Ids) -> list[bytes]:
    """The stored row of each thing; empty where there is none."""
    found: dict[int, bytes] = {}
    wanted, r = things.tolist(), related.c
    for start in range(0, len(wanted), _CHUNK):
        part = r.thing.in_(wanted[start : start + _CHUNK])
        rows = connection.execute(select(r.thing, r.packed).where(r.tenant == tenant, part))
        found.update((thing, packed) for thing, packed in rows)
    return [found.get(thing, b"") for thing in wanted]


def _whole(order: Ids, packs: Sequence[bytes], held: Ids) -> EdgePairs:
    """Edges out of rows that hold the weights from all things."""
    at, there = places_in(order, held)
    nothing = np.zeros(len(order), WHOLE)
    rows = [np.frombuffer(pack, WHOLE) if pack else nothing for pack in packs]
    weight = np.stack([row[at[there]] for row in rows]) if rows else np.zeros((0, int(there.sum())))
    return every_pair(weight.astype(np.float64), np.flatnonzero(there))


def _still_open(connection: Connection, tenant: str, reading: Reading) -> bool:
    text = _setting(connection, tenant, BEHIND)
    behind = {} if text is None else _BEHIND.validate_json(text)
    ids = np.array(list(behind), np.int64)
    open_to_all = commons(policy.rows(connection, tenant, reading.now), reading.now)
    levels = open_to_all.levels(ids, reading.index.is_owner(ids))
    return bool(np.all(levels >= np.array(list(behind.values()), np.int8)))


def _setting(connection: Connection, tenant: str, name: str) -> str | None:
    s = settings.c
    return connection.execute(select(s.value).where(s.tenant == tenant, s.name == name)).scalar()


__all__ = ["Made", "RelatedThings", "drop", "holdings", "load", "save"]
