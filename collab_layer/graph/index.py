"""One tenant's small facts in memory: entities, and the cards' vectors and times as columns.

Filled from the database and kept current by revision: whatever changes cards or entities
raises the tenant's `rev` in the same transaction, and every read asks for it first, so
that another process's commit is seen at the next read. Rows are only added; a changed card
gets a new row and its old row dies.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from collab_layer.graph.tables import cards, entities, graves, tenants
from collab_layer.stages.tokens import fold
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.graph import Bools, Counts, Ids, Rows, Vectors, VectorView

MIN_NAME = 3
"""Characters a display name needs to be looked for in texts."""


@dataclass(frozen=True, slots=True)
class CardColumns:
    """Live and dead cards of a tenant, shape (c,) each."""

    id: Ids
    owner: Ids
    at: Counts
    valid_to: Counts
    length: Counts
    thread: Ids
    alive: Bools
    vector: Vectors
    has_vector: Bools


class Growing:
    """An array with room to grow; `view` is its filled part."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._size = 0
        self._array = np.zeros((64, width) if width else 64, dtype)

    @property
    def view(self) -> np.ndarray[Any, Any]:
        """The filled part."""
        return self._array[: self._size]

    def extend(self, rows: np.ndarray[Any, Any]) -> None:
        """Add rows at the end."""
        need = self._size + len(rows)
        if need > len(self._array):
            bigger = np.zeros((max(need, 2 * len(self._array)), *self._array.shape[1:]), self._array.dtype)
            bigger[: self._size] = self.view
            self._array = bigger
        self._array[self._size : need] = rows
        self._size = need

    def resize(self, size: int) -> None:
        """Grow to `size` with zeros."""
        if size > self._size:
            self.extend(np.zeros((size - self._size, *self._array.shape[1:]), self._array.dtype))


