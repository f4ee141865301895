"""The signal file of a folder: the derived items behind it, and the commit that changes it.

In:   items to add and keys to drop.
Out:  `system/collab-signal.md`, in a commit that touches nothing else. The items themselves lie
      in git's own directory, which is neither versioned nor pushed.

Nothing of anybody else's is lost: the file is written only if it stands as it was committed
and nothing is staged; a commit that is refused leaves the folder as it was.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from collab_layer.errors import BackendError
from collab_layer.types.update import Update
from collab_layer_letta.memfs.files import DESCRIPTION, SIGNAL, framed
from collab_layer_letta.memfs.folder import Folder
from collab_layer_letta.refusals import MemFsBusyError, MemFsDirtyError, MemFsError, MemFsRefusedError
from collab_layer_letta.text import Note, render

ITEMS, LOCK = "collab-items.json", "collab-items.lock"
COMMIT_TIMEOUT_S = 60.0
"""Hooks included."""
MESSAGE = "Bring the notes of others up to date"


class Ledger:
    """The derived items of one folder.

    Args:
        folder: Where they are shown.
        store: Name of the backend, for errors.
        limit: Characters of the signal's text.
    """

    def __init__(self, folder: Folder, store: str, limit: int) -> None:
        self._folder, self._git, self._store, self._limit = folder, folder.git, store, limit

    async def add(self, updates: Collection[Update]) -> None:
        """Keep items and show those of the folder's owner; keys that are there are left alone."""
        async with self._alone() as place:
            before = _load(place)
            after = {**{update.id: _kept(update) for update in updates}, **before}
            if after.keys() != before.keys():
                _save(place, after)
            await self._show(after)

    async def drop(self, keys: Collection[str]) -> int:
        """Stop showing items and forget them; how many there were. An interrupted call can be repeated."""
        async with self._alone() as place:
            before = _load(place)
            after = {key: item for key, item in before.items() if key not in keys}
            await self._show(after)
            if after != before:
                _save(place, after)
            return len(before) - len(after)

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[Path]:
        """One writer of ours at a time, in whichever process; yields where the items lie."""
        directory = await self._git.directory()
        handle = os.open(directory / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            await asyncio.to_thread(fcntl.flock, handle, fcntl.LOCK_EX)
            yield directory / ITEMS
        finally:
            os.close(handle)

    async def _show(self, items: Mapping[str, Mapping[str, Any]]) -> None:
        """Commit the signal file if it is to say something else."""
        mine = [
            Note(key, str(item["text"]), float(item["confidence"]))
            for key, item in items.items()
            if item["owner"] == str(self._folder.owner)
        ]
        wanted, committed = framed(render(mine, self._limit).text), await self._committed()
        if wanted == committed or (committed is None and not mine):
            return
        await self._check(committed, wanted)
        try:
            await self._commit(wanted, committed)
        except MemFsRefusedError:
            if await self._git.upstream() is None:
                raise
            await self._rebase()
            committed = await self._committed()
            await self._check(committed, wanted)
            await self._commit(wanted, committed)

    async def _committed(self) -> str | None:
        """The signal file as it was committed last; None if there is none."""
        if await self._git.head() is None:
            return None
        status, out, _ = await self._git.run("cat-file", "blob", f"HEAD:{SIGNAL}")
        return None if status else out.decode(errors="replace")

    async def _check(self, committed: str | None, wanted: str) -> None:
        """See that the file can be written without losing anything.

        A file that says already what we are about to write was left by a call of ours that was killed.

        Raises:
            MemFsBusyError: Somebody is in the middle of something.
            MemFsDirtyError: Something is staged, or the file was edited and not committed.
            MemFsError: The file was committed by somebody as something else than a signal.
        """
        await self._git.check_idle()
        if committed is not None and f"description: {DESCRIPTION}\n" not in committed:
            raise MemFsError(self._store, f"`{SIGNAL}` is not ours; move it away first")
        there = self._there()
        staged = await self._staged() - ({SIGNAL} if there == wanted else set[str]())
        if staged:
            raise MemFsDirtyError(self._store, "something is staged; commit or unstage it first")
        if there not in (committed, wanted):
            raise MemFsDirtyError(self._store, f"`{SIGNAL}` was edited and not committed; commit or undo that first")

    async def _staged(self) -> set[str]:
        asked = ("diff", "--cached", "--name-only", "-z") if await self._git.head() else ("ls-files", "-z")
        printed = await self._git.read(*asked)
        return {path.decode(errors="surrogateescape") for path in printed.split(b"\0") if path}

    def _there(self) -> str | None:
        try:
            return (self._git.folder / SIGNAL).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    async def _commit(self, wanted: str, before: str | None) -> None:
        """Write the file and commit it alone; put everything back if that is refused.

        Raises:
            MemFsRefusedError: A hook, or git itself, refused it.
        """
        path = self._git.folder / SIGNAL
        _replace(path, wanted)
        try:
            status, _, complaint = await self._git.run("add", "--", SIGNAL)
            if not status:
                commit = ("commit", "-q", "-m", MESSAGE, "--only", "--", SIGNAL)
                status, _, complaint = await self._git.run(*commit, timeout_s=COMMIT_TIMEOUT_S)
        except (BackendError, asyncio.CancelledError):
            await asyncio.shield(self._undo(path, wanted, before))
            raise
        if status:
            await self._undo(path, wanted, before)
            kind = MemFsBusyError if "index.lock" in complaint else MemFsRefusedError
            raise kind(self._store, f"the commit was refused: {complaint}")

    async def _undo(self, path: Path, wanted: str, before: str | None) -> None:
        await self._git.run("reset", "-q", "--", SIGNAL)
        if self._there() != wanted:
            return  # somebody edited it meanwhile: that is theirs
        _replace(path, before)

    async def _rebase(self) -> None:
        """Fetch what the user's own remote has, once; give up cleanly where it does not fit.

        Raises:
            MemFsRefusedError: It does not fit, or the remote cannot be reached.
        """
        status, _, complaint = await self._git.run("pull", "-q", "--rebase")
        if status:
            await self._git.run("rebase", "--abort")
            raise MemFsRefusedError(self._store, f"the commit was refused, and so was a rebase: {complaint}")


def _kept(update: Update) -> dict[str, Any]:
    return {"owner": str(update.owner), "text": update.text, "confidence": update.confidence}


def _load(place: Path) -> dict[str, dict[str, Any]]:
    try:
        return cast("dict[str, dict[str, Any]]", json.loads(place.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}


def _save(place: Path, items: Mapping[str, Mapping[str, Any]]) -> None:
    _replace(place, json.dumps(items, ensure_ascii=False))


def _replace(path: Path, text: str | None) -> None:
    """Write a file so that a reader sees the old one or the new one; None removes it."""
    if text is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.collab")
    scratch.write_text(text, encoding="utf-8", newline="\n")
    scratch.replace(path)


__all__ = ["ITEMS", "MESSAGE", "Ledger"]
