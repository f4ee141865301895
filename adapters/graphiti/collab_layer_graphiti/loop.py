"""One event loop on a thread of its own, for clients that belong to the loop they were used on.

In:   work, from any thread and any loop.
Out:  its result, where it was asked for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from collab_layer.errors import BackendError

T = TypeVar("T")


class LoopThread:
    """Starts with the first work and ends with `close`.

    Args:
        name: Of the store, for errors and for the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]], timeout_s: float | None = None) -> T:
        """Await work on the thread's loop; a caller that is cancelled cancels it.

        Raises:
            TimeoutError: It took longer than `timeout_s`.
            BackendError: The thread was closed.
        """

        async def bounded() -> T:
            async with asyncio.timeout(timeout_s):
                return await work()

        with self._lock:
            loop = self._running()
            future = asyncio.run_coroutine_threadsafe(bounded(), loop)
        return await asyncio.wrap_future(future)

    async def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the last work, then end the thread; calling it again does nothing."""
        with self._lock:
            closed, self._closed = self._closed, True
            loop, thread = self._loop, self._thread
        if closed or loop is None or thread is None:
            return
        try:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(last(), loop))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._closed:
            raise BackendError(self._name, "it was closed; open it again")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(self._loop,), name=f"collab-{self._name}", daemon=True)
            self._thread.start()
        return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


__all__ = ["LoopThread"]
