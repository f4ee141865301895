"""From when to when what derived items rest on holds.

In:   ids of sources as they stand in a lineage, in the caller's transaction.
Out:  the span of each that is known; items that end with the first of their sources that ends.

What something took the place of is over, whatever its own end; other derived items have no span
of their own here, since what they rest on is named beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, select

from collab_layer.graph.adjacency import Kind
from collab_layer.graph.cards import card_id
from collab_layer.graph.derived import Item
from collab_layer.graph.ids import interaction_id, number_of
from collab_layer.graph.reader import holding_id
from collab_layer.graph.tables import cards, edges
from collab_layer.types.time import FOREVER

_CHUNK = 400
_C = cards.c
_THESE: BindParameter[Any] = bindparam("these", expanding=True)
_BY = [
    (letter, name, select(column, _C.at, _C.valid_to, _C.superseded).where(_C.tenant == bindparam("tenant"), here))
    for letter, column, name in (("c", _C.id, card_id), ("i", _C.interaction, interaction_id))
    for here in [column.in_(_THESE)]
]
_E = edges.c
_DONE = (
    select(_E.dst, _E.at, _E.valid_to, _E.folded)
    .where(_E.tenant == bindparam("tenant"), _E.src == bindparam("owner"), _E.dst.in_(_THESE))
    .where(_E.kind == int(Kind.INTERACTED), _E.weight > 0)
    .order_by(_E.at)
)


class Held(NamedTuple):
    """From `at`, inclusive, to `valid_to`, exclusive; microseconds."""

    at: int
    valid_to: int


def held(connection: Connection, tenant: str, sources: Iterable[str]) -> dict[str, Held]:
    """When each of these sources holds; those that are nothing of their own are left out."""
    wanted = set(sources)
    found = _records(connection, tenant, wanted)
    found.update(_holdings(connection, tenant, [one for one in wanted if one.startswith("h")]))
    return found


def span(item: Item, spans: Mapping[str, Held]) -> Held:
    """When an item holds by all that it rests on: from the last that began, to the first that ends."""
    on = [spans[source] for source, _, _ in item.sources if source in spans]
    begin = max((one.at for one in on), default=item.at)
    return Held(begin, min([item.expires, *(one.valid_to for one in on)]))


def capped(connection: Connection, tenant: str, items: Sequence[Item], now: int) -> list[Item]:
    """Items that hold, each at most as long as what it rests on."""
    spans = held(connection, tenant, [source for item in items for source, _, _ in item.sources])
    ends = ((item, span(item, spans).valid_to) for item in items)
    return [item if end == item.expires else replace(item, expires=end) for item, end in ends if end > now]


def _records(connection: Connection, tenant: str, sources: Iterable[str]) -> dict[str, Held]:
    """Cards by their own ids and by those of the interactions that told of them."""
    found: dict[str, Held] = {}
    for letter, name, query in _BY:
        mine = [one for one in sources if one.startswith(letter)]
        numbers = sorted(number for one in mine if (number := number_of(one)) is not None)
        for start in range(0, len(numbers), _CHUNK):
            given = {"tenant": tenant, "these": numbers[start : start + _CHUNK]}
            for number, at, end, noted in connection.execute(query, given):
                found[name(number)] = Held(at, end if noted is None else min(end, noted))
    return found


def _holdings(connection: Connection, tenant: str, sources: Iterable[str]) -> dict[str, Held]:
    """Holdings by what was done to the thing and still counts; over at once where nothing does."""
    things: dict[int, list[int]] = {}
    for source in sources:
        owner, _, thing = source[1:].partition(".")
        things.setdefault(int(owner, 16), []).append(int(thing, 16))
    found: dict[str, Held] = {}
    for owner, targets in things.items():
        for start in range(0, len(targets), _CHUNK):
            part = {"tenant": tenant, "owner": owner, "these": targets[start : start + _CHUNK]}
            for row in connection.execute(_DONE, part):
                over = row.folded and row.valid_to < FOREVER
                one, key = Held(row.at, row.at if over else row.valid_to), holding_id(owner, row.dst)
                before = found.get(key)
                if before is None or before.valid_to < one.valid_to:
                    found[key] = one
    return found


__all__ = ["Held", "capped", "held", "span"]
