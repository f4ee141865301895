"""The one event that a derived item tells of, found again through its lineage.

In:   items with one principal and one source.
Out:  a `Happening` for each whose interaction is still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from collab_layer.graph.derived import Item
from collab_layer.graph.ids import number_of
from collab_layer.graph.tables import cards, entities, interactions
from collab_layer.types.upkeep import Happening

SUBJECTS = frozenset({"topic", "tool"})
"""Kinds of targets about which two things said may both hold: they are what was spoken of, not what was done."""
_CHUNK = 400
Holding = tuple[int, int]


def happenings(connection: Connection, tenant: str, items: Sequence[Item]) -> dict[str, Happening]:
    """What each item tells of, by its id; items that tell of several events, or of none, are left out."""
    single = {item.id: (item.sources[0][0], item.text) for item in items if len(item.sources) == 1}
    numbers = _numbers(connection, tenant, {source for source, _ in single.values()})
    rows = _interactions(connection, tenant, set(numbers.values()))
    holdings = {source: pair for source, _ in single.values() if (pair := _holding(source)) is not None}
    verbs = _verbs(connection, tenant, set(holdings.values()))
    subjects = _subjects(connection, tenant, {row.target for row in rows.values()} | {pair[1] for pair in verbs})
    found: dict[str, Happening] = {}
    for id_, (source, text) in single.items():
        if source in holdings and holdings[source] in verbs:
            found[id_] = _of_holding(holdings[source], verbs[holdings[source]], text, subjects)
        elif numbers.get(source) in rows:
            found[id_] = _of_interaction(rows[numbers[source]], subjects)
    return found


def _of_interaction(row: Any, subjects: frozenset[int]) -> Happening:
    ref = None if row.backend is None or row.native_id is None else (row.backend, row.native_id)
    target = None if row.target in subjects else row.target
    return Happening(row.actor, target, row.verb, row.outcome is not None, row.at, row.id, ref)


def _of_holding(pair: Holding, verbs: Mapping[str, tuple[int, int]], text: str, subjects: frozenset[int]) -> Happening:
    """The newest time that what the text says was done; the verb stands in it as a word."""
    said = set(text.split())
    meant = {verb: when for verb, when in verbs.items() if verb in said} or verbs
    verb, (at, number) = max(meant.items(), key=lambda one: (one[1], one[0]))
    actor, target = pair
    return Happening(actor, None if target in subjects else target, verb, False, at, number)


def _numbers(connection: Connection, tenant: str, sources: Iterable[str]) -> dict[str, int]:
    """Source -> number of its interaction, for interactions and cards."""
    direct = {one: number for one in sources if one.startswith("i") and (number := number_of(one)) is not None}
    card_of = {number: one for one in sources if one.startswith("c") and (number := number_of(one)) is not None}
    wanted = sorted(card_of)
    for start in range(0, len(wanted), _CHUNK):
        query = select(cards.c.id, cards.c.interaction).where(
            cards.c.tenant == tenant, cards.c.id.in_(wanted[start : start + _CHUNK])
        )
        direct.update((card_of[card], number) for card, number in connection.execute(query) if number)
    return direct


def _interactions(connection: Connection, tenant: str, numbers: Iterable[int]) -> dict[int, Any]:
    i = interactions.c
    columns = (i.id, i.actor, i.target, i.verb, i.outcome, i.at, i.backend, i.native_id)
    wanted = sorted(numbers)
    found: dict[int, Any] = {}
    for start in range(0, len(wanted), _CHUNK):
        query = select(*columns).where(i.tenant == tenant, i.id.in_(wanted[start : start + _CHUNK]))
        found.update((row.id, row) for row in connection.execute(query))
    return found


def _holding(source: str) -> Holding | None:
    """Owner and thing of `h<owner>.<thing>`."""
    owner, dot, thing = source[1:].partition(".")
    if not source.startswith("h") or not dot:
        return None
    try:
        return int(owner, 16), int(thing, 16)
    except ValueError:
        return None


def _verbs(connection: Connection, tenant: str, pairs: set[Holding]) -> dict[Holding, dict[str, tuple[int, int]]]:
    """What each owner did to each thing: verb -> (newest time, newest number)."""
    i = interactions.c
    things: dict[int, list[int]] = {}
    for owner, thing in sorted(pairs):
        things.setdefault(owner, []).append(thing)
    found: dict[Holding, dict[str, tuple[int, int]]] = {}
    for owner, held in things.items():
        for start in range(0, len(held), _CHUNK):
            query = (
                select(i.target, i.verb, func.max(i.at), func.max(i.id))
                .where(i.tenant == tenant, i.actor == owner, i.target.in_(held[start : start + _CHUNK]))
                .group_by(i.target, i.verb)
            )
            for thing, verb, at, number in connection.execute(query):
                found.setdefault((owner, thing), {})[verb] = (at, number)
    return found


def _subjects(connection: Connection, tenant: str, targets: Iterable[int | None]) -> frozenset[int]:
    wanted = sorted(target for target in targets if target is not None)
    found: set[int] = set()
    for start in range(0, len(wanted), _CHUNK):
        query = select(entities.c.id).where(
            entities.c.tenant == tenant,
            entities.c.id.in_(wanted[start : start + _CHUNK]),
            entities.c.kind.in_(SUBJECTS),
        )
        found.update(connection.execute(query).scalars())
    return frozenset(found)
