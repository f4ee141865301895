"""Adjacency: packed arrays per node plus the deltas not yet folded into them.

In:   nodes, kinds, and a moment for as-of reads.
Out:  one `Edges` per node: distinct other ends, newest first.

Writers append rows to `edges`; `fold` packs a node's rows into one array and marks exactly
those rows as folded, in one transaction, so that a reader's snapshot always sees each row
once. The rows stay: they are what as-of reads and recomputation use. A row that has an end is
is in no array: until then it is read as a delta. One that is over is marked as folded, and read only
as of a time. An end that is met with no weight at all, as by "disliked, weight 0", is not picked:
nobody holds it.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    Connection,
    Float,
    bindparam,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    update,
)

from collab_layer.graph.among import one_of, pages
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import next_id
from collab_layer.graph.lean import Lean
from collab_layer.graph.names import lock
from collab_layer.graph.tables import adjacency, edges
from collab_layer.types.graph import Edges, Ids
from collab_layer.types.time import FOREVER

PACKED = np.dtype([("dst", "<i4"), ("kind", "<i1"), ("weight", "<f8"), ("count", "<i4"), ("last", "<i8")])
CACHE_BYTES = 64 << 20
"""Arrays of nodes read last that one process keeps; a million edges are 50 MB in both directions."""
_CHUNK = 500


class Kind(IntEnum):
    """What an edge means, from its source's side; each has its way back."""

    INTERACTED = 1
    HELD_BY = 2
    MENTIONS = 3
    MENTIONED_BY = 4
    MEMBER_OF = 5
    HAS_MEMBER = 6


BACK = {
    Kind.INTERACTED: Kind.HELD_BY,
    Kind.MENTIONS: Kind.MENTIONED_BY,
    Kind.MEMBER_OF: Kind.HAS_MEMBER,
}

_WEIGHED = (int(Kind.INTERACTED), int(Kind.HELD_BY), int(Kind.MENTIONS), int(Kind.MENTIONED_BY))
"""Kinds that count by their weight; who is a member of a team is one with any."""
_FORTH = frozenset(int(kind) for kind in BACK)
Packed = NDArray[Any]
Ends = NDArray[np.int32]

_A, _E = adjacency.c, edges.c
_MINE = (_A.tenant == bindparam("tenant"), one_of(_A.node, "nodes"))
_OUT = (_E.tenant == bindparam("tenant"), one_of(_E.src, "nodes"))
_NOTHING, _NO_WEIGHT = literal_column("0", BigInteger), literal_column("0.0", Float)
_PACKS = Lean(select(_A.node, _A.packed).where(*_MINE))
_VERSION = 0
"""In the place of a kind: the row tells a node's version, in the place of the other end."""
_VERSIONS = select(
    _A.node.label("src"), literal_column(str(_VERSION), BigInteger).label("kind"), _A.version.label("dst"),
    _NO_WEIGHT.label("weight"), _NOTHING.label("at"),
).where(*_MINE)  # fmt: skip
_ROWS = select(_E.src, _E.kind, _E.dst, _E.weight, _E.at).where(*_OUT, _E.valid_to > bindparam("now"))
_DELTAS = (*_OUT, _E.folded == false())
_CROWDED = select(_E.src).where(*_DELTAS).group_by(_E.src).having(func.count() >= bindparam("at_least"))
"""Counted from the index alone: most nodes have few deltas, and these need not be read."""
_HAS_ENDED_OR_WILL_NOT = or_(_E.valid_to == FOREVER, _E.valid_to <= bindparam("now"))
_FOLDABLE = Lean(
    select(_E.src, _E.id, _E.dst, _E.kind, _E.weight, _E.at, _E.valid_to)
    .where(*_DELTAS, or_(one_of(_E.src, "always"), _E.src.in_(_CROWDED)))
    .where(_HAS_ENDED_OR_WILL_NOT)
)
_MOST_CROWDED = Lean(
    select(_E.src)
    .where(_E.tenant == bindparam("tenant"), _E.folded == false(), _HAS_ENDED_OR_WILL_NOT)
    .group_by(_E.src)
    .having(func.count() >= bindparam("at_least"))
    .order_by(func.count().desc(), _E.src)
    .limit(bindparam("most"))
)
_FOLDED = Lean(update(edges).where(_E.tenant == bindparam("whose"), one_of(_E.id, "ids")).values(folded=true()))
_WAITING = (
    select(_E.src, func.count(), func.max(_E.id), _NO_WEIGHT, _NOTHING)
    .where(*_OUT, _E.folded == false())
    .group_by(_E.src)
)
_SMALL = 48
"""Rows up to which merging them one by one is faster than as columns."""
_VERSION_OF, _STAMPS = Lean(_VERSIONS), Lean(_VERSIONS.union_all(_WAITING))
_PRESENT = Lean(_VERSIONS.union_all(_ROWS.where(_E.folded == false())))
_PAST = Lean(_ROWS.where(_E.at <= bindparam("now")))
_OPEN = Lean(
    _VERSIONS.union_all(
        select(_E.src, _E.kind, _E.dst, _NO_WEIGHT, _NOTHING)
        .where(*_OUT, _E.kind == bindparam("what"))
        .where(_E.folded == false(), _E.valid_to == FOREVER)
    )
)


