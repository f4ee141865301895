"""Our layer as a contestant, through its public calls.

In:   records.
Out:  contexts; each line with the records whose evidence it cites.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from collab_layer.bench.stores import ENDED, EVERYONE, THREAD, Item, free_moment, private
from collab_layer.config import Settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder
from collab_layer.types.entity import Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.interaction import MAX_LINKS, Interaction
from collab_layer.types.prompt import line
from collab_layer.types.scope import Sharing
from collab_layer.types.tokens import estimate_tokens

Sees = Literal["own", "pool"]


class LayerStore:
    """Our layer as a contestant, through its public calls.

    A question is asked by a session of the entity, which was granted the entity's own records;
    with `sees="pool"` it reads everybody's. So both arms have the same ranker and record form.

    Args:
        sees: `own` shares nothing; `pool` lets everybody read what is for everyone.
        links: False drops the links of records: a plain shared pool, without anything to curate by.
        embedder: None takes the built-in one.
    """

    def __init__(self, sees: Sees = "pool", *, links: bool = True, embedder: Embedder | None = None) -> None:
        self._sees, self._links, self._embedder = sees, links, embedder
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._layer: AsyncCollabLayer | None = None
        self._known: set[tuple[str, bool]] = set()
        self._kept: set[str] = set()
        self._granted: set[str] = set()
        self._shares: set[str] = set()
        self._pending: list[Interaction] = []
        self._ids: dict[tuple[str, datetime], str] = {}
        self._last: datetime | None = None
        self.model_calls = 0
        """Requests to models; known when it is closed."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def add(self, entity: str, text: str, links: Sequence[str], t: datetime, scope: str) -> str:
        """See `Store.add`."""
        owner = entity if scope == EVERYONE else private(entity)
        if scope == EVERYONE and self._sees == "pool":
            self._shares.add(owner)
        at = free_moment(self._ids, owner, t)
        id_ = f"r{len(self._ids)}"
        self._ids[owner, at] = id_
        self._kept.add(owner)
        self._last = at if self._last is None else max(self._last, at)
        task, _, ended = text.partition(ENDED)
        thread = next((one for one in links if one.startswith(THREAD)), None)
        others = tuple(one for one in links if one != thread)[:MAX_LINKS] if self._links else ()
        kept = {"text": task, "outcome": ended or None, "links": others, "at": at, "verb": "noted"}
        target = None if thread is None else Entity.parse(thread)
        self._pending.append(Interaction(actor=Entity.parse(owner), target=target, **kept))  # pyright: ignore[reportArgumentType]
        return id_

    async def context(self, entity: str, query: str, t: datetime, budget: int) -> list[Item]:
        """See `Store.context`."""
        await self.settle()
        layer = await self._opened()
        await self._meet(layer, entity)
        reader = Entity("session", Entity.parse(entity).id)
        past = t if self._last is not None and t < self._last else None
        memory = await layer.context(reader, query, budget_tokens=max(60, budget), as_of=past)
        items: list[Item] = []
        for facet in memory.facets:
            cited = [self._ids.get((str(one.owner), one.at)) for one in facet.evidence if one.at is not None]
            whole = facet.kind is FacetKind.LESSON
            sources = tuple(one for one in cited if one is not None) if whole else ()
            said = line(facet)
            items.append(Item(said, sources, estimate_tokens(said) + 1))
        return items

    async def aclose(self) -> None:
        """Close the layer and remove its files."""
        if self._layer is not None:
            self.model_calls = sum(row.calls for row in await self._layer.usage(2))
            await self._layer.aclose()
            self._layer = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def settle(self) -> None:
        """See `Settles.settle`: grant, observe, and do the work behind it."""
        layer = await self._opened()
        for owner in sorted(self._shares - self._granted):
            await layer.grant(owner, "tenant", "records")
            self._granted.add(owner)
        if self._pending:
            await layer.observe(self._pending)
            self._pending = []
            await layer.drain()

    async def _opened(self) -> AsyncCollabLayer:
        if self._layer is None:
            self._folder = tempfile.TemporaryDirectory(prefix="collab-store-", ignore_cleanup_errors=True)
            url = str(Path(self._folder.name) / "store.db")
            self._layer = await AsyncCollabLayer.open(
                url, sharing=Sharing.private(), embedder=self._embedder, settings=Settings(worker=False)
            )
        return self._layer

    async def _meet(self, layer: AsyncCollabLayer, entity: str) -> None:
        """Let the entity's session read all that the entity keeps."""
        knows = (entity, private(entity) in self._kept)
        if knows in self._known or not self._kept & {entity, private(entity)}:
            return
        self._known.add(knows)
        session = f"session:{Entity.parse(entity).id}"
        await layer.grant(entity, session, "records")
        if private(entity) in self._kept:
            await layer.grant(private(entity), session, "records")
        await layer.drain()


__all__ = ["LayerStore", "Sees"]
