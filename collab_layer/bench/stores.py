"""What a memory must offer to enter the benchmark: two calls.

In:   records of entities, in the order of their time.
Out:  for a question, `Item`s within a budget, each with the ids of the records it repeats.

A store is one arm of a comparison: `LayerStore` is ours, with neighbours or without;
`mem0_store` has Mem0 alone, as a pool and with neighbours. Any object with these two calls may enter:
`collab bench tasks tickets --data DIR --store name=package.module:factory`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

from collab_layer.config import Settings
from collab_layer.errors import InputError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder
from collab_layer.types.entity import Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.interaction import MAX_LINKS, Interaction
from collab_layer.types.prompt import line
from collab_layer.types.scope import Sharing
from collab_layer.types.tokens import estimate_tokens

ENDED = "\nOutcome: "
"""What stands between a task and how it ended, in the text of a record."""
EVERYONE, PRIVATE = "everyone", "private"
"""Scopes: whom a record may reach. A private one only its entity."""
THREAD = "thread:"
"""A link of this kind says that records belong to one conversation."""

KNOWN = {
    "mem0": "collab_layer.bench.mem0_store:alone",
    "mem0-pool": "collab_layer.bench.mem0_store:shared",
    "mem0-ours": "collab_layer.bench.mem0_store:together",
}
"""Contestants that are a part of the benchmark."""
RESERVED = frozenset(("own", "pool", "ours", "prior"))
"""Names of our own contestants."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a context.

    Attributes:
        text: As a prompt would show it.
        sources: Ids of the records that it repeats, strongest first; empty for a digest of many.
        tokens: What it costs, by `estimate_tokens`.
    """

    text: str
    sources: tuple[str, ...]
    tokens: int


@runtime_checkable
class Store(Protocol):
    """A contestant."""

    async def add(self, entity: str, text: str, links: Sequence[str], t: datetime, scope: str) -> str:
        """Keep a record.

        Args:
            entity: Whose, as `agent:a`.
            text: Its words; where a task was solved the last line begins with `Outcome: `.
            links: Entities that it refers to, as `decision:refund`; `thread:7` is a conversation.
            t: When it was said; later calls have the same time or a later one.
            scope: `everyone` or `private`.

        Returns:
            An id by which `context` names it.
        """
        ...

    async def context(self, entity: str, query: str, t: datetime, budget: int) -> list[Item]:
        """What helps an entity with a question, best first; only records up to `t`, at most `budget` tokens.

        An entity may read what it added itself and, in a store that shares, what others added for everyone.
        """
        ...


@runtime_checkable
class Settles(Store, Protocol):
    """The extra call of a contestant that keeps records in bulk: made before a question, counted as writing."""

    async def settle(self) -> None:
        """Make what was added ready to be asked for."""
        ...


@runtime_checkable
class Asks(Store, Protocol):
    """The extra attribute of a contestant that asks language models."""

    @property
    def model_calls(self) -> int:
        """Requests to models so far."""
        ...


Opens = Callable[[], Store]
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


def free_moment(taken: Container[tuple[str, datetime]], owner: str, t: datetime) -> datetime:
    """The first moment from `t` on that an owner has no record of: evidence is told apart by owner and time."""
    while (owner, t) in taken:
        t += _TICK
    return t


def named_stores(given: Sequence[str], embedder: Embedder | None = None) -> dict[str, Opens]:
    """Factories of stores by name.

    Args:
        given: Each a name of `KNOWN`, or `name=package.module:factory`.
        embedder: Of the run; a factory that takes a keyword `embedder` is called with it.

    Raises:
        InputError: One cannot be imported, its name is used twice or is not plain.
    """
    found: dict[str, Opens] = {}
    for one in given:
        name, equals, path = one.partition("=")
        path = path if equals else KNOWN.get(name, "")
        if not path or not _NAME.fullmatch(name):
            known = ", ".join(KNOWN)
            raise InputError(
                f"give a store as `name=package.module:factory`, the name plain, or as {known}; not {one!r}"
            )
        if name in found or name in RESERVED:
            raise InputError(f"the name {name!r} is taken; give the store another")
        found[name] = _factory(path, embedder)
    return found


def alone_of(arm: str, arms: Container[str]) -> str:
    """Whose answers a contestant is compared with: `x` for `x-y` if both compete, else our own memory alone."""
    base = arm.partition("-")[0]
    return base if base != arm and base in arms else "own"


def _factory(path: str, embedder: Embedder | None) -> Opens:
    module, colon, attribute = path.partition(":")
    if not colon or not module:
        raise InputError(f"name a store as `package.module:factory`, not {path!r}")
    try:
        factory = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"the store {path!r} cannot be imported: {error}") from error
    if not callable(factory):
        raise InputError(f"the store {path!r} is no function or class that makes one")
    opens: Any = factory
    return partial(opens, embedder=embedder) if embedder is not None and _takes_embedder(factory) else opens


def _takes_embedder(factory: Callable[..., object]) -> bool:
    try:
        return "embedder" in signature(factory).parameters
    except ValueError:  # some classes written in C tell nothing
        return False


def private(entity: str) -> str:
    """Whose an entity's private records are: a name of its own, which shares nothing."""
    one = Entity.parse(entity)
    return f"{one.kind}:{one.id}.private"


__all__ = [
    "ENDED",
    "EVERYONE",
    "PRIVATE",
    "THREAD",
    "Asks",
    "Item",
    "LayerStore",
    "Opens",
    "Settles",
    "Store",
    "alone_of",
    "free_moment",
    "named_stores",
    "private",
]
