"""What is derived of edges, compared with the edges themselves, and put right.

In:   a range of nodes of one tenant, a moment.
Out:  what is wrong there: edges whose record is gone or holds no more, packed arrays that
      disagree with the rows they were packed from, wrong counts of distinct targets.
Normally nothing is. Each node answers for its own side of an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, bindparam, delete, exists, select, update

from collab_layer.graph.adjacency import PACKED, Adjacency, Kind, Packed
from collab_layer.graph.names import bump, lock
from collab_layer.graph.tables import adjacency, cards, edges, entities, interactions, tenants, work
from collab_layer.types.time import FOREVER

_CHUNK = 400
_NEAR = 1e-9
"""Sums of weights depend on the order in which they were added."""
_SAID = (int(Kind.MENTIONS), int(Kind.MENTIONED_BY))
_HELD = (int(Kind.INTERACTED), int(Kind.MENTIONS))


@dataclass(slots=True)
class Wrong:
    """What is to be put right in a range of nodes.

    Attributes:
        erased: Edges whose interaction or other end is gone.
        over: Edge -> end of the record that named it.
        packs: Nodes whose packed array does not tell what the rows tell.
        degrees: Entity -> distinct targets.
    """

    erased: list[int] = field(default_factory=list[int])
    over: dict[int, int] = field(default_factory=dict[int, int])
    packs: list[int] = field(default_factory=list[int])
    degrees: dict[int, int] = field(default_factory=dict[int, int])
    touched: set[int] = field(default_factory=set[int])

    def __bool__(self) -> bool:
        return any((self.erased, self.over, self.packs, self.degrees))

    @property
    def counts(self) -> dict[str, int]:
        """By kind, named as in `Consolidation`."""
        return {
            "edges": len(self.erased) + len(self.over),
            "packs": len(self.packs),
            "degrees": len(self.degrees),
        }


def last_node(connection: Connection, tenant: str) -> int:
    """The highest dense id that was given out."""
    return (connection.execute(select(tenants.c.next_entity).where(tenants.c.tenant == tenant)).scalar() or 1) - 1


def look(connection: Connection, tenant: str, nodes: range, now: int) -> Wrong:
    """What is wrong at these nodes; entities with pending work are counted anew by that."""
    wrong = Wrong()
    here = and_(edges.c.tenant == tenant, edges.c.src >= nodes.start, edges.c.src < nodes.stop)
    rows = connection.execute(_edges_with_records(here)).all()
    _look_at_records(connection, tenant, rows, now, wrong)
    of: dict[int, list[Any]] = {}
    for row in rows:
        of.setdefault(row.src, []).append(row)
    packs = _packs(connection, tenant, nodes)
    for node in sorted({*packs, *of}):
        packed = [row for row in of.get(node, ()) if row.folded and row.valid_to == FOREVER]
        if not _agrees(packs.get(node, b""), packed):
            wrong.packs.append(node)
    gone = {*wrong.erased, *wrong.over}
    for entity, degree in _degrees(connection, tenant, nodes):
        count = len({row.dst for row in of.get(entity, ()) if _counts(row, now) and row.id not in gone})
        if count != degree:
            wrong.degrees[entity] = count
    return wrong


def _look_at_records(connection: Connection, tenant: str, rows: Sequence[Any], now: int, wrong: Wrong) -> None:
    known = set(_entities(connection, tenant, {row.dst for row in rows} | {row.src for row in rows}))
    for row in rows:
        if (row.interaction and row.actor is None) or row.src not in known or row.dst not in known:
            wrong.erased.append(row.id)
        elif row.kind in _SAID and row.record_end is not None and row.record_end <= now < row.valid_to:
            wrong.over[row.id] = row.record_end
        else:
            continue
        wrong.touched.add(row.src)


def mend(connection: Connection, adjacent: Adjacency, tenant: str, wrong: Wrong) -> None:
    """Put it right, in the caller's transaction."""
    lock(connection, tenant)
    for start in range(0, len(wrong.erased), _CHUNK):
        part = edges.c.id.in_(wrong.erased[start : start + _CHUNK])
        connection.execute(delete(edges).where(edges.c.tenant == tenant, part))
    if wrong.over:
        this = (edges.c.tenant == tenant) & (edges.c.id == bindparam("edge"))
        ends = [{"edge": edge, "until": end} for edge, end in wrong.over.items()]
        connection.execute(update(edges).where(this).values(valid_to=bindparam("until")), ends)
    nodes = sorted({*wrong.packs, *wrong.touched})
    adjacent.unfold(connection, tenant, nodes)
    adjacent.fold(connection, tenant, nodes)
    if wrong.degrees:
        _, rev = bump(connection, tenant)
        this = (entities.c.tenant == tenant) & (entities.c.id == bindparam("entity"))
        counts = [{"entity": entity, "count": count} for entity, count in wrong.degrees.items()]
        connection.execute(update(entities).where(this).values(degree=bindparam("count"), rev=rev), counts)