class Around:
    """One node's edges, with what was picked of them before."""

    __slots__ = ("_ends", "_rows", "packed")

    def __init__(self, packed: Packed) -> None:
        self.packed = packed
        self._rows: dict[tuple[Kind, ...], Packed] = {}
        self._ends: dict[tuple[Kind, ...], Ends] = {}

    def rows(self, *kinds: Kind) -> Packed:
        """The edges of some kinds, newest first; an end met under two kinds appears once."""
        if kinds not in self._rows:
            self._rows[kinds] = _of_kinds(self.packed, kinds)
        return self._rows[kinds]

    def ends(self, *kinds: Kind) -> Ends:
        """The other ends of those, newest first."""
        if kinds not in self._ends:
            self._ends[kinds] = np.ascontiguousarray(self.rows(*kinds)["dst"])
        return self._ends[kinds]

    def pick(self, *kinds: Kind) -> Edges:
        """The same as columns."""
        return unpack(self.rows(*kinds))


_NONE: Packed = np.zeros(0, PACKED)
_NOTHING_AROUND = Around(_NONE)


class Adjacency:
    """Reads and folds; keeps the arrays of recently read nodes, `CACHE_BYTES` of them."""

    def __init__(self) -> None:
        self._cache: OrderedDict[tuple[str, int], tuple[int, Around]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def edges(
        self,
        connection: Connection,
        tenant: str,
        nodes: Sequence[int],
        *,
        as_of: int | None = None,
        now: int = FOREVER - 1,
    ) -> dict[int, Packed]:
        """Every edge of the nodes, aggregated by (other end, kind), newest first.

        Args:
            connection: A snapshot, or the caller's transaction.
            tenant: Whose.
            nodes: Which.
            as_of: Those that held then; None reads the present.
            now: The present; edges with an end count until then. Left out, they do not count.
        """
        found = self.around(connection, tenant, nodes, as_of=as_of, now=now)
        return {node: around.packed for node, around in found.items()}

    def around(
        self,
        connection: Connection,
        tenant: str,
        nodes: Sequence[int],
        *,
        as_of: int | None = None,
        now: int = FOREVER - 1,
    ) -> dict[int, Around]:
        """The same as `edges`; what is picked of a node is kept with the node's array."""
        found: dict[int, Around] = {}
        for start in range(0, len(nodes), _CHUNK):
            part = list(nodes[start : start + _CHUNK])
            given = {"tenant": tenant, "nodes": part, "now": now if as_of is None else as_of}
            versions, deltas = _apart((_PRESENT if as_of is None else _PAST).tuples(connection, given))
            base = self._kept(connection, tenant, versions)
            found.update((node, base.get(node) or _NOTHING_AROUND) for node in part)
            if not deltas:
                continue
            fresh = _as_packed([(dst, kind, weight, at) for rows in deltas.values() for kind, dst, weight, at in rows])
            bases = [found[node].packed for node in deltas]
            merged = _merge_each(bases, fresh, [len(rows) for rows in deltas.values()])
            found.update((node, Around(rows)) for node, rows in zip(deltas, merged, strict=True))
        return found

    def ends(self, connection: Connection, tenant: str, nodes: Sequence[int], kind: Kind) -> dict[int, list[int]]:
        """The other ends of open edges of a kind that no weight takes back, in no order; reads no other edges."""
        found: dict[int, list[int]] = {node: [] for node in nodes}
        for start in range(0, len(nodes), _CHUNK):
            part = list(nodes[start : start + _CHUNK])
            given = {"tenant": tenant, "nodes": part, "what": int(kind)}
            versions, deltas = _apart(_OPEN.tuples(connection, given))
            for node, around in self._kept(connection, tenant, versions).items():
                found[node] += around.ends(kind).tolist()
            for node, rows in deltas.items():
                found[node] += [other for _, other, _, _ in rows]
        return found

    def _packed(self, connection: Connection, tenant: str, nodes: list[int]) -> dict[int, Packed]:
        versions, _ = _apart(_VERSION_OF.tuples(connection, {"tenant": tenant, "nodes": nodes}))
        return {node: around.packed for node, around in self._kept(connection, tenant, versions).items()}

    def _kept(self, connection: Connection, tenant: str, versions: Mapping[int, int]) -> dict[int, Around]:
        """The arrays of these versions; those that are not in memory are read."""
        found: dict[int, Around] = {}
        missing: list[int] = []
        with self._lock:
            for node, version in versions.items():
                kept = self._cache.get((tenant, node))
                if kept is not None and kept[0] == version:
                    found[node] = kept[1]
                    self._cache.move_to_end((tenant, node))  # what many hold is read by nearly everybody
                else:
                    missing.append(node)
        if missing:
            for node, blob in _PACKS.tuples(connection, {"tenant": tenant, "nodes": missing}):
                found[node] = Around(np.frombuffer(blob, PACKED))
                self._remember(tenant, node, versions[node], found[node])
        return found

    def _remember(self, tenant: str, node: int, version: int, around: Around) -> None:
        with self._lock:
            before = self._cache.pop((tenant, node), None)
            self._bytes += around.packed.nbytes - (0 if before is None else before[1].packed.nbytes)
            self._cache[tenant, node] = version, around
            while self._bytes > CACHE_BYTES:
                _, (_, oldest) = self._cache.popitem(last=False)
                self._bytes -= oldest.packed.nbytes

    def versions(self, connection: Connection, tenant: str, nodes: Iterable[int]) -> dict[int, tuple[int, int, int]]:
        """What changes whenever a node's edges change: (folded version, deltas, newest delta)."""
        nodes = list(nodes)
        out: dict[int, tuple[int, int, int]] = {}
        for start in range(0, len(nodes), _CHUNK):
            part = nodes[start : start + _CHUNK]
            folded, deltas = _apart(_STAMPS.tuples(connection, {"tenant": tenant, "nodes": part}))
            for node in part:
                count, newest = deltas[node][0][:2] if node in deltas else (0, 0)
                out[node] = folded.get(node, 0), count, newest
        return out

    def fold(
        self,
        connection: Connection,
        tenant: str,
        nodes: Sequence[int],
        *,
        at_least: int = 1,
        always: Collection[int] = (),
        now: int = 0,
        new: Sequence[dict[str, Any]] = (),
    ) -> int:
        """Pack the deltas of nodes that have at least so many, or that are named; how many nodes were packed.

        One select tells which rows there are and what they hold; exactly those are merged and
        marked. Rows that ended by `now` are marked too, and merged nowhere; rows that will end
        are left. The tenant's row is taken first, so that two folds never meet.

        `new` are rows of the nodes that the caller stores next in the same transaction: they count
        as if they were stored, and those that are packed are marked here, not written twice.
        """
        if connection.dialect.name != "sqlite":  # there the whole database is ours already
            lock(connection, tenant)
        lines = [line for line in new if line["valid_to"] == FOREVER or line["valid_to"] <= now]
        counts = Counter(line["src"] for line in lines)
        few = at_least // 4  # new rows that a node may have without its stored ones being looked at
        given = {"tenant": tenant, "at_least": at_least - few, "now": now}
        rows: list[Any] = []
        for start in range(0, len(nodes), _CHUNK):
            part = list(nodes[start : start + _CHUNK])
            named = [node for node in part if node in always or counts[node] > few]
            rows += _FOLDABLE.rows(connection, {**given, "nodes": part, "always": named})
        waits = _Waiting(rows, lines, at_least, always)
        if not waits.nodes:
            return 0
        base = self._packed(connection, tenant, waits.nodes)
        packs = _merge_each([base.get(node, _NONE) for node in waits.nodes], waits.fresh, waits.sizes)
        packed = dict(zip(waits.nodes, packs, strict=True))
        for (node, pack), version in zip(packed.items(), _keep(connection, tenant, packed), strict=True):
            self._remember(tenant, node, version, Around(pack.copy()))  # of all of them only what it needs
        _mark(connection, tenant, waits.ids)
        for line in waits.lines:
            line["folded"] = True
        return len(waits.nodes)

    def crowded(
        self, connection: Connection, tenant: str, at_least: int, most: int = 200, *, now: int = 0
    ) -> list[int]:
        """Nodes with many deltas that `fold` would take in, most first."""
        given = {"tenant": tenant, "at_least": at_least, "most": most, "now": now}
        return [node for (node,) in _MOST_CROWDED.tuples(connection, given)]

    def ended(self, connection: Connection, tenant: str, rows: Sequence[Any]) -> None:
        """Take rows that were given an end, or are gone, out of the packed arrays that hold them.

        Costs what is packed for the pairs of ends concerned, not what a hub holds in all.

        Args:
            connection: The caller's transaction, in which `edges` says so already.
            tenant: Whose.
            rows: Of `edges` as they were, open until then.
        """
        pairs: dict[int, set[tuple[int, int]]] = {}
        for row in rows:
            if row.folded:
                pairs.setdefault(row.src, set()).add((row.dst, row.kind))
        if not pairs:
            return
        lock(connection, tenant)
        packs = self._packed(connection, tenant, sorted(pairs))
        changed: dict[int, Packed] = {}
        for node, gone in pairs.items():
            pack = packs.get(node, _NONE)
            stays = ~np.isin(_pairs(pack), [dst * 16 + kind for dst, kind in gone])
            left = [
                (dst, kind, *row) for dst, kind in sorted(gone) for row in _left(connection, tenant, node, dst, kind)
            ]
            changed[node] = _merge(pack[stays], np.array(left, PACKED))
        _keep(connection, tenant, changed)

    def unfold(self, connection: Connection, tenant: str, nodes: Sequence[int]) -> None:
        """Forget the packed arrays of nodes whose rows were deleted; deltas take over.

        Each gets a new version, so that no cache takes the new state for the old.
        """
        if not nodes:
            return
        lock(connection, tenant)
        for start in range(0, len(nodes), _CHUNK):
            part = list(nodes[start : start + _CHUNK])
            open_ones = (edges.c.tenant == tenant) & edges.c.src.in_(part) & (edges.c.valid_to == FOREVER)
            connection.execute(update(edges).where(open_ones).values(folded=False))
            blank = [{"tenant": tenant, "node": node, "version": next_id(), "packed": b""} for node in part]
            upsert(connection, adjacency, blank, update=("version", "packed"))


def _apart(rows: Iterable[Any]) -> tuple[dict[int, int], dict[int, list[tuple[Any, ...]]]]:
    """Versions of nodes, and the other rows by node."""
    versions: dict[int, int] = {}
    others: dict[int, list[tuple[Any, ...]]] = {}
    for node, kind, other, weight, at in rows:
        if kind == _VERSION:
            versions[node] = other
        else:
            others.setdefault(node, []).append((kind, other, weight, at))
    return versions, others


def _keep(connection: Connection, tenant: str, packed: Mapping[int, Packed]) -> list[int]:
    """Store arrays; the version of each."""
    rows: list[dict[str, Any]] = [
        # A version that is never met again, also if this is rolled back.
        {"tenant": tenant, "node": node, "version": next_id(), "packed": pack.tobytes()}
        for node, pack in packed.items()
    ]
    upsert(connection, adjacency, rows, update=("version", "packed"))
    return [row["version"] for row in rows]


def _mark(connection: Connection, tenant: str, ids: Sequence[int]) -> None:
    """Note that these are packed."""
    for part in pages(ids):
        _FOLDED.run(connection, {"whose": tenant, "ids": part})


def _left(connection: Connection, tenant: str, node: int, other: int, kind: int) -> list[tuple[float, int, int]]:
    """What is packed between two ends beside what ended: (weight, 1, time) of each row.

    Found from the end that has the fewer edges, since no index holds both.
    """
    near, far = (node, other) if kind in _FORTH else (other, node)
    e = edges.c
    forth = (e.tenant == tenant) & (e.src == near) & (e.dst == far) & (e.valid_to == FOREVER)
    numbers = list(connection.execute(select(e.interaction).where(forth)).scalars())
    found: list[tuple[float, int, int]] = []
    for start in range(0, len(numbers), _CHUNK):
        mine = e.interaction.in_(numbers[start : start + _CHUNK])
        query = select(e.weight, e.at).where(e.tenant == tenant, mine, e.src == node, e.dst == other)
        query = query.where(e.kind == kind, e.folded == true(), e.valid_to == FOREVER)
        found += [(weight, 1, at) for weight, at in connection.execute(query)]
    return found


class _Waiting:
    """Deltas that are to be packed.

    Args:
        rows: Of some nodes, as `_FOLDABLE` tells them.
        new: More of them, which are not stored yet.
        at_least: A node with fewer is left, unless it is named.
        always: Those that are named.

    Attributes:
        nodes: Ascending.
        ids, lines: All their rows, the stored ones by id.
        fresh, sizes: Those rows that hold, node by node, and how many each node has; the others were
            ended, and are only for as-of reads.
    """

    def __init__(
        self, rows: Sequence[Any], new: Sequence[dict[str, Any]], at_least: int, always: Collection[int]
    ) -> None:
        names = ("src", "dst", "kind", "weight", "at", "valid_to")
        every = [row[:1] + row[2:] for row in rows] + [tuple(line[name] for name in names) for line in new]
        src, dst, kind, weight, at, valid_to = zip(*every, strict=True) if every else ((),) * 6
        known, place, count = np.unique(np.array(src, np.int64), return_inverse=True, return_counts=True)
        taken = (count >= at_least) | np.isin(known, list(always))
        mine = taken[place]
        holds = mine & (np.array(valid_to, np.int64) == FOREVER)
        order = np.flatnonzero(holds)[np.argsort(place[holds], kind="stable")]
        self.nodes: list[int] = known[taken].tolist()
        self.ids: list[int] = [row[1] for row, counts in zip(rows, mine[: len(rows)].tolist(), strict=True) if counts]
        self.lines = [line for line, counts in zip(new, mine[len(rows) :].tolist(), strict=True) if counts]
        self.sizes: list[int] = np.bincount(place[holds], minlength=len(known))[taken].tolist()
        self.fresh = np.ones(len(order), PACKED)
        for name, column in (("dst", dst), ("kind", kind), ("weight", weight), ("last", at)):
            self.fresh[name] = np.array(column)[order] if every else 0


def _as_packed(rows: Sequence[tuple[int, int, float, int]]) -> Packed:
    """Rows of (other end, kind, weight, time), one by one, as an array."""
    out = np.ones(len(rows), PACKED)
    for name, column in zip(("dst", "kind", "weight", "last"), zip(*rows, strict=True), strict=False):
        out[name] = column
    return out


def _pairs(rows: Packed) -> Ids:
    """Other end and kind as one number."""
    return rows["dst"].astype(np.int64) * 16 + rows["kind"]


def _merge(base: Packed, fresh: Packed) -> Packed:
    rows = together([base, fresh]) if len(base) else fresh
    if not len(rows):
        return rows
    if len(rows) <= _SMALL:
        return _merge_few(rows)
    _, first, inverse = np.unique(_pairs(rows), return_index=True, return_inverse=True)
    out = np.zeros(len(first), PACKED)
    out["dst"], out["kind"] = rows["dst"][first], rows["kind"][first]
    out["weight"] = np.bincount(inverse, rows["weight"], len(first))
    out["count"] = np.bincount(inverse, rows["count"], len(first))
    last = np.full(len(first), np.iinfo(np.int64).min)
    np.maximum.at(last, inverse, rows["last"])
    out["last"] = last
    return out[np.lexsort((out["dst"], -out["last"]))]


def _merge_each(bases: Sequence[Packed], fresh: Packed, sizes: Sequence[int]) -> list[Packed]:
    """Of each node its array with what is new: so many of the rows of `fresh`, in order.

    As `_merge` does it for one of them, in one go for all.
    """
    if not bases:
        return []
    held, many = [len(base) for base in bases], len(bases)
    rows = together([*bases, fresh])
    node = np.concatenate([np.repeat(np.arange(many), held), np.repeat(np.arange(many), sizes)])
    _, first, inverse = np.unique((node << 36) | _pairs(rows), return_index=True, return_inverse=True)
    out = rows[first]
    out["weight"] = np.bincount(inverse, rows["weight"], len(first))
    out["count"] = np.bincount(inverse, rows["count"], len(first))
    last = np.full(len(first), np.iinfo(np.int64).min)
    np.maximum.at(last, inverse, rows["last"])
    out["last"] = last
    out = out[np.lexsort((out["dst"], -last, node[first]))]
    return np.split(out, np.cumsum(np.bincount(node[first], minlength=many))[:-1])


def _merge_few(rows: Packed) -> Packed:
    """The same one by one: numpy's fixed costs outweigh so few."""
    found: dict[tuple[int, int], tuple[float, int, int]] = {}
    for dst, kind, weight, count, last in rows.tolist():
        old = found.get((dst, kind))
        new = (weight, count, last)
        found[dst, kind] = new if old is None else (old[0] + weight, old[1] + count, max(old[2], last))
    ordered = sorted(found.items(), key=lambda one: (-one[1][2], one[0]))
    return np.array([(*pair, *values) for pair, values in ordered], PACKED)


def pick(packed: Packed, *kinds: Kind) -> Edges:
    """The edges of some kinds, newest first; an end met under two kinds appears once."""
    return unpack(_of_kinds(packed, kinds))


def unpack(rows: Packed) -> Edges:
    """An array's rows as columns."""
    return Edges(
        rows["dst"].astype(np.int64),
        rows["weight"].astype(np.float64),
        rows["count"].astype(np.int64),
        rows["last"].astype(np.int64),
    )


def together(parts: Sequence[Packed]) -> Packed:
    """Rows one after another. As bytes: of rows numpy copies each field by itself, at 20 times the cost."""
    return np.concatenate([np.zeros(0, np.uint8), *(part.view(np.uint8) for part in parts)]).view(PACKED)


def _of_kinds(packed: Packed, kinds: Sequence[Kind]) -> Packed:
    kind = packed["kind"]
    if len(packed) and (kind == kind[0]).all():  # as of most things: who holds it
        kinds = [one for one in kinds if one == kind[0]]
    wanted = np.zeros(len(packed), np.bool_)
    for one in kinds:
        wanted |= (kind == one) & (packed["weight"] > 0) if one in _WEIGHED else kind == one
    rows = packed if wanted.all() else packed[wanted]
    if len(kinds) > 1 and len(rows) and (rows["kind"] != rows["kind"][0]).any():
        plain = rows.copy()
        plain["kind"] = 0
        rows = _merge(_NONE, plain)
    return rows
