"""What a memory must offer to enter the benchmark: two calls.

In:   records of entities, in the order of their time.
Out:  for a question, `Item`s within a budget, each with the ids of the records it repeats.

A store is one arm of a comparison: `layer_store` is ours, with neighbours or without; `mem0_store` has
Mem0 alone, as a pool and with neighbours. Any object with these two calls may enter:
`collab bench tasks tickets --data DIR --store name=package.module:factory`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from collab_layer.types.entity import Entity

ENDED = "\nOutcome: "
"""What stands between a task and how it ended, in the text of a record."""
EVERYONE, PRIVATE = "everyone", "private"
"""Scopes: whom a record may reach. A private one only its entity."""
THREAD = "thread:"
"""A link of this kind says that records belong to one conversation."""
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


def free_moment(taken: Container[tuple[str, datetime]], owner: str, t: datetime) -> datetime:
    """The first moment from `t` on that an owner has no record of: evidence is told apart by owner and time."""
    while (owner, t) in taken:
        t += _TICK
    return t


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
    "Opens",
    "Settles",
    "Store",
    "free_moment",
    "private",
]
