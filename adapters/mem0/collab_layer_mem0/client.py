"""The only module that imports Mem0; its blocking calls are moved to threads.

In:   a `Memory`, `AsyncMemory`, `MemoryClient` or `AsyncMemoryClient`, and plain values.
Out:  ids and payloads as plain dicts; failures as our errors, without any text of a memory.

Reads of a self-hosted store go to its vector store, not through `Memory`: they send no
telemetry of Mem0's and show none of its notices.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

import httpx
import mem0
from mem0.configs.base import MemoryConfig
from mem0.exceptions import AuthenticationError, MemoryNotFoundError, NetworkError, ValidationError

from collab_layer.errors import BackendDownError, BackendError, BackendTimeoutError, CollabError, InputError
from collab_layer_mem0.erasing import SCRUBS, Said, scrub_history, scrub_messages, scrub_said, write_history_anew

Kind = Literal["memory", "async_memory", "client", "async_client"]
CLASSES: Mapping[Kind, type] = {
    "memory": mem0.Memory,
    "async_memory": mem0.AsyncMemory,
    "client": mem0.MemoryClient,
    "async_client": mem0.AsyncMemoryClient,
}
EVERYTHING = 1_000_000
"""`top_k` that means all; stores have no paging of their own."""
LISTS_ALL = frozenset({"chroma", "faiss", "pgvector", "qdrant"})
"""Vector stores whose `list` without a filter is known to give every row."""
_ELSEWHERE = ("host", "url", "api_key", "client")
"""Settings of a vector store that say that its files are not here."""
_UUID_KEYS = frozenset({"pgvector", "qdrant"})


class Row(NamedTuple):
    """A stored memory: its id, its payload and, from a search, its score."""

    id: str
    payload: dict[str, Any]
    score: float | None = None


class Tail(NamedTuple):
    """Ids of memories that changed, oldest change first, and where the history then stood."""

    ids: list[str]
    cursor: str


def kind_of(memory: object) -> Kind:
    """Which of Mem0's four classes an object is.

    Raises:
        InputError: None of them.
    """
    for kind, cls in CLASSES.items():
        if isinstance(memory, cls):
            return kind
    raise InputError(f"{type(memory).__name__} is none of Mem0's Memory, AsyncMemory, MemoryClient, AsyncMemoryClient")


def oss_config(settings: Mapping[str, Any]) -> MemoryConfig:
    """Mem0's configuration from a plain dict."""
    return MemoryConfig(**settings)


def made(settings: Mapping[str, Any] | None, api_key: str | None, host: str | None, name: str) -> Any:
    """A `Memory` from its configuration, or a `MemoryClient` for a key.

    Raises:
        BackendError: It cannot be opened.
    """
    with failures(name, "opening Mem0"):
        return mem0.MemoryClient(api_key, host) if settings is None else mem0.Memory(oss_config(settings))


def not_found(memory_id: str) -> Exception:
    """What Mem0's service raises for an id it does not have."""
    return MemoryNotFoundError(message=f"Memory with id {memory_id} not found", error_code="HTTP_404")


@contextmanager
def failures(name: str, part: str) -> Generator[None]:
    """Turn whatever an SDK or a vector store raises into our errors; texts stay out of them.

    Raises:
        BackendTimeoutError: It did not answer in time.
        BackendError: It refused the request or our key.
        BackendDownError: Anything else.
    """
    try:
        yield
    except CollabError:
        raise
    except (TimeoutError, httpx.TimeoutException) as error:
        raise BackendTimeoutError(name, f"{part} did not answer in time") from error
    except (AuthenticationError, ValidationError) as error:
        raise BackendError(name, f"{part} refused the request ({type(error).__name__})") from error
    except NetworkError as error:
        slow = error.error_code == "NET_TIMEOUT"
        raise (BackendTimeoutError if slow else BackendDownError)(name, f"{part} cannot be reached") from error
    except Exception as error:  # vector stores share no error class; all but ours means the store failed
        raise BackendDownError(name, f"{part} failed with {type(error).__name__}") from error


