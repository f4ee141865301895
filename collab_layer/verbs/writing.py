"""What goes into the layer: stores that are attached, interactions, changes in stores.

In:   what a caller observed, or an adapter saw.
Out:  ids and counts, after the commit; what follows is done by a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from collab_layer.errors import InputError
from collab_layer.flows import bring, work
from collab_layer.flows import observe as observe_flow
from collab_layer.ports.backend import Can, Change, Embeds, MemoryBackend, check_promises, require
from collab_layer.types.entity import Entity, checked_text, entities
from collab_layer.types.interaction import Interaction
from collab_layer.verbs.base import EntityLike, View, checked


class Writing(View):
    """What goes in."""

    async def attach(self, backend: MemoryBackend, *, deliver: bool = False) -> None:
        """Use a store: read its memories and, with `deliver`, write derived items into its reserved scope.

        Raises:
            PluginError: It promises what it has no method for.
            UnsupportedError: It is to be delivered to but cannot be written.
        """
        tools = self._operator("attach a store to")
        check_promises(backend)
        if deliver:
            require(backend, Can.WRITE)
            tools.delivering.add((self.tenant, backend.name))
        tools.backends[self.tenant, backend.name] = backend
        await tools.in_thread(work.unpark, tools, self.tenant)
        if self._core.own_embedder and Can.EMBED in backend.can and isinstance(backend, Embeds):
            self._core.own_embedder = False
            tools.embedder = backend.embedder
            tools.store.use_embedder(backend.embedder.id, backend.embedder.dim)
        await bring.start_feed(tools, self._scope, backend)

    async def observe(
        self,
        actor: EntityLike | Interaction | Sequence[Interaction],
        target: EntityLike | None = None,
        verb: str = "interacted",
        text: str | None = None,
        links: Sequence[EntityLike] = (),
        outcome: str | None = None,
        at: datetime | None = None,
        key: str | None = None,
        weight: float = 1.0,
        replaces: str | None = None,
    ) -> list[str]:
        """Record what happened: one interaction by its parts, or a list of `Interaction`.

        Returns after the commit. The same key of the same actor is stored once; the id
        returned is then that of the first. Embedding and links in the text follow in the
        background. An event counts from its own time, `at`, also if it is told late.

        `replaces` is the id of an earlier interaction of the same actor whose statement no
        longer holds: it held until this one. Reads of the past still find it.

        Returns:
            The id of each interaction, in order.
        """
        tools = self._alive()
        if isinstance(actor, (Entity, str)):
            parts: dict[str, Any] = {"target": target, "verb": verb, "text": text, "links": tuple(links)}
            parts |= {"outcome": outcome, "at": at, "key": key, "weight": weight, "replaces": replaces}
            batch: Sequence[Interaction] = [checked(Interaction, actor=actor, **parts)]
        else:
            batch = [actor] if isinstance(actor, Interaction) else _listed(actor)
        if not batch:
            return []
        ids = await observe_flow.observe(tools, self._scope, batch)
        self._core.nudge()
        return ids

    async def observe_changes(self, backend: str, changes: Sequence[Change]) -> int:
        """Take in what an adapter saw change in its store; how many changes were news."""
        tools = self._operator("report what a store changed to")
        count = await observe_flow.observe_changes(tools, self._scope, checked_text(backend), changes)
        self._core.nudge()
        return count

    async def index(
        self,
        backend: MemoryBackend,
        owners: Sequence[EntityLike] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Bring an already full store in; goes on where it stopped. How many records were taken.

        Args:
            backend: Is attached if it is not yet.
            owners: Whose records; None where the store can list them.
            progress: Called with owners done and owners in all.
        """
        tools = self._alive()
        if (self.tenant, backend.name) not in tools.backends:
            await self.attach(backend)
        wanted = None if owners is None else entities(owners)
        count = await bring.index(tools, self._scope, backend, wanted, progress)
        self._core.nudge()
        return count

    async def reconcile(self, backend: MemoryBackend) -> int:
        """Take in what other processes wrote to or deleted from a store; how many changes."""
        count = await bring.reconcile(self._alive(), self._scope, backend)
        self._core.nudge()
        return count


def _listed(batch: Sequence[Interaction]) -> list[Interaction]:
    if not isinstance(batch, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  callers pass anything
        raise InputError(f"a {type(batch).__name__} is no actor; name an entity, or pass a list of Interaction")
    return list(batch)


__all__ = ["Writing"]
