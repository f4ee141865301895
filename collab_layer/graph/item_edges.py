"""Edges between things in the database: made for the whole tenant, used only while they may be.

In:   a tenant, a connection, who everybody may read (`governance.commons`).
Out:  holdings to make edges of; the edges into some candidates, or none.

They rest on owners that everybody may read. A read looks whether that still holds: after an
erasure they are gone, after a grant was taken back they are left unused until they are made
again, and no read of the past uses them.
"""

from __future__ import annotations

import threading

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
from collab_layer.types.graph import EdgePairs, Ids, ItemEdges, Levels, pairs_of

MADE, BEHIND = "item_edges", "item_edge_owners"
"""Names in `settings`: how they were made, and which owners they rest on."""
PACKED = np.dtype([("other", "<i4"), ("weight", "<f2")])
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
    """

    at: int
    generation: int
    policy: int
    until: int
    minimum: int
    owners: int
    things: int
    method: str


_MADE, _BEHIND = TypeAdapter(Made), TypeAdapter(dict[int, int])


class RelatedThings:
    """Reads stored edges; remembers for which version of the grants they were found usable."""

    def __init__(self) -> None:
        self._good: dict[str, tuple[Made, int]] = {}
        self._lock = threading.Lock()

    def into(self, reading: Reading, things: Ids, held: Ids) -> EdgePairs:
        """The edges into candidates from things the entity holds; none where they may not be used."""
        if reading.as_of is not None or not len(held) or not self.usable(reading.connection, reading.tenant, reading):
            return EdgePairs.empty()
        found: dict[int, bytes] = {}
        wanted = things.tolist()
        r = related.c
        for start in range(0, len(wanted), _CHUNK):
            part = r.thing.in_(wanted[start : start + _CHUNK])
            rows = reading.connection.execute(select(r.thing, r.packed).where(r.tenant == reading.tenant, part))
            found.update((thing, packed) for thing, packed in rows)
        packs = [np.frombuffer(found.get(thing, b""), PACKED) for thing in wanted]
        every = np.concatenate([*packs, np.zeros(0, PACKED)])
        row = np.repeat(np.arange(len(wanted)), [len(pack) for pack in packs])
        return pairs_of(row, every["other"].astype(np.int64), every["weight"].astype(np.float64), held)

    def usable(self, connection: Connection, tenant: str, reading: Reading) -> bool:
        """Whether everybody may still read all that the edges rest on."""
        made = load(connection, tenant)
        if made is None or made.until <= reading.now or made.minimum < reading.minimum:
            return False
        generation, version = upkeep.fence(connection, tenant)
        if generation != made.generation:
            return False
        if version == made.policy:
            return True
        with self._lock:
            if self._good.get(tenant) == (made, version):
                return True
        if not _still_open(connection, tenant, reading):
            return False
        with self._lock:
            self._good[tenant] = (made, version)
        return True


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


def save(connection: Connection, tenant: str, made: Made, found: ItemEdges, behind: Ids, levels: Levels) -> bool:
    """Put the edges in the place of those before; False if something was erased meanwhile.

    Grants that changed meanwhile are looked at when the edges are read.
    """
    lock(connection, tenant)
    if upkeep.fence(connection, tenant)[0] != made.generation:
        return False
    drop(connection, tenant)
    things, first = np.unique(found.thing, return_index=True)
    packed = np.zeros(len(found), PACKED)
    packed["other"], packed["weight"] = found.other, found.weight
    packs = np.split(packed, first[1:]) if len(things) else []
    rows = [
        {"tenant": tenant, "thing": thing, "packed": pack.tobytes()}
        for thing, pack in zip(things.tolist(), packs, strict=True)
    ]
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