class OssStore:
    """The vector store and the history of a `Memory` or `AsyncMemory`."""

    def __init__(self, memory: Any, name: str) -> None:
        self._memory, self._name = memory, name

    @property
    def provider(self) -> str:
        """Mem0's name for the vector store, for example `chroma`."""
        return str(self._memory.config.vector_store.provider)

    async def get(self, ids: Sequence[str]) -> list[Row]:
        """Rows by id; ids the store does not have are left out."""
        return await self._away(self._get, ids)

    async def rows(self, filters: Mapping[str, Any] | None, top_k: int = EVERYTHING) -> list[Row]:
        """Rows that match plain equalities, in no particular order."""
        return await self._away(self._rows, filters, top_k)

    async def search(self, query: str, vector: Sequence[float], filters: Mapping[str, Any], k: int) -> list[Row]:
        """Rows near a vector, best first."""
        return await self._away(self._search, query, vector, filters, k)

    async def tail(self, cursor: str | None, limit: int) -> Tail:
        """The history after a cursor; None is its end."""
        return await self._away(self._tail, cursor, limit)

    @property
    def folder(self) -> Path | None:
        """Where an embedded vector store lies, whose files can be cleared of what was deleted; None for any other."""
        given, held = self._memory.config.vector_store.config, self._memory.vector_store
        if self.provider not in SCRUBS or any(getattr(given, name, None) for name in _ELSEWHERE):
            return None
        path = getattr(held, "path", None) or getattr(given, "path", None)
        return Path(path) if path else None

    @property
    def erases(self) -> bool:
        """Whether it is known that nothing of a deleted memory can be read from it any more."""
        return self.folder is not None or self.provider == "pgvector"

    async def erase(self, ids: Sequence[str]) -> int:
        """Delete memories with their history, the last messages of their scopes, and what files keep; how many.

        Again changes nothing, and finishes what was broken off.
        """
        rows = await self.get(ids)
        await self._away(scrub_messages, self._memory.db, [row.payload for row in rows])
        if rows:
            await self._away(lambda: self._memory.entity_store)  # else Mem0 forgets to clear it in a fresh process
        for row in rows:
            await self.call("delete", row.id)
        await self._away(scrub_history, self._memory.db, ids)  # of those deleted before it was broken off, too
        await self._away(write_history_anew, self._memory.db)
        if self.folder is not None:
            await self._away(SCRUBS[self.provider], self.folder, ids)
        return len(rows)

    async def erase_said(self, said: Said) -> None:
        """Remove somebody's words from the last messages, and from the history where their memory is gone."""
        ids = await self._away(scrub_said, self._memory.db, said)
        held = {row.id for row in await self.get(ids)}
        await self._away(scrub_history, self._memory.db, [one for one in ids if one not in held])
        await self._away(write_history_anew, self._memory.db)

    async def hush(self, ids: Sequence[str]) -> None:
        """Take the words of memories that are still there out of the history."""
        await self._away(scrub_history, self._memory.db, ids)

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete memories that no entity row names, and leave no history of them.

        History first, and no deletion is added to it: broken off anywhere, the memory is still found, or all is gone.
        """
        await self.hush(ids)
        for one in ids:
            await self._away(self._memory.vector_store.delete, one)

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """One of Mem0's own methods, on the object as it was given to us."""
        found = getattr(self._memory, method)
        with failures(self._name, "Mem0"):
            if inspect.iscoroutinefunction(found):
                return await found(*args, **kwargs)
            return await asyncio.to_thread(found, *args, **kwargs)

    async def _away(self, work: Callable[..., Any], *args: Any) -> Any:
        with failures(self._name, f"the {self.provider} store"):
            return await asyncio.to_thread(work, *args)

    def _get(self, ids: Sequence[str]) -> list[Row]:
        store, strict = self._memory.vector_store, self.provider in _UUID_KEYS
        found = [store.get(vector_id=one) for one in ids if one and not (strict and not _is_uuid(one))]
        return [_row(one) for one in found if one is not None]

    def _rows(self, filters: Mapping[str, Any] | None, top_k: int) -> list[Row]:
        listed = self._memory.vector_store.list(filters=dict(filters) if filters else None, top_k=top_k)
        return [_row(one) for one in rows_of(listed)]

    def _search(self, query: str, vector: Sequence[float], filters: Mapping[str, Any], k: int) -> list[Row]:
        found = self._memory.vector_store.search(query=query, vectors=list(vector), top_k=k, filters=dict(filters))
        return [_row(one) for one in found]

    def _tail(self, cursor: str | None, limit: int) -> Tail:
        db = self._memory.db
        if db is None or db.connection is None:
            raise BackendDownError(self._name, "its Memory was closed")
        with db._lock:
            if cursor is None:
                last = db.connection.execute("SELECT rowid, id FROM history ORDER BY rowid DESC LIMIT 1").fetchone()
                return Tail([], f"{last[0]}:{last[1]}" if last else "0:")
            start, mark = _position(cursor)
            held = db.connection.execute("SELECT id FROM history WHERE rowid = ?", (start,)).fetchone()
            if start and (held is None or held[0] != mark):
                start, cursor = 0, "0:"  # the history was cleared and begun again: so is the feed
            rows = db.connection.execute(
                "SELECT rowid, id, memory_id FROM history WHERE rowid > ? ORDER BY rowid LIMIT ?", (start, limit)
            ).fetchall()
        return Tail([str(row[2]) for row in rows], f"{rows[-1][0]}:{rows[-1][1]}" if rows else cursor)


