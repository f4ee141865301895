"""Several calls at a time, few enough for Zep's limits.

In:   work and what to do it for.
Out:  the answers, in order; the first failure, once the others have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

AT_ONCE: Final = 6
T = TypeVar("T")
R = TypeVar("R")


async def each(work: Callable[[T], Awaitable[R]], items: Iterable[T]) -> list[R]:
    """Do work for every item, at most six at a time.

    Raises:
        BaseException: What the first failing item raised; the other items are done all the same.
    """
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> R:
        async with limit:
            return await work(item)

    done = await asyncio.gather(*(one(item) for item in items), return_exceptions=True)
    out: list[R] = []
    for answer in done:
        if isinstance(answer, BaseException):
            raise answer
        out.append(answer)
    return out


__all__ = ["AT_ONCE", "each"]
