"""Until when a memory holds: its versions, and the statements that others took the place of.

In:   interactions of one tenant, in the caller's transaction.
Out:  the end of each, by what is told by now; cards and edges brought to it, what rests on what is
      over dropped.

What something took the place of is over in the present as soon as that is told, also where a store's
clock runs ahead of ours; the past is read by the times alone.

An end is a function of the set of interactions, whatever the order they were told in: a version
holds until the next later one of the same memory, a statement until the earliest that replaces it.
Of versions with the same time the one told last counts. A record's own end, `cards.ends`, holds
where it is earlier. Only what the same owner told counts: a reference to somebody else's memory ends
nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, select, tuple_, update

from collab_layer.graph import derived
from collab_layer.graph.adjacency import Adjacency, Kind
from collab_layer.graph.among import one_of
from collab_layer.graph.cards import card_id
from collab_layer.graph.ids import interaction_id
from collab_layer.graph.lean import Lean
from collab_layer.graph.names import bump
from collab_layer.graph.reader import holding_id
from collab_layer.graph.tables import cards, edges, interactions
from collab_layer.types.time import FOREVER

_CHUNK = 200
_LASTING = (int(Kind.MEMBER_OF), int(Kind.HAS_MEMBER))
"""Edges that end by an event of their own."""
_I = interactions.c
_REPLACED = Lean(
    select(_I.replaces, func.min(_I.at))
    .where(_I.tenant == bindparam("tenant"), one_of(_I.replaces, "these"))
    .group_by(_I.replaces)
)
Ref = tuple[str, str]
Told = tuple[str, str, int]
"""Backend, native id, and who told of it."""


def ends(
    connection: Connection, tenant: str, numbers: Iterable[int], refs: Iterable[Ref] | None = None
) -> dict[int, int]:
    """When each of these interactions was over, by later versions and statements; `FOREVER` if it is not.

    Args:
        connection: A snapshot, or the caller's transaction.
        tenant: Whose.
        numbers: The interactions.
        refs: The memories that they tell of, where the caller knows.
    """
    wanted = sorted(set(numbers))
    found = dict.fromkeys(wanted, FOREVER)
    for part in _parts(wanted):
        found.update(_REPLACED.tuples(connection, {"tenant": tenant, "these": part}))
    memories = _refs_of(connection, tenant, wanted) if refs is None else refs
    for number, end in of_memories(connection, tenant, memories).items():
        if number in found:
            found[number] = min(found[number], end)
    return found


def of_memories(connection: Connection, tenant: str, refs: Iterable[Ref]) -> dict[int, int]:
    """When each version of these memories was over: interaction -> the time of the next version."""
    found: dict[int, int] = {}
    for versions in told(connection, tenant, refs).values():
        found[versions[-1].id] = FOREVER
        found.update((one.id, later.at) for one, later in pairwise(versions))
    return found


def told(connection: Connection, tenant: str, refs: Iterable[Ref]) -> dict[Told, list[Any]]:
    """What each owner told of these memories, oldest first: rows of (id, version, at, recorded_at)."""
    wanted = sorted(set(refs))
    found: dict[Told, list[Any]] = {}
    i = interactions.c
    for start in range(0, len(wanted), _CHUNK):
        query = (
            select(i.id, i.backend, i.native_id, i.version, i.at, i.recorded_at, i.actor)
            .where(i.tenant == tenant, tuple_(i.backend, i.native_id).in_(wanted[start : start + _CHUNK]))
            .order_by(i.at, i.id)
        )
        for row in connection.execute(query):
            found.setdefault((row.backend, row.native_id, row.actor), []).append(row)
    return found


def replaced_by(connection: Connection, tenant: str, numbers: Iterable[int]) -> list[int]:
    """What these interactions took the place of."""
    i, found = interactions.c, list[int]()
    for part in _parts(numbers):
        query = select(i.replaces).where(i.tenant == tenant, i.id.in_(part), i.replaces.is_not(None))
        found += connection.execute(query).scalars()
    return found


def versions_of(connection: Connection, tenant: str, number: int) -> list[int]:
    """The interactions that told of the same memory of the same owner; itself alone if it told of none."""
    i = interactions.c
    query = select(i.actor, i.backend, i.native_id).where(i.tenant == tenant, i.id == number)
    row = connection.execute(query).first()
    if row is None or row.backend is None:
        return [number]
    versions = told(connection, tenant, [(row.backend, row.native_id)])[row.backend, row.native_id, row.actor]
    return [version.id for version in versions]


def bring(connection: Connection, adjacency: Adjacency, tenant: str, told: Mapping[int, int], now: int) -> bool:
    """Let cards and edges hold until something took their place, or until their own end; whether anything changed.

    What was derived of anything that is over is dropped; updates of what will be over end with it.

    Args:
        connection: The caller's transaction.
        adjacency: Packed arrays are brought along.
        tenant: Whose.
        told: Interaction -> when something took its place, `FOREVER` where nothing did; see `ends`.
        now: The present.
    """
    if not told:
        return False
    held = _cards_of(connection, tenant, told)
    own = {card.interaction: card.ends for card in held}
    wanted = {number: _End.of(end, own.get(number, FOREVER), now) for number, end in told.items()}
    moved = [card for card in held if wanted[card.interaction] != _End(card.valid_to, card.superseded is not None)]
    lines = [row for row in _edges_of(connection, tenant, told) if not _agrees(row, wanted[row.interaction])]
    if not moved and not lines:
        return False
    _, rev = bump(connection, tenant)
    _write_cards(connection, tenant, moved, wanted, now, rev)
    _write_edges(connection, adjacency, tenant, lines, wanted)
    changed = {card.interaction for card in moved} | {row.interaction for row in lines}
    _end_derived(connection, tenant, {number: wanted[number] for number in changed}, held)
    return True


def run_out(connection: Connection, tenant: str, now: int, most: int = 500) -> list[int]:
    """Interactions whose records ended by themselves since this was last noted."""
    c = cards.c
    limited = c.valid_to < bindparam("forever", FOREVER, literal_execute=True)  # else no partial index is used
    query = (
        select(c.interaction).where(c.tenant == tenant, c.superseded.is_(None), limited, c.valid_to <= now).limit(most)
    )
    return list(connection.execute(query).scalars())


def _refs_of(connection: Connection, tenant: str, numbers: Iterable[int]) -> set[Ref]:
    i, found = interactions.c, set[Ref]()
    for part in _parts(numbers):
        known = select(i.backend, i.native_id).where(i.tenant == tenant, i.id.in_(part), i.backend.is_not(None))
        found.update((row.backend, row.native_id) for row in connection.execute(known))
    return found


# -- parts -----------------------------------------------------------------------------


class _End(NamedTuple):
    """Until when something holds, and whether it is over in the present."""

    valid_to: int
    over: bool

    @classmethod
    def of(cls, told: int, own: int, now: int) -> _End:
        return cls(min(told, own), told < FOREVER or own <= now)


def _agrees(row: Any, end: _End) -> bool:
    """Whether an edge ends so; one that is over is in no delta, one that will be over is in no array."""
    return row.valid_to == end.valid_to and (end.valid_to == FOREVER or row.folded == end.over)


def _cards_of(connection: Connection, tenant: str, numbers: Iterable[int]) -> list[Any]:
    c, found = cards.c, list[Any]()
    for part in _parts(numbers):
        query = select(c.id, c.interaction, c.owner, c.valid_to, c.ends, c.superseded)
        found += connection.execute(query.where(c.tenant == tenant, c.interaction.in_(part))).all()
    return found


def _edges_of(connection: Connection, tenant: str, numbers: Iterable[int]) -> list[Any]:
    e, found = edges.c, list[Any]()
    for part in _parts(numbers):
        query = select(e.id, e.src, e.dst, e.kind, e.weight, e.at, e.valid_to, e.folded, e.interaction)
        mine = (e.tenant == tenant) & e.interaction.in_(part) & e.kind.not_in(_LASTING)
        found += connection.execute(query.where(mine)).all()
    return found


def _write_cards(
    connection: Connection, tenant: str, held: Sequence[Any], wanted: Mapping[int, _End], now: int, rev: int
) -> None:
    rows = [
        {"card": card.id, "until": end.valid_to, "noted": (card.superseded or now) if end.over else None}
        for card in held
        for end in [wanted[card.interaction]]
    ]
    if rows:
        here = (cards.c.tenant == tenant) & (cards.c.id == bindparam("card"))
        ended = update(cards).where(here).values(valid_to=bindparam("until"), superseded=bindparam("noted"), rev=rev)
        connection.execute(ended, rows)


def _write_edges(
    connection: Connection, adjacency: Adjacency, tenant: str, lines: Sequence[Any], wanted: Mapping[int, _End]
) -> None:
    if not lines:
        return
    rows = [
        {"edge": row.id, "until": end.valid_to, "packed": end.over}
        for row in lines
        for end in [wanted[row.interaction]]
    ]
    here = (edges.c.tenant == tenant) & (edges.c.id == bindparam("edge"))
    ended = update(edges).where(here).values(valid_to=bindparam("until"), folded=bindparam("packed"))
    connection.execute(ended, rows)
    adjacency.ended(connection, tenant, [row for row in lines if row.valid_to == FOREVER])


def _end_derived(connection: Connection, tenant: str, ends: Mapping[int, _End], held: Sequence[Any]) -> None:
    _drop_derived(connection, tenant, [number for number, end in ends.items() if end.over], held)
    ahead: dict[int, list[int]] = {}
    for number, end in ends.items():
        if not end.over and end.valid_to < FOREVER:
            ahead.setdefault(end.valid_to, []).append(number)
    for valid_to, numbers in ahead.items():
        sources, _ = _sources(connection, tenant, numbers, held)
        derived.end_by(connection, tenant, sorted(derived.descendants(connection, tenant, sources)), valid_to)


def _drop_derived(connection: Connection, tenant: str, numbers: Sequence[int], held: Sequence[Any]) -> None:
    if not numbers:
        return
    sources, owners = _sources(connection, tenant, numbers, held)
    items = derived.descendants(connection, tenant, sources)
    derived.drop(connection, tenant, sorted(items), frozenset(owners))


def _sources(
    connection: Connection, tenant: str, numbers: Sequence[int], held: Sequence[Any]
) -> tuple[list[str], set[int]]:
    """What may stand in a lineage for these interactions, and whose they are."""
    i, sources, owners = interactions.c, list[str](), set[int]()
    for part in _parts(numbers):
        for row in connection.execute(select(i.id, i.actor, i.target).where(i.tenant == tenant, i.id.in_(part))):
            sources.append(interaction_id(row.id))
            owners.add(row.actor)
            if row.target is not None:
                sources.append(holding_id(row.actor, row.target))
    mine = set(numbers)
    sources += [card_id(card.id) for card in held if card.interaction in mine]
    return sources, owners


def _parts(numbers: Iterable[int]) -> Iterable[list[int]]:
    wanted = sorted(set(numbers))
    return (wanted[start : start + _CHUNK] for start in range(0, len(wanted), _CHUNK))
