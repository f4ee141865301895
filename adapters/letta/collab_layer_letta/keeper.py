"""Keep the signal blocks of a layer's attached agents current.

In:   a layer of either kind, and a backend over a client of the same kind.
Out:  one round: what agents remembered since is read, what their neighbours know is delivered,
      every signal block is looked at and repaired. `run` does that from time to time.

A round that fails is told, and the next one is tried. Two rounds at once do no harm: what they
write converges.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.errors import BackendError, CollabError, InputError, LayerClosedError
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer_letta import mapping
from collab_layer_letta.backend import LettaBackend
from collab_layer_letta.mapping import Agent
from collab_layer_letta.signal import Settled

Layer = CollabLayer | AsyncCollabLayer
EVERY_S = 30.0
BUDGETS = (60, 32_000)
"""What the layer takes as a budget, in tokens."""
CHARS_PER_TOKEN = 4
_log = logging.getLogger("collab_layer_letta")


@dataclass(frozen=True, slots=True)
class Report:
    """What a round did.

    Attributes:
        read: Memories that were new or changed.
        delivered: Derived items that were sent or taken back.
        signals: How each signal block looks.
        failed: What could not be done, one sentence each; the rest was.
    """

    read: int = 0
    delivered: int = 0
    signals: tuple[Settled, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tally:
    read: int = 0
    delivered: int = 0
    failed: list[str] = field(default_factory=list[str])


class Keeper:
    """Keeps what is attached over one client to one layer.

    Args:
        layer: Open; it stays the caller's to close.
        backend: Attached to the layer by the first round.

    Raises:
        InputError: An async client cannot be used from the loop thread of a blocking layer.
    """

    def __init__(self, layer: Layer, backend: LettaBackend) -> None:
        if backend.api.is_async and isinstance(layer, CollabLayer):
            raise InputError("an AsyncLetta needs an AsyncCollabLayer on the same event loop; or use Letta")
        self.layer, self.backend = layer, backend
        self._is_attached, self._indexed = False, set[Entity]()
        self._told = set[tuple[Entity, str | None]]()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    # -- one round ---------------------------------------------------------------------

    async def join(self) -> None:
        """Make the store known to the layer; once."""
        if not self._is_attached:
            await self.call("attach", self.backend, deliver=True)
            self._is_attached = True

    async def round(self, entities: Sequence[Entity] | None = None, *, again: bool = False) -> Report:
        """Read, deliver, repair.

        Args:
            entities: Only these are read, delivered to and settled; every attached one if None.
            again: Deliver also what was delivered before.

        Raises:
            BackendError: The server cannot even be read.
        """
        await self.join()
        agents = await self.backend.signals.attached()
        wanted = entities or sorted({one.entity for one in agents})
        tally = _Tally()
        await self._share(agents)
        mine = [one for one in agents if one.is_shared and one.entity in wanted]
        people = {person for one in mine for person in one.people.values() if person is not None}
        await self._read([*wanted, *sorted(people - set(wanted))], tally)
        for entity in wanted:
            await self._deliver(entity, tally, again=again)
        await self._flush(tally)
        found = await self.backend.signals.settle_all(entities, prompts=True)
        tally.failed += [str(error) for error in found.failed]
        return Report(tally.read, tally.delivered, tuple(found.settled), tuple(tally.failed))

    def sync(self) -> Report:
        """A round for callers without an event loop.

        Raises:
            BackendError: The server cannot even be read.
        """
        return asyncio.run(self.round())

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call the layer, whichever kind it is."""
        found = getattr(self.layer, method)
        if isinstance(self.layer, CollabLayer):
            return await asyncio.to_thread(found, *args, **kwargs)
        return await found(*args, **kwargs)

    async def _share(self, agents: Sequence[Agent]) -> None:
        """Those whose agents have a block in common become neighbours: each refers to it, once."""
        told = [
            Interaction(actor=entity, verb="shares", links=(thing,), key=f"{self.backend.name}:shares:{thing}")
            for thing, entities in mapping.shares(agents).items()
            for entity in entities
        ]
        new = [one for one in told if (one.actor, one.key) not in self._told]
        if new:
            await self.call("observe", new)
            self._told.update((one.actor, one.key) for one in new)

    async def _read(self, entities: Sequence[Entity], tally: _Tally) -> None:
        """What was remembered since; an entity nobody knows of yet is read whole."""
        new = [entity for entity in entities if entity not in self._indexed]
        try:
            for entity in new:
                count: int = await self.call("index", self.backend, owners=[entity])
                tally.read += count
                if count:
                    self._indexed.add(entity)
            tally.read += await self.call("reconcile", self.backend)
            await self.call("drain")
        except LayerClosedError:
            raise
        except CollabError as error:
            tally.failed.append(f"reading: {error}")

    async def _deliver(self, entity: Entity, tally: _Tally, *, again: bool) -> None:
        budget = min(max(self.backend.limit // CHARS_PER_TOKEN, BUDGETS[0]), BUDGETS[1])
        try:
            tally.delivered += await self.call("deliver", entity, budget_tokens=budget, again=again)
        except LayerClosedError:
            raise
        except CollabError as error:
            tally.failed.append(f"`{entity}`: {error}")

    async def _flush(self, tally: _Tally) -> None:
        try:
            await self.backend.flush()
        except BackendError as error:
            tally.failed.append(str(error))

    # -- from time to time ---------------------------------------------------------------

    def start(self, every_s: float = EVERY_S) -> None:
        """Begin rounds: in a thread for a blocking layer, on the running loop for an async one. Again: nothing.

        Args:
            every_s: Seconds between two rounds, > 0.
        """
        if every_s <= 0:
            raise InputError(f"every_s must be above 0, not {every_s}")
        if isinstance(self.layer, AsyncCollabLayer):
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self.run(every_s))
        elif self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._loop, args=(every_s,), name="collab-letta", daemon=True)
            self._thread.start()

    async def run(self, every_s: float = EVERY_S) -> None:
        """Rounds until cancelled, or until the layer is closed."""
        open_ = True
        while open_:
            await asyncio.sleep(every_s)
            open_ = await self._safely()

    def _loop(self, every_s: float) -> None:
        while not self._stop.wait(every_s) and asyncio.run(self._safely()):
            pass

    async def _safely(self) -> bool:
        """One round; whether there is to be another."""
        try:
            report = await self.round()
        except LayerClosedError:
            return False
        except CollabError as error:
            _log.warning("a round of signals failed and is tried again: %s", error)
            return True
        for why in report.failed:
            _log.warning("a round of signals was not whole: %s", why)
        return True

    def stop(self) -> None:
        """End the rounds of a blocking layer; waits for one under way."""
        thread, self._thread = self._thread, None
        self._stop.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    async def astop(self) -> None:
        """End the rounds of an async layer."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


__all__ = ["EVERY_S", "Keeper", "Layer", "Report"]
