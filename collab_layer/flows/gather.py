"""Many callers, one commit: what is told while a commit runs is stored together by the next.

In:   batches of interactions, from any task of the layer's loop.
Out:  their ids, after the commit that holds them.

A caller alone pays nothing for it: its batch is written at once. A batch that is refused is refused
alone: the others of its group are stored. At most `WAITING` interactions wait in memory; who comes
then waits until there is room, however long that takes, and nothing is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from collab_layer.errors import LayerClosedError, StoreError
from collab_layer.types.interaction import Interaction

GROUP = 2_000
"""Interactions of one commit, unless a single batch holds more."""
WAITING = 20_000
"""Interactions that wait in memory; one batch may exceed it."""

Store = Callable[[str, Sequence[Interaction]], list[str]]
Write = Callable[[Sequence["Told"]], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Told:
    """One caller's batch, and what became of it: ids, or an error."""

    tenant: str
    batch: Sequence[Interaction]
    done: asyncio.Future[list[str]]
    ids: list[str] = field(default_factory=list[str])
    error: Exception | None = None


class Gathering:
    """The queue of one process; it belongs to the event loop."""

    def __init__(self) -> None:
        self._queue: deque[Told] = deque()
        self._size = 0
        self._writer: asyncio.Task[None] | None = None
        self._room = asyncio.Event()

    async def add(self, tenant: str, batch: Sequence[Interaction], write: Write) -> list[str]:
        """Store a batch; the id of each interaction, after the commit.

        Args:
            tenant: Whose.
            batch: In order.
            write: Stores batches of one tenant off the loop, and notes in each what became of it.

        Raises:
            CollabError: This batch was refused.
        """
        while self._size >= WAITING:
            self._room.clear()
            await self._room.wait()
        told = Told(tenant, batch, asyncio.get_running_loop().create_future())
        self._queue.append(told)
        self._size += len(batch)
        if self._writer is None:
            self._writer = asyncio.create_task(self._run(write))
        return await told.done

    async def _run(self, write: Write) -> None:
        group: list[Told] = []
        try:
            while self._queue:
                group = self._next()
                await write(group)
                for told in group:
                    _settle(told)
        except LayerClosedError as error:
            self._give_up(group, error)
        except BaseException:  # the loop ends: nobody may wait for ever
            self._give_up(group, LayerClosedError())
            raise
        finally:
            self._writer = None
            self._room.set()

    def _next(self) -> list[Told]:
        """The oldest batch, and those of its tenant that fit into the same commit; order within a tenant is kept."""
        first = self._queue.popleft()
        group, size, left = [first], len(first.batch), deque[Told]()
        while self._queue and size < GROUP:
            told = self._queue.popleft()
            if told.tenant == first.tenant:
                group.append(told)
                size += len(told.batch)
            else:
                left.append(told)
        self._queue.extendleft(reversed(left))
        self._size -= size
        self._room.set()
        return group

    def _give_up(self, group: Sequence[Told], error: LayerClosedError) -> None:
        for told in [*group, *self._queue]:
            told.error = error
            _settle(told)
        self._queue.clear()
        self._size = 0


def _settle(told: Told) -> None:
    if told.done.done():  # the caller was cancelled; what it told is stored
        return
    if told.error is None:
        told.done.set_result(told.ids)
    else:
        told.done.set_exception(told.error)


def store_group(group: Sequence[Told], store: Store) -> None:
    """Store batches of one tenant in one commit; if one of them is refused, each by itself."""
    try:
        ids = iter(store(group[0].tenant, [item for told in group for item in told.batch]))
    except StoreError as error:  # it is not the batch: no other would fare better
        for told in group:
            told.error = error
    except Exception as error:  # whatever one caller's input brings about, it is not the others' error
        if len(group) == 1:
            group[0].error = error
            return
        for told in group:
            store_group([told], store)
    else:
        for told in group:
            told.ids = [next(ids) for _ in told.batch]


__all__ = ["Gathering", "Told", "store_group"]
