"""The layer, asked for whom a thread or a graph is: in bounded time, and unable to fail the caller.

In:   a thread with its last words, or a graph and a query.
Out:  a `CollabMemory`, or a short reason why there is none. Each failure is logged once,
      without any text of a memory.

The reader is the principal, else the owner of the thread or graph; a layer that acts for a
principal already stays with that one. Where no grant lets the reader see anything, and where a
principal may not read for that owner, nothing is said, and nothing is wrong.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.errors import CollabError, NotPermittedError, UnknownIdError
from collab_layer.types.entity import Entity
from collab_layer.types.facet import CollabMemory
from collab_layer.types.interaction import Interaction
from collab_layer_zep import mapping
from collab_layer_zep.backend import ZepBackend
from collab_layer_zep.client import Api
from collab_layer_zep.places import MAX_KEPT, Places
from collab_layer_zep.section import CHARS_PER_TOKEN
from collab_layer_zep.voices import SPEAKS

Layer = CollabLayer | AsyncCollabLayer
READERS: Final = 4
MESSAGES: Final = 3
"""How many of a thread's messages stand for its query."""
MAX_WORDS: Final = 1_000
"""Characters of a query made of messages."""
_log = logging.getLogger("collab_layer_zep")


class Told(NamedTuple):
    """What the layer said, or why it said nothing."""

    memory: CollabMemory | None
    degraded: tuple[str, ...] = ()


Question = Callable[["Asker"], Awaitable[Told]]


class Asker:
    """Asks one layer about one project.

    Args:
        layer: Of the kind that fits the client.
        store: The project, attached to the layer before the first question.
        principal: Who reads; the owner of the thread or graph if None.
        purpose: Compared with the purpose of grants.
        budget_chars: Of an answer.
        timeout_s: For a question.
        graphs: Standalone graphs by uuid, where their names do not say whose they are.

    Attributes:
        store: As given.
        budget_chars: As given.
        attached: The layer knows the store.
    """

    def __init__(
        self,
        layer: Layer,
        store: ZepBackend,
        *,
        principal: Entity | None,
        purpose: str | None,
        budget_chars: int,
        timeout_s: float,
        graphs: dict[str, Entity],
    ) -> None:
        self.store, self._layer = store, layer
        self._principal, self._purpose = principal, purpose
        self.budget_chars, self._timeout_s = budget_chars, timeout_s
        self._api = Api(store.api.client, store.name, timeout_s, timeout_s, patient=False)
        self._places = Places(self._api, graphs)
        self._threads: dict[str, Entity] = {}
        self.attached = layer.principal is not None  # that is the operator's
        self._pool = None if store.api.is_async else ThreadPoolExecutor(READERS, "collab-zep")
        if self._pool is not None:
            weakref.finalize(self, self._pool.shutdown, wait=False)

    def blocking(self, question: Question) -> Told:
        """Ask, and wait at most `timeout_s`."""
        assert self._pool is not None
        try:
            asked = self._pool.submit(lambda: asyncio.run(self._whole(question)))
            try:
                return asked.result(self._timeout_s)
            finally:
                asked.cancel()
        except Exception as error:  # whatever goes wrong beside it, Zep's own answer stands
            return self._nothing(error)

    async def awaited(self, question: Question) -> Told:
        """Ask, and wait at most `timeout_s`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await question(self)
        except Exception as error:  # as above
            return self._nothing(error)

    async def attach(self) -> None:
        """Make the store known to the layer, once."""
        if not self.attached:
            await self._call(self._layer, "attach", self.store)
            self.attached = True

    # -- questions ---------------------------------------------------------------------------

    async def thread(self, uuid: str, words: str | None = None) -> Told:
        """What neighbours of a thread's user know of what was said last."""
        owner = await self._owner_of_thread(uuid)
        if owner is None:
            return Told(None)
        if words is None:
            words = "\n".join(await self._api.last_words(uuid, MESSAGES))
        return await self._context(owner, words)

    async def graph(self, uuid: str, query: str) -> Told:
        """What neighbours of a graph's owner know of a query."""
        owner = await self._places.owner(uuid) if mapping.is_uuid(uuid) else None
        return Told(None) if owner is None else await self._context(owner, query)

    async def heard(self, uuid: str, messages: Sequence[Any]) -> Told:
        """Keep what others than the thread's user said as their own memory; who is nobody known is not kept."""
        owner = await self._owner_of_thread(uuid)
        told: list[Interaction] = []
        for one in messages:
            whose = self.store.voices.of(str(one.name or "")) if one.role == SPEAKS else None
            if owner is not None and whose not in (None, owner) and self._layer.principal in (None, whose):
                key = f"{self.store.name}:message:{one.uuid_}"
                told.append(Interaction(actor=whose, verb="said", text=one.content, key=key))
        if told:
            await self._call(self._layer, "observe", told)
        return Told(None)

    # -- parts -------------------------------------------------------------------------------

    async def _owner_of_thread(self, uuid: str) -> Entity | None:
        known = self._threads.get(uuid)
        if known is not None or not mapping.is_uuid(uuid):
            return known
        thread = await self._api.thread(uuid)
        user = None if thread is None else await self._api.user(str(thread.get("user_uuid")))
        owner = None if user is None else mapping.user_entity(user.get("user_id"), user["uuid"])
        if owner is not None:
            if len(self._threads) >= MAX_KEPT:
                self._threads.clear()
            self._threads[uuid] = owner
        return owner

    async def _context(self, owner: Entity, words: str) -> Told:
        await self.attach()
        view: Any = self._layer
        if view.principal is None:
            view = view.as_(self._principal or owner, self._purpose)
        budget = self.budget_chars // CHARS_PER_TOKEN
        query = words.replace("\x00", " ").strip()[:MAX_WORDS] or None
        try:
            return Told(await self._call(view, "context", owner, query=query, budget_tokens=budget))
        except (NotPermittedError, UnknownIdError):
            return Told(None)

    async def _call(self, layer: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        found = getattr(layer, method)
        if isinstance(layer, CollabLayer):
            return await asyncio.to_thread(found, *args, **kwargs)
        return await found(*args, **kwargs)

    async def _whole(self, question: Question) -> Told:
        return await question(self)

    def _nothing(self, error: Exception) -> Told:
        late = isinstance(error, TimeoutError)
        code = error.code if isinstance(error, CollabError) else type(error).__name__
        reason = f"the layer did not answer within {self._timeout_s:g} s" if late else f"the layer failed ({code})"
        _log.warning("answered without neighbours: %s", reason)
        return Told(None, (reason,))


__all__ = ["Asker", "Layer", "Question", "Told"]
