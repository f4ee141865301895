"""The lineage graph, read a generation at a time and guarded when it is written.

In:   a tenant and ids of derived items.
Out:  sources of many items in one query, the strongest of each; how items and records stand now.
      What is to be stored is refused where it would make a cycle, and trusted no more than its sources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, case, func, select

from collab_layer.governance.lineage import trust_of
from collab_layer.graph.tables import cards, derived, interactions, lineage

_CHUNK = 400

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """One row of the lineage: what it is, whose, and its share."""

    id: str
    principal: int
    weight: float


@dataclass(frozen=True, slots=True)
class Head:
    """A derived item without its sources."""

    id: str
    owner: int
    kind: str
    text: str
    level: int
    made_by: str
    trust: float
    at: int
    expires: int
    superseded: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """How a card stands: what it says comes from `graph.cards`."""

    owner: int
    at: int
    valid_to: int
    over: bool
    held: bool


@dataclass(frozen=True, slots=True)
class Said:
    """An interaction."""

    actor: int
    verb: str
    at: int
    text: str | None
    backend: str | None
    native_id: str | None
    version: str | None


def sources(
    connection: Connection, tenant: str, items: Sequence[str], width: int
) -> dict[str, tuple[list[Source], int]]:
    """Of each item its strongest sources, derived ones before the others, and how many it has in all."""
    n = lineage.c
    found: dict[str, tuple[list[Source], int]] = {}
    for part in _chunks(items):
        first = case((n.source.like("d%"), 0), else_=1)
        place = func.row_number().over(partition_by=n.item, order_by=(first, n.weight.desc(), n.source))
        total = func.count().over(partition_by=n.item)
        rows = select(n.item, n.source, n.principal, n.weight, place.label("place"), total.label("total"))
        inner = rows.where(n.tenant == tenant, n.item.in_(part)).subquery()
        for row in connection.execute(select(inner).where(inner.c.place <= width)):
            of = found.setdefault(row.item, ([], row.total))
            of[0].append(Source(row.source, row.principal, row.weight))
    for of, _ in found.values():
        of.sort(key=lambda one: (-one.weight, one.id))
    return found


def heads(connection: Connection, tenant: str, items: Sequence[str]) -> dict[str, Head]:
    """Derived items by id; those that are not there are left out."""
    d = derived.c
    columns = (d.id, d.owner, d.kind, d.text, d.level, d.made_by, d.trust, d.at, d.expires, d.superseded)
    found: dict[str, Head] = {}
    for part in _chunks(items):
        rows = connection.execute(select(*columns).where(d.tenant == tenant, d.id.in_(part)))
        found.update((row.id, Head(*row)) for row in rows)
    return found


def principals(connection: Connection, tenant: str, items: Sequence[str]) -> dict[str, set[int]]:
    """Everybody behind each item."""
    n = lineage.c
    found: dict[str, set[int]] = {}
    for part in _chunks(items):
        query = select(n.item, n.principal).where(n.tenant == tenant, n.item.in_(part)).distinct()
        for item, principal in connection.execute(query):
            found.setdefault(item, set()).add(principal)
    return found


def records(connection: Connection, tenant: str, numbers: Sequence[int]) -> dict[int, Record]:
    """How cards stand; those that are not there were erased."""
    c = cards.c
    found: dict[int, Record] = {}
    for part in _chunks(numbers):
        query = select(c.id, c.owner, c.at, c.valid_to, c.superseded, c.quarantine)
        for row in connection.execute(query.where(c.tenant == tenant, c.id.in_(part))):
            found[row.id] = Record(
                row.owner, row.at, row.valid_to, row.superseded is not None, row.quarantine is not None
            )
    return found


def said(connection: Connection, tenant: str, numbers: Sequence[int]) -> dict[int, Said]:
    """Interactions by number."""
    i = interactions.c
    found: dict[int, Said] = {}
    for part in _chunks(numbers):
        query = select(i.id, i.actor, i.verb, i.at, i.text, i.backend, i.native_id, i.version)
        for row in connection.execute(query.where(i.tenant == tenant, i.id.in_(part))):
            found[row.id] = Said(*row[1:])
    return found


def held_back(connection: Connection, tenant: str, numbers: Sequence[int]) -> set[int]:
    """Those of the interactions whose words are in quarantine."""
    c = cards.c
    found: set[int] = set()
    for part in _chunks(numbers):
        where = (c.tenant == tenant) & c.interaction.in_(part) & c.quarantine.is_not(None)
        found.update(connection.execute(select(c.interaction).where(where)).scalars())
    return found


def trusted(
    connection: Connection, tenant: str, fresh: Mapping[str, Collection[str]], own: Mapping[str, float]
) -> dict[str, float]:
    """How far items that are about to be stored may be trusted: no more than anything that they rest on.

    Args:
        connection: Inside the transaction that stores them.
        tenant: Whose.
        fresh: Item to the derived items it is to rest on.
        own: How far each is trusted by itself.

    Raises:
        LineageCycleError: One would rest on itself.
    """
    rests_on = {item: set(of) for item, of in fresh.items()}
    trust = dict(own)
    front = {source for of in rests_on.values() for source in of} - rests_on.keys()
    while front:
        ids = sorted(front)
        trust.update((head.id, head.trust) for head in heads(connection, tenant, ids).values())
        rests_on.update((item, set[str]()) for item in ids)
        for item, source in _parents(connection, tenant, ids):
            rests_on[item].add(source)
        front = {source for item in ids for source in rests_on[item]} - rests_on.keys()
    return trust_of(rests_on, trust)


def _parents(connection: Connection, tenant: str, items: Sequence[str]) -> list[tuple[str, str]]:
    n = lineage.c
    found: list[tuple[str, str]] = []
    for part in _chunks(items):
        query = select(n.item, n.source).where(n.tenant == tenant, n.item.in_(part), n.source.like("d%"))
        found += [(row.item, row.source) for row in connection.execute(query)]
    return found


def _chunks(values: Sequence[T]) -> Iterator[list[T]]:
    return (list(values[start : start + _CHUNK]) for start in range(0, len(values), _CHUNK))
