"""Calls from the wrapper to the layer: bounded in time, and never able to fail the caller.

In:   an entity and a query; changes in the outbox.
Out:  a `CollabMemory`, or a short reason why there is none. Each failure is logged once,
      without any text of a memory.

Two bridges with the same methods: one blocks, one is awaited. Changes are handed over
one batch after another, in the order in which the store took them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from collab_layer.errors import CollabError, InputError
from collab_layer.ports.backend import MemoryBackend
from collab_layer.types.entity import Entity
from collab_layer.types.facet import CollabMemory, Facet
from collab_layer_mem0.locks import LoopLocks
from collab_layer_mem0.steps import Flow, drive, drive_async
from collab_layer_mem0.tap import Outbox

HANDOVER_S = 2.0
"""How long a write waits for the layer to commit; then it is finished in the background."""
READERS = 4
BATCH = 500
_log = logging.getLogger("collab_layer_mem0")


class Told(NamedTuple):
    """What the layer said, or why it said nothing."""

    memory: CollabMemory | None
    degraded: tuple[str, ...] = ()


class BlockingBridge:
    """For `Memory` and `MemoryClient` over a `CollabLayer`.

    Args:
        layer: A `CollabLayer`.
        name: Of the backend.
        outbox: The changes to hand over.
        timeout_s: How long a search waits for the layer.
        budget_tokens: Of each `context`.
        owned: Close the layer with the bridge.
    """

    def __init__(
        self, layer: Any, name: str, outbox: Outbox, *, timeout_s: float, budget_tokens: int, owned: bool
    ) -> None:
        self.layer, self._name, self._outbox, self._owned = layer, name, outbox, owned
        self._timeout_s, self._budget = timeout_s, budget_tokens
        self._readers = ThreadPoolExecutor(READERS, "collab-mem0-read")
        self._writer = ThreadPoolExecutor(1, "collab-mem0-write")
        self._last: Future[None] | None = None

    def attach(self, backend: MemoryBackend) -> None:
        """Make the store known to the layer."""
        self.layer.attach(backend)

    def context(self, entity: Entity, query: str) -> Told:
        """What neighbours know, within the time allowed."""
        try:
            asked = self._readers.submit(self.layer.context, entity, query=query, budget_tokens=self._budget)
            try:
                return Told(asked.result(self._timeout_s))
            finally:
                asked.cancel()
        except Exception as error:  # whatever goes wrong in the layer, the store's own answer stands
            return _nothing(error, self._timeout_s)

    def flush(self) -> None:
        """Hand over what waits; after two seconds that goes on in the background."""
        if not len(self._outbox) and (self._last is None or self._last.done()):
            return
        try:
            self._writer.submit(self._drain).result(HANDOVER_S)
        except (TimeoutError, RuntimeError) as error:  # too slow, or closed
            _log.warning("changes in `%s` are not handed over yet (%s)", self._name, type(error).__name__)

    def nudge(self) -> None:
        """Hand over what waits, without waiting for it."""
        try:
            self._last = self._writer.submit(self._drain)
        except RuntimeError:  # closed: `reconcile` will find them
            _log.warning("a change in `%s` came after the layer was closed", self._name)

    def _drain(self) -> None:
        drive(_handover(self.layer.observe_changes, self._outbox, self._name))

    def derived(self, facet_id: str) -> Facet:
        """A derived item.

        Raises:
            UnknownIdError: There is none under that id.
        """
        return self.layer.derived(facet_id)

    def forget(self, facet_id: str) -> None:
        """Forget a derived item.

        Raises:
            UnknownIdError: There is none under that id.
        """
        self.layer.forget(facet_id)

    def close(self) -> None:
        """Hand over what waits, then close the layer if it is ours."""
        self.flush()
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=False)
        if self._owned:
            self.layer.close()


class AwaitedBridge:
    """For `AsyncMemory` and `AsyncMemoryClient` over a layer of either kind.

    Args:
        layer: An `AsyncCollabLayer`, or a `CollabLayer` (then called in threads).
        blocking: It is a `CollabLayer`.
        name, outbox, timeout_s, budget_tokens, owned: As for `BlockingBridge`.
    """

    def __init__(
        self,
        layer: Any,
        name: str,
        outbox: Outbox,
        *,
        blocking: bool,
        timeout_s: float,
        budget_tokens: int,
        owned: bool,
    ) -> None:
        self.layer, self._name, self._outbox, self._owned = layer, name, outbox, owned
        self._blocking, self._timeout_s, self._budget = blocking, timeout_s, budget_tokens
        self._locks, self._running = LoopLocks(), set[asyncio.Task[None]]()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._to_attach: MemoryBackend | None = None

    def attach(self, backend: MemoryBackend) -> None:
        """Make the store known to the layer: now if it blocks, else before the first call."""
        if self._blocking:
            self.layer.attach(backend)
        else:
            self._to_attach = backend

    async def context(self, entity: Entity, query: str) -> Told:
        """What neighbours know, within the time allowed."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return Told(await self._call("context", entity, query=query, budget_tokens=self._budget))
        except Exception as error:  # whatever goes wrong in the layer, the store's own answer stands
            return _nothing(error, self._timeout_s)

    async def flush(self) -> None:
        """Hand over what waits; after two seconds that goes on in the background."""
        self._loop = asyncio.get_running_loop()
        if not len(self._outbox) and not self._running:
            return
        task = self._begin()
        done, _ = await asyncio.wait({task}, timeout=HANDOVER_S)
        if not done:
            _log.warning("changes in `%s` are not handed over yet (TimeoutError)", self._name)

    def nudge(self) -> None:
        """Hand over what waits, without waiting for it; may be called from any thread."""
        with contextlib.suppress(RuntimeError):  # in a thread of the store's there is none
            self._loop = asyncio.get_running_loop()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._drain())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _drain(self) -> None:
        async with self._locks.here():
            await drive_async(_handover(partial(self._call, "observe_changes"), self._outbox, self._name))

    async def derived(self, facet_id: str) -> Facet:
        """A derived item.

        Raises:
            UnknownIdError: There is none under that id.
        """
        return await self._call("derived", facet_id)

    async def forget(self, facet_id: str) -> None:
        """Forget a derived item.

        Raises:
            UnknownIdError: There is none under that id.
        """
        await self._call("forget", facet_id)

    def close(self) -> None:
        """Close the layer if it is ours; an `AsyncCollabLayer` is always the caller's."""
        if self._owned and self._blocking:
            self.layer.close()

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        found = getattr(self.layer, method)
        if self._blocking:
            return await asyncio.to_thread(found, *args, **kwargs)
        async with self._locks.here("attach"):
            if self._to_attach is not None:
                await self.layer.attach(self._to_attach)
                self._to_attach = None
        return await found(*args, **kwargs)


