"""Where the owners of the erasure run keep memories of their own, as one process sees it.

In:   a folder, or the calls of a store that lives in another process and outlives this one.
Out:  a backend for the layer, a call that adds a memory, and every word that the store would still give.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol

from collab_layer.bench.mem0_offline import quiet
from collab_layer.errors import BackendError, CollabError, InputError
from collab_layer.ports.backend import Can, Changes, MemoryBackend, Page
from collab_layer.testing import InMemoryBackend
from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
from collab_layer.types.health import PartHealth
from collab_layer.types.update import Receipt, Update

Kind = Literal["none", "memory", "mem0"]
KINDS: tuple[Kind, ...] = ("none", "memory", "mem0")
PROMISED = frozenset({Can.LIST_OWNERS, Can.WATCH, Can.WRITE, Can.DEDUPE, Can.ERASE, Can.ERASE_OWNER})


class Kept(Protocol):
    """A store as its owners use it, past the layer."""

    @property
    def backend(self) -> MemoryBackend:
        """The store behind the layer's port."""
        ...

    def add(self, owner: str, text: str) -> str:
        """Keep a memory; its native id."""
        ...

    def find(self, owner: str, word: str) -> str | None:
        """The native id of an owner's memory that holds a word."""
        ...

    def words(self) -> str:
        """All that the store would tell of anybody, deleted memories included."""
        ...

    def close(self) -> None:
        """Leave it."""
        ...


class Remote:
    """An in-memory store in the process at the other end of a connection: a server that survives its clients."""

    name, can = "memory", PROMISED

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, Lock()

    def ask(self, method: str, *args: Any, **named: Any) -> Any:
        """One call, answered or refused as the store there does. Blocking."""
        with self._lock:
            self._connection.send((method, args, named))
            refused, answer = self._connection.recv()
        if refused:
            raise answer
        return answer

    async def _away(self, method: str, *args: Any, **named: Any) -> Any:
        return await asyncio.to_thread(self.ask, method, *args, **named)

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """See the port."""
        return await self._away("read", refs)

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """See the port."""
        return await self._away("records", owner, after=after, limit=limit)

    async def owners(self) -> list[Entity]:
        """See the port."""
        return await self._away("owners")

    async def changes(self, cursor: str | None, /, *, limit: int = 500) -> Changes:
        """See the port."""
        return await self._away("changes", cursor, limit=limit)

    async def write(self, updates: Sequence[Update], /) -> list[Receipt]:
        """See the port."""
        return await self._away("write", updates)

    async def retract(self, keys: Sequence[str], /) -> int:
        """See the port."""
        return await self._away("retract", keys)

    async def erase(self, refs: Sequence[MemoryRef], /) -> int:
        """See the port."""
        return await self._away("erase", refs)

    async def erase_owner(self, owner: Entity, /) -> None:
        """See the port."""
        await self._away("erase_owner", owner)

    async def health(self) -> PartHealth:
        """See the port."""
        return await self._away("health")

    async def aclose(self) -> None:
        """The store stays."""


def serve(store: InMemoryBackend, connection: Connection) -> None:
    """Answer a `Remote` until its process is gone. Blocking."""
    while True:
        try:
            method, args, named = connection.recv()
            connection.send(_answer(getattr(store, method), args, named))
        except (EOFError, OSError):
            return


def _answer(call: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> tuple[bool, Any]:
    try:
        answer = call(*args, **named)
        return False, asyncio.run(answer) if asyncio.iscoroutine(answer) else answer
    except BackendError as error:
        return True, error


class InMemory:
    """The in-memory store of another process."""

    def __init__(self, connection: Connection) -> None:
        self.backend: Remote = Remote(connection)

    def add(self, owner: str, text: str) -> str:
        """See `Kept`."""
        return self.backend.ask("add", owner, text).id

    def find(self, owner: str, word: str) -> str | None:
        """See `Kept`."""
        held = self.backend.ask("records", Entity.parse(owner)).records
        return next((record.ref.id for record in held if word in record.text), None)

    def words(self) -> str:
        """See `Kept`."""
        owners = [str(owner) for owner in self.backend.ask("owners")]
        return "\n".join([*self.backend.ask("texts"), *owners])

    def close(self) -> None:
        """See `Kept`."""


class Mem0Chroma:
    """A real Mem0 over Chroma, in files below a folder."""

    def __init__(self, folder: Path) -> None:
        for needed in ("mem0", "chromadb", "collab_layer_mem0"):
            if find_spec(needed) is None:
                raise CollabError(f"`{needed}` is missing: pip install collab-layer-mem0 chromadb")
        quiet(folder)
        self._memory: Any = import_module("collab_layer_mem0.testing").open_memory(folder)
        self.backend = import_module("collab_layer_mem0.backend").backend_for(self._memory, write=True)

    def add(self, owner: str, text: str) -> str:
        """See `Kept`; every other memory is extracted of a message, which Mem0 keeps too."""
        extracted = len(text) % 2 == 1
        given: Any = [{"role": "user", "content": text}] if extracted else text
        return self._memory.add(given, user_id=_id(owner), infer=extracted)["results"][0]["id"]

    def find(self, owner: str, word: str) -> str | None:
        """See `Kept`."""
        held = self._memory.get_all(filters={"user_id": _id(owner)}, top_k=1000)["results"]
        return next((one["id"] for one in held if word in one["memory"]), None)

    def words(self) -> str:
        """See `Kept`: every row, the history and the last messages."""
        rows = self._memory.vector_store.list(top_k=100_000)[0]
        said = [f"{row.payload}" for row in rows]
        for table in ("history", "messages"):
            said += [f"{row}" for row in self._memory.db.connection.execute(f"SELECT * FROM {table}")]
        return "\n".join(said)

    def close(self) -> None:
        """See `Kept`."""
        self._memory.close()


def kind_of(name: str) -> Kind:
    """A store of the run by its name.

    Raises:
        InputError: There is none.
    """
    for kind in KINDS:
        if kind == name:
            return kind
    raise InputError(f"`{name}` is no store of this run; there are {', '.join(KINDS)}")


def opened(kind: Kind, folder: Path, connection: Connection) -> Kept | None:
    """The store of a run as this process has it; None where the layer keeps all memories itself."""
    if kind == "memory":
        return InMemory(connection)
    if kind == "mem0":
        os.makedirs(folder / "mem0", exist_ok=True)
        return Mem0Chroma(folder / "mem0")
    return None


def _id(owner: str) -> str:
    return owner.partition(":")[2]


__all__ = ["InMemory", "Kept", "Kind", "Mem0Chroma", "Remote", "kind_of", "opened", "serve"]