def _edges_with_records(here: Any) -> Any:
    """Edges with whose interaction it is, and when the record made of that ends."""
    i, c, e = interactions.c, cards.c, edges.c
    acts = and_(i.tenant == e.tenant, i.id == e.interaction)
    record = and_(c.tenant == e.tenant, c.interaction == e.interaction, e.interaction > 0)
    columns = (e.id, e.src, e.dst, e.kind, e.weight, e.at, e.valid_to, e.folded, e.interaction, i.actor)
    joined = edges.outerjoin(interactions, acts).outerjoin(cards, record)
    return select(*columns, c.valid_to.label("record_end")).select_from(joined).where(here)


def _counts(row: Any, now: int) -> bool:
    return row.kind in _HELD and row.weight > 0 and (row.valid_to == FOREVER or (row.valid_to > now and not row.folded))


def _entities(connection: Connection, tenant: str, ids: set[int]) -> list[int]:
    wanted, found = sorted(ids), list[int]()
    for start in range(0, len(wanted), _CHUNK):
        part = entities.c.id.in_(wanted[start : start + _CHUNK])
        found += connection.execute(select(entities.c.id).where(entities.c.tenant == tenant, part)).scalars()
    return found


def _packs(connection: Connection, tenant: str, nodes: range) -> dict[int, bytes]:
    """The packed arrays as they are stored, past every cache."""
    a = adjacency.c
    rows = connection.execute(
        select(a.node, a.packed).where(a.tenant == tenant, a.node >= nodes.start, a.node < nodes.stop)
    )
    return {row.node: bytes(row.packed) for row in rows}


def _degrees(connection: Connection, tenant: str, nodes: range) -> Sequence[tuple[int, int]]:
    """Entities whose count is to be right now: those that no work is waiting for."""
    e = entities.c
    waits = exists().where(work.c.tenant == e.tenant, work.c.entity == e.id)
    query = select(e.id, e.degree).where(e.tenant == tenant, e.id >= nodes.start, e.id < nodes.stop, ~waits)
    return [(row.id, row.degree) for row in connection.execute(query)]


def _agrees(blob: bytes, rows: Sequence[Any]) -> bool:
    """Whether a packed array tells exactly what the rows it was packed from tell."""
    if len(blob) % PACKED.itemsize:
        return False
    found: Packed = np.frombuffer(blob, PACKED)
    told: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        weight, count, last = told.get((row.dst, row.kind), (0.0, 0, row.at))
        told[row.dst, row.kind] = [weight + row.weight, count + 1, max(last, row.at)]
    keys = list(zip(found["dst"].tolist(), found["kind"].tolist(), strict=True))
    if len(keys) != len(told) or set(keys) != told.keys():
        return False
    expected = np.array([told[key] for key in keys]).reshape(-1, 3)
    order = np.lexsort((found["dst"], -found["last"]))
    return bool(
        np.allclose(found["weight"], expected[:, 0], rtol=_NEAR, atol=_NEAR)
        and np.array_equal(found["count"], expected[:, 1])
        and np.array_equal(found["last"], [told[key][2] for key in keys])
        and np.array_equal(found["last"], found["last"][order])
    )
