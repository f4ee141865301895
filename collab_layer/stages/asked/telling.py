"""Events, who may be told of them, and what came of it: the values of `stages.asked.updates`.

In:   dense ids, words, who may read whom.
Out:  frozen values; a receiver says itself which event it may be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["actor", "thing", "neighbour"]


@dataclass(frozen=True, slots=True)
class Noted:
    """One event.

    Attributes:
        source: Opaque id; goes into lineage, is never shown.
        principal: Whose words they are, dense id.
        text: The words; of a bare interaction what was done to what.
        ended: How it ended, if that is known.
        about: The thing it was done to, dense id, if any.
        labels: Display names of things it refers to; never those of owners.
        links: Everything it refers to, dense ids.
    """

    source: str
    principal: int
    text: str
    ended: str | None = None
    about: int | None = None
    labels: tuple[str, ...] = ()
    links: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing a receiver knows already.

    Attributes:
        id: Opaque id of the derived item or record.
        text: In its own words.
        sources: What it rests on: (source, principal, weight), weights add up to 1.
        key: Under which a newer wording replaces it; None for a record, which stays.
        hop: Steps from what caused it, >= 1; 0 for a record.
        trust: In [0, 1].
        links: What it is about, dense ids.
    """

    id: str
    text: str
    sources: tuple[tuple[str, int, float], ...]
    key: str | None = None
    hop: int = 0
    trust: float = 1.0
    links: tuple[int, ...] = ()

    @property
    def principals(self) -> frozenset[int]:
        """Everyone behind it."""
        return frozenset(principal for _, principal, _ in self.sources)


@dataclass(frozen=True, slots=True)
class Receiver:
    """Somebody whose memory may be updated.

    Attributes:
        id: Dense id.
        part: What it is to the events.
        nearness: To the actor, in [0, 1].
        may: Principals whose records it may read, itself included. Who reads a thing's memory is
            checked when it is read.
        old: What it knows already; only what the actor may read.
    """

    id: int
    part: Part
    nearness: float
    may: frozenset[int]
    old: tuple[Memory, ...] = ()

    def may_hear(self, event: Noted) -> bool:
        """Whether it may be told; a thing is told what was done to it."""
        return event.about == self.id if self.part == "thing" else event.principal in self.may


@dataclass(frozen=True, slots=True)
class Written:
    """One update, backed by what it cites."""

    receiver: Receiver
    text: str
    events: tuple[Noted, ...]
    old: tuple[Memory, ...]


__all__ = ["Memory", "Noted", "Part", "Receiver", "Written"]
