"""Memory folders of Letta Code behind the layer's port.

In:   refs and owners; derived items where that was asked for.
Out:  files as memories, also as they were; git's history as the feed of what changed.

A commit is for ever: what a memory once said stays in the history of its owner's repository,
so that `ERASE` is not promised. The same holds for notes that the signal file has shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from collab_layer.errors import BackendError, InputError
from collab_layer.ports.backend import Can, Change, Changes, Page, require
from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
from collab_layer.types.health import PartHealth
from collab_layer.types.update import Receipt, Update
from collab_layer_letta.locks import LoopLocks
from collab_layer_letta.memfs import files
from collab_layer_letta.memfs.folder import Folder
from collab_layer_letta.memfs.ledger import Ledger
from collab_layer_letta.text import LIMIT

NAME = "letta-memfs"


class MemFsBackend:
    """One memory folder, or several.

    Args:
        path: Top of the folder: a work tree of git.
        owner: Whose memory it is.
        name: Unique within the layer; part of every ref.
        write: Promise `WRITE`: notes of others go into `system/collab-signal.md`, each time by a commit.
        limit: Characters of that file's text, > 0.
    """

    def __init__(
        self, path: str | Path, owner: Entity | str, *, name: str = NAME, write: bool = False, limit: int = LIMIT
    ) -> None:
        self._name, self._limit = name, limit
        can = {Can.AS_OF, Can.LIST_OWNERS, Can.WATCH}
        self._can = frozenset(can | {Can.WRITE, Can.DEDUPE} if write else can)
        self._folders: dict[Entity, Folder] = {}
        self._writing = LoopLocks()
        self.add(path, owner)

    def add(self, path: str | Path, owner: Entity | str) -> None:
        """Another agent's folder.

        Raises:
            InputError: The owner has a folder already.
        """
        whose = Entity.parse(owner)
        if whose in self._folders:
            raise InputError(f"`{whose}` has a memory folder already")
        self._folders[whose] = Folder(Path(path), whose, self._name)

    @property
    def name(self) -> str:
        """Part of every ref."""
        return self._name

    @property
    def can(self) -> frozenset[Can]:
        """`WRITE` and `DEDUPE` if asked for."""
        return self._can

    # -- reading -----------------------------------------------------------------------

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """The memories that are still there."""
        wanted = [files.split_id(ref.id) for ref in refs if ref.backend == self._name]
        found: list[MemoryRecord] = []
        for owner, folder in self._folders.items():
            paths = dict.fromkeys(path for whose, path in wanted if whose == str(owner))
            if paths:
                held = files.records(self._name, owner, await folder.now())
                found += [held[path] for path in paths if path in held]
        return found

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """An owner's memories by path."""
        folder = self._folders.get(owner)
        held = {} if folder is None else files.records(self._name, owner, await folder.now())
        rest = [one for one in held.values() if after is None or one.ref.id > after]
        return Page(rest[:limit], rest[limit - 1].ref.id if len(rest) > limit else None)

    async def records_as_of(self, owner: Entity, at: datetime, /) -> list[MemoryRecord]:
        """An owner's memories as they were committed by then."""
        folder = self._folders.get(owner)
        if folder is None:
            return []
        held = await folder.at(await folder.before(at))
        return list(files.records(self._name, owner, held).values())

    async def owners(self) -> list[Entity]:
        """The owners whose folders hold anything."""
        return sorted([owner for owner, folder in self._folders.items() if await self._any(owner, folder)])

    async def changes(self, cursor: str | None, /, *, limit: int = 500) -> Changes:
        """What commits changed since the cursor, each memory as it is now.

        Raises:
            InputError: The cursor is none, or names a commit that is gone.
        """
        places = _places(cursor)
        items: list[Change] = []
        for owner, folder in sorted(self._folders.items()):
            head = await folder.git.head()
            if cursor is None:
                places[str(owner)] = (head, 0)
            elif head is not None and len(items) < limit:
                since, given = places.get(str(owner), (None, 0))
                paths = (await folder.changed(since, head))[given:] if since != head else []
                taken = paths[: limit - len(items)]
                items += await self._as_now(owner, folder, taken)
                places[str(owner)] = (head, 0) if len(taken) == len(paths) else (since, given + len(taken))
        return Changes(items, json.dumps(places, ensure_ascii=False, sort_keys=True))

    async def health(self) -> PartHealth:
        """Ask git for each folder."""
        try:
            held = [await self._any(owner, folder) for owner, folder in self._folders.items()]
        except BackendError as error:
            return PartHealth(name=self._name, condition="down", detail=error.why)
        return PartHealth(name=self._name, condition="ok" if any(held) else "empty", detail=f"{len(held)} folders")

    async def aclose(self) -> None:
        """Nothing is kept open."""

    # -- derived items -----------------------------------------------------------------

    async def write(self, updates: Sequence[Update], /) -> list[Receipt]:
        """Keep each item once under its id, and commit the signal files that are to say something else.

        Raises:
            MemFsError: A folder cannot be written now; nothing of anybody's was lost.
        """
        require(self, Can.WRITE)
        async with self._writing.here():
            for owner, mine in _by_folder(updates, self._folders).items():
                await self._ledger(owner).add(mine)
        return [Receipt(key=one.id, native_id=f"{files.SIGNAL}#{one.id}", backend=self._name) for one in updates]

    async def retract(self, keys: Sequence[str], /) -> int:
        """Take items out of the signal files and forget them; git's history keeps what was shown.

        Raises:
            MemFsError: A folder cannot be written now; nothing of anybody's was lost.
        """
        require(self, Can.WRITE)
        async with self._writing.here():
            counts = [await self._ledger(owner).drop(set(keys)) for owner in self._folders] if keys else []
        return sum(counts)

    def _ledger(self, owner: Entity) -> Ledger:
        return Ledger(self._folders[owner], self._name, self._limit)

    async def _any(self, owner: Entity, folder: Folder) -> bool:
        return bool(files.records(self._name, owner, await folder.now()))

    async def _as_now(self, owner: Entity, folder: Folder, paths: Sequence[str]) -> list[Change]:
        held = files.records(self._name, owner, await folder.now()) if paths else {}
        gone = {path: MemoryRef(backend=self._name, id=files.native_id(owner, path)) for path in paths}
        return [Change(held[path].ref if path in held else gone[path], held.get(path)) for path in paths]


def _by_folder(updates: Sequence[Update], folders: Mapping[Entity, Folder]) -> dict[Entity, list[Update]]:
    """Which folder keeps which item: its owner's, else the first one, where it is shown to nobody."""
    found: dict[Entity, list[Update]] = {}
    for update in updates:
        found.setdefault(update.owner if update.owner in folders else next(iter(folders)), []).append(update)
    return found


def _places(cursor: str | None) -> dict[str, tuple[str | None, int]]:
    if cursor is None:
        return {}
    try:
        read: dict[str, Any] = json.loads(cursor)
        return {owner: (since, int(given)) for owner, (since, given) in read.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"`{cursor[:40]}` is no cursor of a memory folder; start again with none") from error


__all__ = ["NAME", "MemFsBackend"]
