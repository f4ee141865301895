"""Lives to be told in any order: what happened when, told to a layer, and what the layer answers."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from collab_layer.config import Settings
from collab_layer.errors import UnknownIdError
from collab_layer.ports.backend import Change
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.entity import MemoryRecord, MemoryRef
from collab_layer.types.facet import CollabMemory, FacetKind
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Sharing

START = datetime(2026, 1, 1, tzinfo=UTC)
OWNERS = ("user:ann", "user:bob", "agent:cy", "user:dee")
THINGS = ("item:dune", "item:emma", "tool:sqlite", "topic:go-modul", "user:bob")
STORES = ("mem", "graph")
QUERIES = (None, "go modules conflict", "which database is used, SQLite or PostgreSQL")
SAID = (
    "We moved the service from PostgreSQL to SQLite last week",
    "SQLite locks the file while Go modules are built",
    "Go module proxy was down, the build of go modules failed",
    "Fixed the Go modules conflict by pinning golang.org/x/net",
    "PostgreSQL is the database of the billing service",
    "Dune is long, and slow in the middle",
    "Emma is a slow book about a small town",
    "The Okta certificate broke the SSO login loop",
    "Модули Go не собираются после обновления SQLite",
    "Reading Dune in the train, then Emma",
)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens; `of` is the number of an earlier event that it replaces or edits."""

    kind: str
    owner: str
    text: str | None = None
    target: str | None = None
    links: tuple[str, ...] = ()
    of: int | None = None
    store: str = STORES[0]
    ends: int | None = None
    """Hours after the beginning at which a stored memory ends by itself."""


@dataclass(frozen=True, slots=True)
class Life:
    """Events, the n-th at `moment(n)`; what each owner lets the others do; in which order it is told.

    Attributes:
        order: A permutation of the events in which what is replaced comes before what replaces it.
        pauses: Numbers of told events after which everything is worked off.
        looks: (number of an event, whose neighbours, number of a query): read when that had just happened.
        open: Whether everybody may read everybody, so that nobody is known before an event names it.
    """

    events: tuple[Event, ...]
    levels: tuple[str | None, ...]
    order: tuple[int, ...]
    pauses: frozenset[int]
    looks: tuple[tuple[int, str, int], ...]
    open: bool = False


def moment(number: float) -> datetime:
    """When the n-th event happens."""
    return START + timedelta(hours=number)


