"""What an entity did lately to short updates for the entities around it, without a model.

In:   the events, who may be told (with how near they are), and what may be said to each.
Out:  one `Planned` update per reader and event, damped by distance, at most `fanout` readers.
Pure: no clock, no I/O. An update is a new item with an end; nothing is overwritten, and
updates are never input to this stage, so that signals do not echo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collab_layer.types.scope import Level

FANOUT = 8
"""Readers told about one entity's events; the cap of the released MemRec configuration."""
DAMPING = 0.5
"""What one hop keeps of the weight."""
TTL_DAYS = 30
EVENTS = 5
"""Newest events that are told of one batch."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One event: its source id, what to call it, how others may be told.

    Attributes:
        source: Opaque id; goes into lineage.
        target: What it was done to, dense id, if anything.
        label: Display name of the target.
        verb: What was done.
        lesson: The owner's words in short, for readers that may read records.
        links: Entities it refers to.
        at: When, microseconds.
    """

    source: str
    target: int | None
    label: str
    verb: str
    lesson: str | None
    links: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Told:
    """A reader: how near (share in [0, 1]) and at which level it may read the actor."""

    reader: int
    nearness: float
    level: Level


@dataclass(frozen=True, slots=True)
class Planned:
    """One update for one reader."""

    reader: int
    source: str
    text: str
    confidence: float
    level: Level
    links: tuple[int, ...]


def plan(
    actor: str, events: Sequence[Happened], readers: Sequence[Told], *, delta: float, fanout: int = FANOUT
) -> list[Planned]:
    """Tell the nearest readers of the newest events.

    `confidence = min(delta, damping * nearness)`: one principal's word never counts for
    more than `delta`. At `facets` level nothing is told of single events, since one event
    has one contributor.
    """
    nearest = sorted(readers, key=lambda told: (-told.nearness, told.reader))
    newest = sorted(events, key=lambda event: (-event.at, event.source))[:EVENTS]
    out: list[Planned] = []
    for told in [one for one in nearest if one.level >= Level.RECORDS][:fanout]:
        for event in newest:
            text = event.lesson or (f"{actor} {event.verb} {event.label}" if event.label else None)
            if text is not None:
                confidence = min(delta, DAMPING * told.nearness)
                out.append(Planned(told.reader, event.source, text, confidence, told.level, event.links))
    return out
