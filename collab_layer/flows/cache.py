"""Answers by what was asked, each with what it rests on.

In:   a key of everything that was asked, and a snapshot.
Out:  an answer that still holds, or nothing: it is compared with the database at every use.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from collab_layer.graph import derived, notices
from collab_layer.graph.store import Opened
from collab_layer.types.facet import CollabMemory

ENTRIES = 4_096

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an answer rests on; it holds as long as this is the same."""

    rev: int
    generation: int
    policy: int
    nodes: tuple[tuple[int, tuple[int, int, int]], ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    tenant: str
    stamp: Stamp
    until: int
    memory: CollabMemory


class Cache:
    """One process's answers; the one unused longest goes first.

    None outlives the state of the tenant that it was made in: it could be used no more, and may hold what was erased.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._states: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, opened: Opened, now: int) -> CollabMemory | None:
        """The answer, if nothing that it rests on has changed."""
        with self._lock:
            self._let_go(opened)
            entry = self._entries.get(key)
            if entry is None or now >= entry.until:
                return None
            self._entries.move_to_end(key)
        return entry.memory if entry.stamp == stamp(opened, [node for node, _ in entry.stamp.nodes]) else None

    def put(self, key: Key, opened: Opened, nodes: Sequence[int], until: int, memory: CollabMemory) -> None:
        """Keep an answer until `until`, microseconds, at the latest."""
        entry = _Entry(opened.reading.tenant, stamp(opened, nodes), until, memory)
        with self._lock:
            self._entries[key] = entry
            while len(self._entries) > ENTRIES:
                self._entries.popitem(last=False)

    def _let_go(self, opened: Opened) -> None:
        """Drop the tenant's answers of any other state than the one that is read."""
        tenant, index = opened.reading.tenant, opened.reading.index
        state = index.rev, index.generation
        if self._states.get(tenant) == state:
            return
        self._states[tenant] = state
        for key, entry in list(self._entries.items()):
            if entry.tenant == tenant and (entry.stamp.rev, entry.stamp.generation) != state:
                self._entries.pop(key, None)


def stamp(opened: Opened, nodes: Sequence[int]) -> Stamp:
    """The present state of what an answer that read these nodes rests on."""
    reading = opened.reading
    found = reading.adjacency.versions(reading.connection, reading.tenant, nodes)
    index = reading.index
    return Stamp(index.rev, index.generation, opened.policy, tuple((node, found[node]) for node in nodes))


def ends(opened: Opened) -> int:
    """When an answer ends by itself: a grant, a notice, an update or a record runs out; of the past only the former."""
    reading = opened.reading
    granted = reading.audience.until
    if reading.index.state.noticed:
        granted = min(granted, notices.next_end(reading.connection, reading.tenant, opened.now))
    if reading.as_of is not None:
        return granted
    ahead = reading.index.cards.valid_to
    ahead = ahead[ahead > reading.now]
    records = int(ahead.min()) if len(ahead) else granted
    told = derived.next_end(reading.connection, reading.tenant, opened.focus, reading.now)
    return min(granted, records, told)