@st.composite
def lives(
    draw: st.DrawFn, *, most: int = 14, levels: Sequence[str | None] = ("records", "records", None), looks: int = 6
) -> Life:
    """Lives of four owners with two stores; most are looked at when much has happened already."""
    size = most - draw(st.integers(0, most - 3))
    events: list[Event] = []
    for number in range(size):
        events.append(_event(draw, number, events))
    order = _order(draw, events)
    pauses = frozenset(draw(st.sets(st.integers(0, size - 1), max_size=4)))
    when = st.integers(0, size - 1).map(lambda back: size - 1 - back)
    asked = st.tuples(when, st.sampled_from(OWNERS), st.integers(0, len(QUERIES) - 1))
    everybody = draw(st.integers(0, 3)) == 3
    return Life(
        tuple(events),
        tuple(draw(st.sampled_from(levels)) for _ in OWNERS),
        order,
        pauses,
        tuple(
            look
            for look in draw(st.lists(asked, min_size=looks // 2, max_size=looks, unique=True))
            if not everybody or _named(look[1], events[: look[0] + 1])
        ),
        everybody,
    )


def _named(owner: str, events: Sequence[Event]) -> bool:
    """Whether any of the events named the owner; a reader that none did is unknown."""
    return any(owner in (event.owner, event.target, *event.links) for event in events)


def _event(draw: st.DrawFn, number: int, before: Sequence[Event]) -> Event:
    said = [at for at, event in enumerate(before) if event.kind in ("say", "replace")]
    kept = [at for at, event in enumerate(before) if event.kind == "add"]
    kinds = ["say", "say", "add", "join", "leave", *(["replace"] if said else []), *(["edit", "edit"] if kept else [])]
    kind = draw(st.sampled_from(kinds))
    owner = draw(st.sampled_from(OWNERS))
    links = tuple(draw(st.lists(st.sampled_from(THINGS), max_size=2, unique=True)))
    if kind in ("join", "leave"):
        return Event(kind, owner, target="team:red")
    text = draw(st.sampled_from(SAID)) + f", {number}"
    if kind == "replace":
        of = draw(st.sampled_from(said))
        return Event(kind, before[of].owner, text, links=links, of=of)
    if kind == "edit":
        of = draw(st.sampled_from(kept))
        return Event(kind, before[of].owner, text, of=of, store=before[of].store)
    if kind == "add":
        ends = number + draw(st.integers(1, 6)) if draw(st.integers(0, 4)) == 0 else None
        return Event(kind, owner, text, links=links, store=draw(st.sampled_from(STORES)), ends=ends)
    target = draw(st.sampled_from((None, *THINGS)))
    worded = target is None or draw(st.booleans())
    return Event(kind, owner, text if worded else None, target=target, links=links)


def _order(draw: st.DrawFn, events: Sequence[Event]) -> tuple[int, ...]:
    order: list[int] = []
    for number in draw(st.permutations(range(len(events)))):
        _with_replaced(number, events, order)
    return tuple(order)


def _with_replaced(number: int, events: Sequence[Event], order: list[int]) -> None:
    if number in order:
        return
    event = events[number]
    if event.kind == "replace" and event.of is not None:
        _with_replaced(event.of, events, order)
    order.append(number)


class Ending(InMemoryBackend):
    """A store whose memories may have an end of their own."""

    def __init__(self, name: str, clock: FixedClock) -> None:
        super().__init__(name, clock=clock)
        self.ends: dict[tuple[str, str], datetime] = {}

    def _record(self, memory: Any, version: Any = None, score: float | None = None) -> MemoryRecord:
        record = super()._record(memory, version, score)
        return record.model_copy(update={"valid_to": self.ends.get((record.ref.id, record.ref.version))})

    def record(self, ref: MemoryRef) -> MemoryRecord:
        """As it is now."""
        return self._record(self._memories[ref.id])


@dataclass(slots=True)
class Told:
    """A layer that is told a life, event by event."""

    life: Life
    layer: CollabLayer
    clock: FixedClock
    stores: dict[str, Ending]
    ids: dict[int, str] = field(default_factory=dict)
    refs: dict[int, MemoryRef] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)

    def happen(self, number: int) -> None:
        """Let an event happen in its store, if it does in one; the layer is not told yet."""
        event = self.life.events[number]
        store = self.stores[event.store]
        if event.kind == "add":
            ref = store.add(event.owner, event.text, event.links, at=moment(number))
        elif event.kind == "edit":
            ref = store.edit(self.refs[event.of], event.text, at=moment(number))
        else:
            return
        if event.ends is not None:
            store.ends[ref.id, ref.version] = moment(event.ends)
        self.refs[number] = ref
        self.changes[number] = Change(ref, store.record(ref))

    def tell(self, number: int) -> None:
        """Tell the layer of an event."""
        event = self.life.events[number]
        if number in self.changes:
            self.layer.observe_changes(event.store, [self.changes[number]])
            return
        verb = {"join": "joined", "leave": "left"}.get(event.kind, "noted")
        [self.ids[number]] = self.layer.observe(
            Interaction(
                actor=event.owner,
                target=event.target if event.target != event.owner else None,
                verb=verb,
                text=event.text,
                links=tuple(link for link in event.links if link != event.owner),
                at=moment(number),
                replaces=None if event.of is None else self.ids[event.of],
            )
        )


@contextmanager
def told(life: Life, folder: Path, template: Path) -> Iterator[Told]:
    """An empty layer over a copy of an empty database, with what the owners let each other do."""
    folder.mkdir(exist_ok=True)
    shutil.copy(template, folder / "collab.db")
    clock = FixedClock(START - timedelta(days=1))
    stores = {name: Ending(name, clock) for name in STORES}
    settings = Settings(worker=False)
    sharing = Sharing.within_tenant("records") if life.open else None
    with CollabLayer.open(
        str(folder / "collab.db"), settings=settings, clock=clock, backends=list(stores.values()), sharing=sharing
    ) as layer:
        for owner, level in zip(OWNERS, life.levels, strict=True) if not life.open else ():
            # Who grants anything is known from the beginning.
            layer.grant(owner, "app:nobody" if level is None else "tenant", level or "facets")
        yield Told(life, layer, clock, stores)
    shutil.rmtree(folder)


def answers(layer: CollabLayer, whose: str, query: str | None, as_of: datetime | None = None) -> dict[str, Any]:
    """What a layer says of one owner, in values that two layers can be compared by."""
    try:
        neighbors = layer.neighbors(whose, query, as_of=as_of)
    except UnknownIdError:
        neighbors = None
    try:
        memory = layer.context(whose, query, as_of=as_of)
    except UnknownIdError:
        memory = None
    ranking = layer.rank(whose, THINGS[:4], instruction=query, as_of=as_of)
    return {
        "neighbors": None if neighbors is None else [_neighbor(one) for one in neighbors],
        "context": None if memory is None else _memory(memory),
        "rank": [_ranked(one) for one in ranking.items],
    }


def changed(layer: CollabLayer, whose: str, since: datetime, until: datetime | None = None) -> Any:
    """What changed for one owner; when it was told is left out, since that differs."""
    try:
        found = layer.changes(whose, since, until)
    except UnknownIdError:
        return None
    return [
        # A memory that the layer keeps itself has an id of its own in every layer.
        (
            str(one.kind),
            str(one.whose),
            one.old,
            one.new,
            one.at,
            one.ref and (one.ref.backend, one.ref.id, one.ref.version),
        )
        for one in found
    ]


def _neighbor(one: Any) -> Any:
    pseudonym = one.entity.kind == "peer"
    return {"entity": "peer" if pseudonym else str(one.entity), "score": one.score, "parts": one.contributions,
            "shared": [str(thing) for thing in one.shared]}  # fmt: skip


def _memory(memory: CollabMemory) -> Any:
    facets = [facet for facet in memory.facets if facet.kind is not FacetKind.UPDATE]
    return {
        "facets": [
            {"kind": str(facet.kind), "text": facet.text, "confidence": facet.confidence, "score": facet.score,
             "contributors": facet.contributors, "links": [str(link) for link in facet.links],
             "evidence": [_evidence(one) for one in facet.evidence]}
            for facet in facets
        ],
        "neighbors": [_neighbor(one) for one in memory.neighbors],
    }  # fmt: skip


def _evidence(one: Any) -> Any:
    ref = None if one.ref is None else (one.ref.backend, one.ref.id, one.ref.version)
    return {"owner": str(one.owner), "quote": one.quote, "at": one.at, "weight": one.weight, "ref": ref}


def _ranked(one: Any) -> Any:
    evidence = [{"owner": str(each.owner), "quote": each.quote, "weight": each.weight} for each in one.evidence]
    return {"entity": str(one.entity), "score": one.score, "why": one.rationale, "evidence": evidence}


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Where two answers differ by more than the last bits of a number; None if they do not."""
    if isinstance(one, float) and isinstance(other, float):
        return None if math.isclose(one, other, rel_tol=0, abs_tol=1e-9) else f"{path}: {one!r} is not {other!r}"
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        found = (difference(one[key], other[key], f"{path}.{key}") for key in one)
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        found = (difference(a, b, f"{path}[{at}]") for at, (a, b) in enumerate(zip(one, other, strict=True)))
    else:
        return None if one == other else f"{path}: {one!r} is not {other!r}"
    return next((where for where in found if where is not None), None)