Bridge = BlockingBridge | AwaitedBridge


def _nothing(error: Exception, timeout_s: float) -> Told:
    late = isinstance(error, TimeoutError)
    reason = f"the layer did not answer within {timeout_s:g} s" if late else f"the layer failed ({_code(error)})"
    _log.warning("search answered without neighbours: %s", reason)
    return Told(None, (reason,))


def _handover(take: Callable[..., Any], outbox: Outbox, name: str) -> Flow:
    """Hand over batch after batch; one by one after a batch was refused, so that only the bad one is lost."""
    alone = 0
    while batch := outbox.take(1 if alone else BATCH):
        alone = max(0, alone - 1)
        try:
            yield partial(take, name, batch)
        except Exception as error:  # the write itself succeeded, whatever the layer makes of it
            if isinstance(error, CollabError) and error.retryable:
                outbox.put_back(batch)
                _log.warning("%d change(s) in `%s` wait for the next call (%s)", len(batch), name, _code(error))
                return
            if isinstance(error, InputError) and len(batch) > 1:
                outbox.put_back(batch)
                alone = len(batch)
            else:
                _log.warning("%d change(s) in `%s` are left to reconcile (%s)", len(batch), name, _code(error))


def _code(error: Exception) -> str:
    return error.code if isinstance(error, CollabError) else type(error).__name__


__all__ = ["HANDOVER_S", "AwaitedBridge", "BlockingBridge", "Bridge", "Told"]
