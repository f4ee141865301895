"""One memory folder: what it holds at a commit, and what changed since another.

In:   a work tree and its owner.
Out:  files as of a commit; the changes of later commits, in order. Only what is committed is
      read, so that a half-written file is never taken for a memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity
from collab_layer_letta.memfs import files
from collab_layer_letta.memfs.files import File
from collab_layer_letta.memfs.git import Git

KEPT = 4
"""Commits whose files are kept in memory."""


class Folder:
    """A memory folder.

    Args:
        path: Its top.
        owner: Whose memory it is.
        store: Name of the backend, for errors.
    """

    def __init__(self, path: Path, owner: Entity, store: str) -> None:
        self.git, self.owner, self._store = Git(path, store), owner, store
        self._kept: dict[str, Mapping[str, File]] = {}

    async def now(self) -> Mapping[str, File]:
        """The files of the commit that is checked out, by path."""
        return await self.at(await self.git.head())

    async def at(self, commit: str | None) -> Mapping[str, File]:
        """The files of a commit, by path; none of no commit."""
        if commit is None:
            return {}
        if commit not in self._kept:
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[commit] = await self._load(commit)
        return self._kept[commit]

    async def _load(self, commit: str) -> Mapping[str, File]:
        held = files.tree(await self.git.read("ls-tree", "-r", "-z", commit))
        asked = "".join(f"{blob}\n" for blob in held.values()).encode()
        texts = files.blobs(await self.git.read("cat-file", "--batch", given=asked)) if held else iter(())
        log = await self.git.read("log", "-z", files.LOG_FORMAT, "--name-only", "--no-renames", commit)
        when = files.touched(log)
        return {
            path: File(path, files.body(text), blob, *when.get(path, (None, "")))
            for (path, blob), text in zip(held.items(), texts, strict=True)
        }

    async def before(self, moment: datetime) -> str | None:
        """The newest commit that was made by then."""
        if await self.git.head() is None:
            return None
        found = await self.git.read("rev-list", "-1", f"--before={int(moment.timestamp())}", "HEAD")
        return found.decode().strip() or None

    async def changed(self, since: str | None, until: str) -> list[str]:
        """Paths of memories that commits after `since` touched, oldest change first; from the beginning if None.

        Raises:
            InputError: There is no such commit (any more).
        """
        if since is not None:
            status, _, _ = await self.git.run("cat-file", "-e", f"{since}^{{commit}}")
            if status:
                raise InputError(f"`{since[:40]}` is no commit of this memory folder; start again with none")
        span = until if since is None else f"{since}..{until}"
        log = await self.git.read(
            "log", "-z", "--reverse", "--topo-order", "--format=%x01", "--name-only", "--no-renames", span
        )
        names = (name.strip(b"\n\x01") for name in log.split(b"\0"))
        return [path for path in (name.decode(errors="surrogateescape") for name in names) if files.is_memory(path)]


__all__ = ["Folder"]
