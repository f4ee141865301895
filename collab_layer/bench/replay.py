"""A set told to a layer in the order in which it happened, and each question asked at its moment.

In:   a `DataSet`, the steps of `candidates.plan`, a layer.
Out:  each trial once the layer knows what happened before it, and nothing after.
Never: a call that a user of the layer cannot make.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from collab_layer.bench.candidates import Step, Trial
from collab_layer.bench.data import DataSet
from collab_layer.bench.progress import Progress, silent
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction

BATCH = 5_000
_LONG_AGO = datetime(1990, 1, 1, tzinfo=UTC)


class Told(Protocol):
    """What telling needs of a layer; `AsyncCollabLayer` has it."""

    async def observe(self, actor: Sequence[Interaction], /) -> list[str]:
        """Record what happened."""
        ...

    async def drain(self) -> int:
        """Wait for the work behind it."""
        ...


async def replay(
    layer: Told,
    data: DataSet,
    steps: Sequence[Step],
    progress: Progress | None = None,
    thing: Callable[[int], Entity] | None = None,
) -> AsyncGenerator[Trial]:
    """Each trial at its moment.

    Args:
        layer: Is told everything.
        data: The set.
        steps: Of `candidates.plan`.
        progress: Called with what is being done, how much is done, and of how much.
        thing: What an item is called; `item:` and its number if None.
    """
    tell, called = progress or silent, thing or item
    await describe(layer, data, tell, called)
    events = sum(len(step.events) for step in steps)
    told = 0
    for step in steps:
        told = await happen(layer, step, tell, told, events, called)
        for trial in step.trials:
            yield trial


async def describe(layer: Told, data: DataSet, tell: Progress, called: Callable[[int], Entity] | None = None) -> None:
    """Let the layer know what each item is, before anybody holds it."""
    name = called or item
    items = sorted({event.item for held in data.histories.values() for event in held})
    for start in range(0, len(items), BATCH):
        part = items[start : start + BATCH]
        await layer.observe(
            [Interaction(actor=name(n), verb="described", text=data.texts[n], at=_LONG_AGO) for n in part]
        )
        tell("describing", start + len(part), len(items))
    await layer.drain()


async def happen(
    layer: Told, step: Step, tell: Progress, told: int, events: int, called: Callable[[int], Entity] | None = None
) -> int:
    """Let the events of a step happen; how many of all events are told by then."""
    name = called or item
    for start in range(0, len(step.events), BATCH):
        part = step.events[start : start + BATCH]
        await layer.observe([liked(f"{user}", name(event.item), event.at) for user, event in part])
        told += len(part)
        tell("observing", told, events)
    await layer.drain()
    return told


def liked(user: str, thing: Entity, at: datetime) -> Interaction:
    """A user came to hold a thing."""
    return Interaction(actor=Entity("user", user), target=thing, verb="liked", at=at)


def item(number: int) -> Entity:
    """What an item is called."""
    return Entity("item", str(number))


__all__ = ["BATCH", "Told", "describe", "happen", "item", "liked", "replay"]
