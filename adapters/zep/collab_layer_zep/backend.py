"""Zep behind the layer's port: facts with a time axis, in users' graphs and standalone ones.

In:   refs, owners, queries, times.
Out:  records; derived items as facts in reserved graphs where that was asked for.
      Owners' own facts are read, never rewritten, but by `end` and `erase`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from collab_layer.errors import BackendError, InputError
from collab_layer.ports.backend import Can, Page, require
from collab_layer.ports.clock import Clock, system_clock
from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
from collab_layer.types.health import PartHealth
from collab_layer.types.time import utc
from collab_layer.types.update import Receipt, Update
from collab_layer_zep import mapping
from collab_layer_zep.client import Api
from collab_layer_zep.erasing import Eraser
from collab_layer_zep.facts import Fact
from collab_layer_zep.ledger import LEASE_S, Ledger
from collab_layer_zep.mapping import Ref
from collab_layer_zep.places import Places
from collab_layer_zep.reading import Reader
from collab_layer_zep.recall import Recall
from collab_layer_zep.refusals import ZepResidueError
from collab_layer_zep.stating import Stater
from collab_layer_zep.voices import Voices
from collab_layer_zep.writing import Writer

NAME: Final = "zep"
LEDGER: Final = "collab-zep.db"


class ZepBackend:
    """The users and standalone graphs of a Zep project.

    With a `Zep` it may be called from any thread and any loop; an `AsyncZep` belongs to one loop.

    Args:
        client: A `Zep` or `AsyncZep` of zep-cloud 4, as made by the user; it stays theirs to close.
        name: Unique within the layer; part of every ref.
        write: Promise `WRITE`: derived items go into graphs whose names begin with `collab:for:`.
        ledger: A SQLite file for what we write, made at the first write. Writers that share it
            are exact among themselves.
        graphs: Standalone graphs by uuid, where their names do not say whose they are.
        speakers: Whom the names in threads stand for. Facts that rest on words of anybody but the
            thread's user are left out; a name that is neither the user's nor here is nobody's.
        timeout_s: For one request, > 0.
        task_timeout_s: For an asynchronous write to come to its end, > 0.
        clock: What the store takes for now.

    Raises:
        InputError: Another kind of client, or a setting out of range.
        ZepVersionError: A client of the v3 API.
    """

    def __init__(
        self,
        client: Any,
        *,
        name: str = NAME,
        write: bool = False,
        ledger: str | os.PathLike[str] = LEDGER,
        graphs: Mapping[str, Entity | str] | None = None,
        speakers: Mapping[str, Entity | str] | None = None,
        timeout_s: float = 30.0,
        task_timeout_s: float = 300.0,
        clock: Clock = system_clock,
    ) -> None:
        if timeout_s <= 0 or task_timeout_s <= 0:
            raise InputError(f"timeout_s and task_timeout_s must be above 0, not {timeout_s} and {task_timeout_s}")
        self.api, self._name, self._clock = Api(client, name, timeout_s, task_timeout_s), name, clock
        self.ledger = Ledger(ledger, name)
        self.places = Places(self.api, _named(graphs or {}))
        self._reader, self._eraser = Reader(name), Eraser(self.api)
        named = {name: Entity.parse(whose) for name, whose in (speakers or {}).items()}
        self.voices = Voices(self.api, self.places, named)
        self._recall = Recall(self.api, self.places, self._reader, self.voices)
        wait_s = task_timeout_s + LEASE_S
        self._writer = Writer(self.api, self.ledger, self._eraser, clock, wait_s)
        self._stater = Stater(self.api, self.ledger, self.places, self._reader, clock, wait_s)
        self._can = frozenset({Can.SEARCH, Can.AS_OF, Can.LIST_OWNERS, Can.ERASE})
        self._can |= {Can.WRITE, Can.DEDUPE} if write else set[Can]()

    @property
    def name(self) -> str:
        """Part of every ref."""
        return self._name

    @property
    def can(self) -> frozenset[Can]:
        """`WRITE` and `DEDUPE` if asked for. Never `WATCH`: Zep keeps no trace of a deletion."""
        return self._can

    # -- reading -------------------------------------------------------------------------

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """The facts that still exist, ended ones too; `valid_to` says when they ended."""
        return await self._recall.read(_by_graph(self._name, refs))

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """An owner's facts by id, ended ones too; a page may be short where facts cannot be read."""
        return await self._recall.page(owner, after, limit)

    async def records_as_of(self, owner: Entity, at: datetime, /) -> list[MemoryRecord]:
        """The owner's facts that held at a time, by what is known today; oldest first."""
        return await self._recall.held(owner, utc(at))

    async def search(
        self, owner: Entity, query: str, /, *, k: int = 10, at: datetime | None = None
    ) -> list[MemoryRecord]:
        """The owner's best facts for a query, as Zep ranks them, that hold now or held at a time."""
        when = self._clock() if at is None else utc(at)
        return await self._recall.search(owner, query, k, when) if query.strip() and k >= 1 else []

    async def owners(self) -> list[Entity]:
        """Every owner with a fact; one or more requests each."""
        return await self._recall.owners()

    async def health(self) -> PartHealth:
        """Ask for one user and one graph. A project with users and no facts yet is `ok`."""
        try:
            users, graphs = await self.api.some("user"), await self.api.some("graph")
        except BackendError as error:
            return PartHealth(name=self._name, condition="down", detail=error.why)
        wrong = self._reader.unread.complaint()
        if wrong:
            return PartHealth(name=self._name, condition="degraded", detail=wrong)
        lost = len(self.places.nameless)
        detail = f"{users} users, {graphs} graphs" + (f"; {lost} users have ids too long to name" if lost else "")
        detail += f"; {self.voices.complaint()}" if self.voices.complaint() else ""
        return PartHealth(name=self._name, condition="ok" if users or graphs else "empty", detail=detail)

    async def aclose(self) -> None:
        """Nothing: the client belongs to who made it."""

    # -- what an owner's program may do ------------------------------------------------------

    async def remember(self, owner: Entity, stated: Sequence[Fact], /) -> list[MemoryRef]:
        """Store facts that an owner states, without a language model; the same key once.

        Raises:
            InputError: One of them cannot be stored; none was.
            ZepGoneError: Zep has no user or graph for the owner.
            ZepRejectedError: Zep takes one for wrong, such as attributes its ontology does not
                define; none was stored, nor a node for them.
        """
        refs = await self._stater.state(owner, stated)
        return [MemoryRef(backend=self._name, id=str(ref)) for ref in refs]

    async def end(self, refs: Sequence[MemoryRef], at: datetime, /) -> int:
        """Say that facts hold no longer from a time on; how many there were.

        Zep v4 cannot set an end afterwards: it is an attribute, which this store reads and
        Zep's own search does not.

        Raises:
            InputError: A time without a zone, or before one of them begins; none is changed.
        """
        return await self._stater.end(_by_graph(self._name, refs), utc(at))

    async def erase(self, refs: Sequence[MemoryRef], /) -> int:
        """Remove facts, the episodes only they rest on, and the summaries of their nodes; how many there were.

        Raises:
            ZepResidueError: All that was done, and Zep keeps something that its interface cannot remove.
        """
        left: list[str] = []
        erased = 0
        for graph, found in _by_graph(self._name, refs).items():
            if await self.places.owner(graph) is None:
                continue
            rows = await self._recall.rows(graph, found)
            left += await self._eraser.erase(graph, rows) if rows else []
            await self.ledger.drop_edges(graph, [str(row["uuid"]) for row in rows])
            erased += len(rows)
        if left:
            raise ZepResidueError(self._name, left, erased=erased)
        return erased

    # -- derived items -----------------------------------------------------------------------

    async def write(self, updates: Sequence[Update], /) -> list[Receipt]:
        """Store each update once under its id; what its key has already is left alone.

        Raises:
            InputError: One of them cannot be stored; none was.
        """
        require(self, Can.WRITE)
        return await self._writer.write(updates)

    async def retract(self, keys: Sequence[str], /) -> int:
        """Remove what was written under the keys, with the graph once nothing is left in it."""
        require(self, Can.WRITE)
        return await self._writer.retract(list(dict.fromkeys(keys))) if keys else 0


def _named(graphs: Mapping[str, Entity | str]) -> dict[str, Entity]:
    for uuid in graphs:
        if not mapping.is_uuid(uuid):
            raise InputError(f"`{str(uuid)[:80]}` is no uuid of a graph; `graphs` maps uuids to entities")
    return {uuid.lower(): Entity.parse(owner) for uuid, owner in graphs.items()}


def _by_graph(store: str, refs: Sequence[MemoryRef]) -> dict[str, list[Ref]]:
    """The refs of a store that can be its own, by graph, each once."""
    found: dict[str, list[Ref]] = {}
    for id_ in dict.fromkeys(ref.id for ref in refs if ref.backend == store):
        ref = mapping.ref_of(id_)
        if ref is not None:
            found.setdefault(ref.graph, []).append(ref)
    return found


__all__ = ["LEDGER", "NAME", "ZepBackend"]
