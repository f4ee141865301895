"""Locks that belong to the event loop they are used on.

In:   a name.
Out:  one `asyncio.Lock` per running loop and name. Two loops do not exclude each other:
      what they do to one block converges, as it does for two processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
WIDTH = 8
"""Requests in flight for one call."""


class LoopLocks:
    """One lock per event loop and name."""

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()

    def here(self, name: str = "") -> asyncio.Lock:
        """The lock of the running loop."""
        return self._held.setdefault(asyncio.get_running_loop(), {}).setdefault(name, asyncio.Lock())


async def gathered(calls: Iterable[Callable[[], Awaitable[T]]], width: int = WIDTH) -> list[T]:
    """The answers in order, with at most `width` calls under way; the first failure ends the others."""
    gate = asyncio.Semaphore(width)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with gate:
            return await call()

    async with _Group() as group:
        tasks = [group.create_task(one(call)) for call in calls]
    return [task.result() for task in tasks]


class _Group(asyncio.TaskGroup):
    """A task group that raises its first failure itself, not in a group of exceptions."""

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await super().__aexit__(kind, error, trace)
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several.exceptions[0].__cause__


__all__ = ["WIDTH", "LoopLocks", "gathered"]
