"""The git command line, awaited: the only module that starts a process.

In:   a folder inside a work tree.
Out:  what git prints; failures as our errors. It asks nobody for a password, runs in the C
      locale, and commits under a name of its own. It never pushes.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from collab_layer.errors import BackendDownError, BackendTimeoutError
from collab_layer_letta.refusals import MemFsBusyError, MemFsError

TIMEOUT_S = 60.0
PATIENCE_S = 5.0
NAME, EMAIL = "collab-layer", "collab-layer@localhost"
"""Author and committer of our commits."""
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": "true",
    "LC_ALL": "C",
    "GIT_AUTHOR_NAME": NAME,
    "GIT_AUTHOR_EMAIL": EMAIL,
    "GIT_COMMITTER_NAME": NAME,
    "GIT_COMMITTER_EMAIL": EMAIL,
}
_STRAY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX")
"""Set while a hook of another repository runs; they would lead git there."""


class Git:
    """One work tree.

    Args:
        folder: Its top folder.
        store: Name of the backend, for errors.
    """

    def __init__(self, folder: Path, store: str) -> None:
        self.folder, self._store = folder, store

    async def run(self, *arguments: str, given: bytes = b"", timeout_s: float = TIMEOUT_S) -> tuple[int, bytes, str]:
        """Run git; its exit status, output, and the first line of its complaint.

        Raises:
            BackendDownError: There is no git, or no such folder.
            BackendTimeoutError: It did not end in time; it was stopped.
        """
        environment = {key: value for key, value in os.environ.items() if key not in _STRAY} | _QUIET
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                "-C",
                str(self.folder),
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise BackendDownError(self._store, f"git cannot be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(timeout_s):
                out, complaint = await process.communicate(given)
        except TimeoutError as error:
            raise BackendTimeoutError(self._store, f"git {arguments[0]} did not end within {timeout_s:g} s") from error
        finally:
            if process.returncode is None:
                await _end(process)
        return process.returncode or 0, out, _first(complaint)

    async def read(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run git for what it prints.

        Raises:
            BackendDownError: It failed: no repository, a broken one, or one it does not trust.
        """
        status, out, complaint = await self.run(*arguments, given=given)
        if status:
            raise BackendDownError(self._store, f"git {arguments[0]} failed: {complaint}")
        return out

    async def head(self) -> str | None:
        """The commit that is checked out; None in a repository without one."""
        await self.read("rev-parse", "--git-dir")  # tells a folder that is no repository from an empty one
        status, out, _ = await self.run("rev-parse", "--verify", "-q", "HEAD^{commit}")
        return None if status else out.decode().strip()

    async def directory(self) -> Path:
        """Where git keeps its own files, shared by all work trees."""
        found = (await self.read("rev-parse", "--git-common-dir")).decode().strip()
        return (self.folder / found).resolve()

    async def check_idle(self) -> None:
        """See that nobody is in the middle of something.

        Raises:
            MemFsBusyError: A merge, a rebase, a cherry-pick, or another git process.
            MemFsError: No branch is checked out.
        """
        own = Path((await self.read("rev-parse", "--absolute-git-dir")).decode().strip())
        for name, what in _UNDER_WAY.items():
            if (own / name).exists():
                raise MemFsBusyError(self._store, f"{what} is under way in `{self.folder.name}`; finish it first")
        status, _, _ = await self.run("symbolic-ref", "-q", "HEAD")
        if status:
            raise MemFsError(self._store, f"no branch is checked out in `{self.folder.name}`")

    async def upstream(self) -> str | None:
        """The branch of a remote that the user set for this one, if any."""
        status, out, _ = await self.run("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
        return None if status else out.decode().strip()


_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "index.lock": "another git process",
}


async def _end(process: asyncio.subprocess.Process) -> None:
    """End git with its hooks, politely first: git takes its locks with it."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await process.communicate()
                return


def _first(complaint: bytes) -> str:
    lines: Sequence[str] = complaint.decode(errors="replace").strip().splitlines()
    return lines[0][:200] if lines else "it said nothing"


__all__ = ["EMAIL", "NAME", "Git"]