class TenantIndex:
    """The columns of one tenant; `refresh` inside a read transaction, then use the views."""

    def __init__(self, tenant: str, embedder: str, dim: int) -> None:
        self.tenant, self.embedder, self.dim = tenant, embedder, dim
        self.lock = threading.RLock()
        self.policy = 0  # as of the last refresh
        self._clear()

    def _clear(self) -> None:
        self.rev: int = -1
        self.generation: int = -1
        self.names: list[str] = []
        self.displays: list[str] = []
        self.known: dict[str, Entity] = {}  # folded display names of things and topics
        self._is_owner = Growing(np.bool_)
        self._degree = Growing(np.int64)
        self._columns = {name: Growing(np.int64) for name in ("id", "owner", "at", "valid_to", "length", "thread")}
        self._alive = Growing(np.bool_)
        self._has_vector = Growing(np.bool_)
        self._raw = Growing(np.float16, self.dim)
        self._centred = Growing(np.float32, self.dim)
        self._row: dict[int, int] = {}
        self._mean = np.zeros(self.dim, np.float32)
        self._mean_over = 0
        self._centroid = Growing(np.float32, self.dim)
        self._centroid_row = Growing(np.int32)
        self._cards_of: dict[int, list[int]] = {}

    def refresh(self, connection: Connection) -> None:
        """Take in what was committed since; an erasure makes it start anew."""
        row = connection.execute(
            select(tenants.c.rev, tenants.c.generation, tenants.c.policy).where(tenants.c.tenant == self.tenant)
        ).first()
        rev, generation = (0, 0) if row is None else (int(row.rev), int(row.generation))
        self.policy = 0 if row is None else int(row.policy)
        if rev == self.rev and generation == self.generation:
            return
        with self.lock:
            if rev < self.rev or generation != self.generation:
                self._clear()
            if rev > self.rev or generation != self.generation:
                self._take_entities(connection)
                self._take_cards(connection)
                self.rev, self.generation = rev, generation

    def _take_entities(self, connection: Connection) -> None:
        rows = connection.execute(
            select(entities.c.id, entities.c.name, entities.c.kind, entities.c.display, entities.c.degree)
            .where(entities.c.tenant == self.tenant, entities.c.rev > self.rev)
            .order_by(entities.c.id)
        ).all()
        if not rows:
            return
        size = max(len(self.names), max(row.id for row in rows) + 1)
        for growing in (self._is_owner, self._degree):
            growing.resize(size)
        self._centroid_row.extend(np.full(size - len(self._centroid_row.view), -1, np.int32))
        self.names.extend([""] * (size - len(self.names)))
        self.displays.extend([""] * (size - len(self.displays)))
        for row in rows:
            self.names[row.id], self.displays[row.id] = row.name, row.display
            if row.kind not in OWNER_KINDS and len(row.display) >= MIN_NAME:
                self.known[fold(row.display)] = Entity.parse(row.name)
            self._is_owner.view[row.id] = row.kind in OWNER_KINDS
            self._degree.view[row.id] = row.degree

    def _take_cards(self, connection: Connection) -> None:
        dead = connection.execute(
            select(graves.c.card).where(graves.c.tenant == self.tenant, graves.c.rev > self.rev)
        ).scalars()
        touched = {owner for card in dead if (owner := self._bury(card)) is not None}
        c = cards.c
        rows = connection.execute(
            select(c.id, c.owner, c.at, c.valid_to, c.length, c.thread, c.vector, c.embedder, c.quarantine)
            .where(c.tenant == self.tenant, c.rev > self.rev)
            .order_by(c.rev, c.id)
        ).all()
        if rows:
            touched |= {owner for row in rows if (owner := self._bury(row.id)) is not None}
            start = len(self._alive.view)
            for name in ("id", "owner", "at", "valid_to", "length", "thread"):
                self._columns[name].extend(np.array([getattr(row, name) for row in rows], np.int64))
            known = np.array([row.vector is not None and row.embedder == self.embedder for row in rows])
            raw = np.zeros((len(rows), self.dim), np.float16)
            for at, row in enumerate(rows):
                if known[at]:
                    raw[at] = np.frombuffer(row.vector, np.float16)
                self._row[row.id] = start + at
                self._cards_of.setdefault(row.owner, []).append(start + at)
            self._raw.extend(raw)
            self._has_vector.extend(known)
            self._alive.extend(np.array([row.quarantine is None for row in rows]))
            self._centre(start)
            touched |= {row.owner for row in rows}
        self._recentre_owners(touched)

    def _bury(self, card: int) -> int | None:
        row = self._row.pop(card, None)
        if row is None:
            return None
        self._alive.view[row] = False
        owner = int(self._columns["owner"].view[row])
        self._cards_of[owner].remove(row)
        return owner

    def _centre(self, start: int) -> None:
        """Centre and normalise the new rows; the mean is taken anew whenever a sixteenth was added.

        It is the mean of the oldest cards, so many that it depends on their number alone and not
        on when this process looked: every process has the same vectors.
        """
        total = len(self._raw.view)
        step = 1 << max(total.bit_length() - 5, 0)
        oldest = total - total % step
        if oldest != self._mean_over:
            have = self._has_vector.view[:oldest]
            if have.any():
                self._mean = self._raw.view[:oldest][have].astype(np.float32).mean(axis=0)
                # One or two cards are their own mean: centring them would leave nothing.
                self._mean *= min(1.0, (oldest - 1) / 16)
            self._mean_over, start = oldest, 0
            self._centred = Growing(np.float32, self.dim)
        fresh = self._raw.view[start:].astype(np.float32)
        self._centred.extend(self.centred(fresh, self._has_vector.view[start:]))
        if start == 0:
            self._recentre_owners(set(self._cards_of))

    def centred(self, vectors: Vectors, have: Bools | None = None) -> Vectors:
        """Unit vectors about the tenant's mean; rows without a vector stay zero."""
        out = vectors - self._mean
        norm = np.linalg.norm(out, axis=1, keepdims=True)
        out = np.divide(out, norm, out=np.zeros_like(out), where=norm > 1e-9)
        if have is not None:
            out[~have] = 0
        return out.astype(np.float32)

    def _recentre_owners(self, owners: set[int]) -> None:
        for owner in owners:
            rows = [row for row in self._cards_of.get(owner, []) if self._has_vector.view[row]]
            mean = self._centred.view[rows].mean(axis=0) if rows else np.zeros(self.dim, np.float32)
            norm = float(np.linalg.norm(mean))
            at = int(self._centroid_row.view[owner])
            if norm < 1e-9:
                self._centroid_row.view[owner] = -1
                continue
            if at < 0:
                at = len(self._centroid.view)
                self._centroid.extend(np.zeros((1, self.dim), np.float32))
                self._centroid_row.view[owner] = at
            self._centroid.view[at] = mean / norm

    # -- views -------------------------------------------------------------------------

    @property
    def cards(self) -> CardColumns:
        """Columns of every card seen; `alive` tells which still count."""
        column = {name: growing.view for name, growing in self._columns.items()}
        return CardColumns(
            **column, alive=self._alive.view, vector=self._centred.view, has_vector=self._has_vector.view
        )

    def rows_of_cards(self, ids: Ids) -> Rows:
        """The row of each live card, -1 for others."""
        return np.fromiter((self._row.get(card, -1) for card in ids.tolist()), np.int32, len(ids))

    def centroids(self, ids: Ids) -> VectorView:
        """The mean memory of each entity."""
        return VectorView(self._centroid.view, self._centroid_row.view[ids])

    def is_owner(self, ids: Ids) -> Bools:
        """Which of the entities have memories of their own."""
        return self._is_owner.view[ids]

    def degree(self, ids: Ids) -> Counts:
        """Distinct targets when last counted, 0 if never."""
        return self._degree.view[ids]

    def named(self, id_: int) -> bool:
        """Whether a dense id has a name; that of a forgotten entity has none."""
        return 0 <= id_ < len(self.names) and bool(self.names[id_])

    def owners(self) -> Ids:
        """Every owner."""
        return np.flatnonzero(self._is_owner.view).astype(np.int64)
