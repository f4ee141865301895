"""A lock per memory id, at a fixed price: ids share a few locks.

They keep reading, changing and writing back of one memory together, which the lock on
the store alone does not: without them concurrent updates lose one another's metadata,
and an update brings back a memory that is being deleted.
"""

from __future__ import annotations

import asyncio
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

STRIPES = 64


class Stripes:
    """Locks by memory id; the same id always has the same one."""

    def __init__(self, count: int = STRIPES) -> None:
        self._locks: tuple[Any, ...] = tuple(RLock() for _ in range(count))

    def _number(self, memory_id: str) -> int:
        return crc32(memory_id.encode(errors="surrogatepass")) % len(self._locks)

    def of(self, memory_id: str) -> Any:
        """The thread lock of an id."""
        return self._locks[self._number(memory_id)]

    def name(self, memory_id: str) -> str:
        """The name of the lock of an id, for locks that belong to an event loop."""
        return str(self._number(memory_id))


class LoopLocks:
    """One `asyncio.Lock` per event loop and name."""

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()

    def here(self, name: str = "") -> asyncio.Lock:
        """The lock of the running loop."""
        return self._held.setdefault(asyncio.get_running_loop(), {}).setdefault(name, asyncio.Lock())


__all__ = ["STRIPES", "LoopLocks", "Stripes"]