class Platform:
    """Mem0's service through a `MemoryClient` or `AsyncMemoryClient`."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    async def get(self, memory_id: str) -> dict[str, Any] | None:
        """One item, or None if the service does not have it."""
        try:
            return await self._call("get", memory_id)
        except MemoryNotFoundError:
            return None

    async def page(self, filters: Mapping[str, Any], page: int, size: int) -> tuple[list[dict[str, Any]], bool]:
        """One page of items, counted from 1, and whether another follows."""
        answer = await self._call("get_all", filters=dict(filters), page=page, page_size=size)
        return _items(answer), isinstance(answer, Mapping) and bool(cast("Mapping[str, Any]", answer).get("next"))

    async def search(self, query: str, filters: Mapping[str, Any], k: int) -> list[dict[str, Any]]:
        """Items for a query, best first."""
        return _items(await self._call("search", query, filters=dict(filters), top_k=k))

    async def users(self) -> list[dict[str, Any]]:
        """Every user, agent, app and run that has memories."""
        return _items(await self._call("users"))

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        found = getattr(self._client, method)
        with failures(self._name, "Mem0's service") if method != "get" else _getting(self._name):
            if inspect.iscoroutinefunction(found):
                return await found(*args, **kwargs)
            return await asyncio.to_thread(found, *args, **kwargs)


@contextmanager
def _getting(name: str) -> Generator[None]:
    missing: MemoryNotFoundError | None = None
    with failures(name, "Mem0's service"):
        try:
            yield
        except MemoryNotFoundError as error:
            missing = error
    if missing is not None:
        raise missing


def rows_of(listed: Any) -> list[Any]:
    """The rows in what a store's `list` gives: stores differ in how deep they put them."""
    given: list[Any] = list(listed or ())
    first = given[0] if given else None
    return list(cast("Sequence[Any]", first)) if isinstance(first, (list, tuple)) else given


def _items(answer: object) -> list[dict[str, Any]]:
    found = cast("Mapping[str, Any]", answer).get("results") if isinstance(answer, Mapping) else answer
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def _row(found: Any) -> Row:
    return Row(str(found.id), dict(found.payload or {}), getattr(found, "score", None))


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _position(cursor: str) -> tuple[int, str]:
    number, colon, mark = cursor.partition(":")
    if not colon or not (number.isascii() and number.isdigit()):
        raise InputError(f"`{cursor[:40]}` is no cursor of Mem0's history; start again with none")
    return int(number), mark


__all__ = [
    "CLASSES",
    "EVERYTHING",
    "LISTS_ALL",
    "Kind",
    "OssStore",
    "Platform",
    "Row",
    "Tail",
    "failures",
    "kind_of",
    "made",
    "not_found",
    "oss_config",
    "rows_of",
]
