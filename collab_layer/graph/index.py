"""One tenant's small facts in memory: entities, and the cards' vectors and times as columns.

Filled from the database and kept current by revision: whatever changes cards or entities
raises the tenant's `rev` in the same transaction, and every read asks for it first, so
that another process's commit is seen at the next read. Rows are only added; a changed card
gets a new row and its old row dies. A card that is over keeps its row: it counts in nothing that
is read of the present, and `past` reads it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, select

from collab_layer.governance.grants import Audience
from collab_layer.graph import aliases, names
from collab_layer.graph.centring import CentredVectors, key_of, tie_of
from collab_layer.graph.growing import Growing
from collab_layer.graph.known import Known
from collab_layer.graph.postings import Holding, Postings
from collab_layer.graph.state import State, state
from collab_layer.graph.tables import cards, entities, graves
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.graph import Bools, Counts, Floats, Ids, Levels, Rows, Vectors, VectorView, places_in
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

COLUMNS = ("id", "owner", "at", "valid_to", "length", "thread")
_FETCH = 2_000
_IDS = 10_000
"""Entities whose ids are not looked up again."""
_LOOKED_UP = 256
"""Cards whose rows are looked up one by one; more are, where they stand in order."""
_C, _E = cards.c, entities.c
_MET = (
    select(_E.id, _E.name, _E.kind, _E.display, _E.degree, _E.since, _E.named)
    .where(_E.tenant == bindparam("tenant"), _E.rev > bindparam("seen"))
    .order_by(_E.id)
)
_BURIED = select(graves.c.card).where(graves.c.tenant == bindparam("tenant"), graves.c.rev > bindparam("seen"))
_CHANGED = (
    select(
        _C.id, _C.owner, _C.at, _C.valid_to, _C.length, _C.thread, _C.vector, _C.embedder, _C.quarantine, _C.superseded
    )
    .where(_C.tenant == bindparam("tenant"), _C.rev > bindparam("seen"))
    .order_by(_C.rev, _C.id)
)


@dataclass(frozen=True)
class CardColumns:
    """Live and dead cards of a tenant, shape (c,) each; whether one has run out is for the reader to look at.

    What every reader asks of them is made once.
    """

    id: Ids
    owner: Ids
    at: Counts
    valid_to: Counts
    length: Counts
    thread: Ids
    alive: Bools
    has_vector: Bools

    @cached_property
    def worded(self) -> Bools:
        """Live ones that hold words."""
        return self.alive & (self.length > 0)

    @cached_property
    def words(self) -> int:
        """How many words those hold."""
        return int(self.length[self.worded].sum())

    @cached_property
    def first_end(self) -> int:
        """When the first of those runs out."""
        return int(self.valid_to[self.worded].min(initial=FOREVER))


class TenantIndex:
    """The columns of one tenant; `refresh` inside a read transaction, then use the views."""

    def __init__(self, tenant: str, embedder: str, dim: int) -> None:
        self.tenant, self.embedder, self.dim = tenant, embedder, dim
        self.lock = threading.RLock()
        self.state = State()
        """As of the last refresh."""
        self.aliases: dict[int, int] = {}
        self._clear()

    def _clear(self) -> None:
        self.rev: int = -1
        self.generation: int = -1
        self.names: list[str] = []
        self.displays: list[str] = []
        self._ids: dict[str, int] = {}
        self._known = Known()
        self._postings = Postings(self.tenant, self.rows_of_cards)
        self._owners: Ids | None = None
        self._met: Bools | None = None
        self._is_owner = Growing(np.bool_)
        self._degree = Growing(np.int64)
        self._since = Growing(np.int64)
        self._tie = Growing(np.int64)
        self._columns = {name: Growing(np.int64) for name in COLUMNS}
        self._alive = Growing(np.bool_)
        self._over = Growing(np.bool_)  # something took its place
        self._current = Growing(np.bool_)  # not dead: the row of a card that is there
        self._vectors = CentredVectors(self.dim)
        self._row: dict[int, int] = {}
        self._by_id: tuple[Ids, Rows] | None = None  # the same, by id, for whoever looks up many
        self._now = 0
        self._next_end = FOREVER
        self._cards_of: dict[int, list[int]] = {}
        self._cards: CardColumns | None = None

    def refresh(self, connection: Connection, now: int | None = None) -> None:
        """Take in what was committed since, and let go of what is over by now.

        Args:
            connection: The snapshot that is read.
            now: The present; None if it does not matter. Erasures, and a clock that was set
                back, make the index start anew.
        """
        before, self.state = self.state, state(connection, self.tenant)
        rev, generation = self.state.rev, self.state.generation
        if self.state.policy != before.policy:
            self.aliases = aliases.of(connection, self.tenant)
        moved_on = now is not None and (now >= self._next_end or now < self._now)
        if rev == self.rev and generation == self.generation and not moved_on:
            self._now = self._now if now is None else now
            return
        with self.lock:
            self._cards = self._by_id = None
            if rev < self.rev or generation != self.generation or (now is not None and now < self._now):
                self._clear()
            over = self._pass_time(now)
            if rev > self.rev or generation != self.generation:
                self._take_entities(connection)
                over |= self._take_cards(connection)
                self.rev, self.generation = rev, generation
            if over:
                self._vectors.settle(over, self._held)

    def _pass_time(self, now: int | None) -> set[int]:
        """Set the present; the owners of cards that are over since the last look."""
        before, self._now = self._now, self._now if now is None else now
        if self._now < self._next_end:
            return set()
        ends = self._columns["valid_to"].view
        over = np.flatnonzero(self._current.view & (ends > before) & (ends <= self._now))
        self._vectors.gone(over.tolist())
        ahead = ends[self._current.view & (ends > self._now)]
        self._next_end = int(ahead.min(initial=FOREVER))
        return set(self._columns["owner"].view[over].tolist())

    def _take_entities(self, connection: Connection) -> None:
        changed = connection.execute(_MET, {"tenant": self.tenant, "seen": self.rev})
        for rows in changed.partitions(_FETCH):
            self._add_entities(rows)

    def _add_entities(self, rows: Sequence[Any]) -> None:
        self._owners = self._met = None
        size = max(len(self.names), rows[-1].id + 1)
        for growing in (self._is_owner, self._degree, self._since, self._tie):
            growing.resize(size)
        self._vectors.grow(size)
        self.names.extend([""] * (size - len(self.names)))
        self.displays.extend([""] * (size - len(self.displays)))
        ids, called, kinds, displays, degrees, since, named = zip(*rows, strict=True)
        for id_, name, display, first, told in zip(ids, called, displays, since, named, strict=True):
            self.names[id_], self.displays[id_] = name, display
            self._known.put(name, display, first, told)
        at = np.array(ids)
        self._is_owner.view[at] = [kind in OWNER_KINDS for kind in kinds]
        self._degree.view[at] = degrees
        self._since.view[at] = since
        self._tie.view[at] = list(map(tie_of, called))

    def _take_cards(self, connection: Connection) -> set[int]:
        """Changed cards; the owners concerned."""
        since = {"tenant": self.tenant, "seen": self.rev}
        dead = connection.execute(_BURIED, since).scalars()
        touched = {owner for card in dead if (owner := self._bury(card)) is not None}
        changed = connection.execute(_CHANGED, since)
        for rows in changed.partitions(_FETCH):  # vectors are wide: not all of them at once
            touched |= {owner for row in rows if (owner := self._bury(row.id)) is not None}
            self._add(rows)
            touched |= {row.owner for row in rows}
        return touched

    def _add(self, rows: Sequence[Any]) -> None:
        start = len(self._alive.view)
        for name in COLUMNS:
            self._columns[name].extend(np.array([getattr(row, name) for row in rows], np.int64))
        known = np.array([row.vector is not None and row.embedder == self.embedder for row in rows])
        raw = np.zeros((len(rows), self.dim), np.float16)
        keys = np.zeros(len(rows), np.uint64)
        for at, row in enumerate(rows):
            if known[at]:
                raw[at] = np.frombuffer(row.vector, np.float16)
                keys[at] = key_of(row.vector, self.names[int(row.owner)], int(row.at))
            self._row[row.id] = start + at
            self._cards_of.setdefault(row.owner, []).append(start + at)
            self._next_end = min(self._next_end, row.valid_to) if row.valid_to > self._now else self._next_end
        self._vectors.add(raw, keys, known)
        self._current.extend(np.ones(len(rows), np.bool_))
        self._over.extend(np.array([row.superseded is not None for row in rows]))
        self._alive.extend(np.array([row.quarantine is None for row in rows]))

    def _bury(self, card: int) -> int | None:
        row = self._row.pop(card, None)
        if row is None:
            return None
        self._alive.view[row] = self._current.view[row] = False
        self._vectors.gone([row])
        owner = int(self._columns["owner"].view[row])
        self._cards_of[owner].remove(row)
        return owner

    def _held(self) -> Bools:
        """Cards with a vector that hold in the present, shape (c,)."""
        held = self._current.view & self._vectors.have & ~self._over.view
        return held & (self._columns["valid_to"].view > self._now)

    def _rows_of(self, owners: Ids) -> tuple[Ids, Ids]:
        """Rows of these owners' cards with a vector that hold, of one owner after another, and how many each has."""
        of_each = [self._cards_of.get(owner, ()) for owner in owners.tolist()]
        size = np.fromiter(map(len, of_each), np.int64, len(of_each))
        rows = np.fromiter(chain.from_iterable(of_each), np.int64, int(size.sum()))
        held = self._hold(rows)
        if held.all():
            return rows, size
        return rows[held], np.bincount(np.repeat(np.arange(len(size)), size)[held], minlength=len(size))

    def _hold(self, rows: Ids) -> Bools:
        """Which of these cards, none of them dead, have a vector and hold in the present."""
        ends = self._columns["valid_to"].view[rows]
        return self._vectors.have[rows] & ~self._over.view[rows] & (ends > self._now)

    def find(self, connection: Connection, wanted: Sequence[str]) -> dict[str, int]:
        """The ids of those names that are known in the snapshot of the last refresh."""
        found = {name: self._ids[name] for name in wanted if name in self._ids}
        missing = [name for name in wanted if name not in found]
        if missing:
            if len(self._ids) > _IDS:
                self._ids.clear()
            new = names.find(connection, self.tenant, missing)
            self._ids.update(new)
            found.update(new)
        return found

    # -- views -------------------------------------------------------------------------

    @property
    def policy(self) -> int:
        """The version of the tenant's grants, as of the last refresh."""
        return self.state.policy

    @property
    def cards(self) -> CardColumns:
        """Columns of every card seen; `alive` tells which may count in the present."""
        if self._cards is None:
            every = self.all_cards
            self._cards = replace(every, alive=every.alive & ~self._over.view)
        return self._cards

    @property
    def all_cards(self) -> CardColumns:
        """The same, with those alive that something took the place of."""
        column = {name: growing.view for name, growing in self._columns.items()}
        return CardColumns(**column, alive=self._alive.view, has_vector=self._vectors.have)

    @property
    def known(self) -> Mapping[str, Entity]:
        """Things and topics by folded display name."""
        return self._known.all

    @property
    def known_names(self) -> Known:
        """The same, as they were known at any moment."""
        return self._known

    def centred(self, vectors: Vectors, have: Bools | None = None) -> Vectors:
        """Unit vectors about the tenant's mean; rows without a vector stay zero."""
        return self._vectors.mean.centred(vectors, have)

    def said_after(self, at: int) -> set[int]:
        """Owners of cards that began then or later."""
        later = self._current.view & (self._columns["at"].view >= at)
        return set(self._columns["owner"].view[later].tolist())

    def rows_of_cards(self, ids: Ids) -> Rows:
        """The row of each live card, -1 for others."""
        if len(ids) <= _LOOKED_UP:
            return np.fromiter(map(self._row.get, ids.tolist(), repeat(-1)), np.int32, len(ids))
        if self._by_id is None:
            rows = np.flatnonzero(self._current.view).astype(np.int32)
            order = np.argsort(self._columns["id"].view[rows], kind="stable")  # quick: they mostly come in order
            self._by_id = self._columns["id"].view[rows[order]], rows[order]
        known, rows = self._by_id
        at, there = places_in(known, ids)
        out = np.full(len(ids), -1, np.int32)
        out[there] = rows[at[there]]
        return out

    def holding(self, connection: Connection, hashed: Sequence[int]) -> list[Holding]:
        """Per term the rows of cards that hold it, dead ones too, ascending; and how often."""
        return self._postings.of(connection, hashed, self._columns["id"].view)

    def rows_of_owner(self, owner: int) -> Sequence[int]:
        """The rows of an owner's cards that are not dead."""
        return self._cards_of.get(owner, ())

    def nearest(self, vector: Vectors, among: Bools, count: int, beside: Ids) -> tuple[Ids, Floats]:
        """Rows and cosines of the cards nearest to a vector as it was embedded, see `CentredVectors.nearest`."""
        return self._vectors.nearest(vector, among, count, beside)

    def vectors(self, rows: Ids | Rows) -> Vectors:
        """The centred vectors of some cards, by row."""
        return self._vectors.of(rows)

    def centroids(self, ids: Ids) -> VectorView:
        """The mean memory of each entity."""
        return self._vectors.centroids(ids, self._rows_of)

    def nearest_means(self, ids: Ids, vector: Vectors, count: int, floor: float) -> tuple[Ids, Floats]:
        """Places of those entities that may be among the `count` with the nearest mean memory, and each one's cosine.

        Nobody below `floor` need be among them.
        """
        return self._vectors.nearest_means(ids, self._rows_of, vector, count, floor)

    def is_owner(self, ids: Ids) -> Bools:
        """Which of the entities have memories of their own."""
        return self._is_owner.view[ids]

    def degree(self, ids: Ids) -> Counts:
        """Distinct targets when last counted, 0 if never."""
        return self._degree.view[ids]

    def tie(self, ids: Ids) -> Ids:
        """A number by which entities are put in order where nothing else does, whatever was told first."""
        return self._tie.view[ids]

    def met(self, ids: Ids) -> Bools:
        """Which of the entities some event named, or always counted as known."""
        return self._since.view[ids] < FOREVER

    def since(self, ids: Ids) -> Counts:
        """The first event that named each."""
        return self._since.view[ids]

    def named(self, id_: int) -> bool:
        """Whether a dense id has a name; that of a forgotten entity has none."""
        return 0 <= id_ < len(self.names) and bool(self.names[id_])

    def party(self, ids: Ids | Rows) -> Ids:
        """Who is counted for each entity: its principal where it is an alias, else itself."""
        if not self.aliases:
            return ids.astype(np.int64, copy=False)
        return np.array([self.aliases.get(id_, id_) for id_ in ids.tolist()], np.int64)

    def owners(self) -> Ids:
        """Every owner."""
        if self._owners is None:
            self._owners = np.flatnonzero(self._is_owner.view).astype(np.int64)
        return self._owners

    def owners_met(self) -> Bools:
        """Which of all entities are owners that some event named, shape (e,)."""
        if self._met is None:
            self._met = self._is_owner.view & (self._since.view < FOREVER)
        return self._met

    def levels(self, audience: Audience) -> Levels:
        """What a reader may use of each entity, shape (e,)."""
        out = self._is_owner.view.view(np.int8) * np.int8(audience.default)
        if audience.named:
            named = np.fromiter(audience.named, np.int64, len(audience.named))
            level = np.fromiter(audience.named.values(), np.int8, len(named))
            there = named < len(out)
            out[named[there]] = level[there]
        if 0 <= audience.reader < len(out):
            out[audience.reader] = Level.RECORDS
        return out
