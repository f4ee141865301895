"""What a scene of the demo gives: answers, rankings, news; alone and with neighbours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """One line of an answer.

    Attributes:
        id: Of the memory or the facet.
        text: What it says.
        support: Of a facet, in [0, 1]; `None` for the reader's own memory.
        contributors: Distinct owners behind a facet.
        evidence: What it rests on, as far as its owners may be named.
    """

    id: str
    text: str
    support: float | None = None
    contributors: int = 1
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, answered twice."""

    query: str
    alone: tuple[Told, ...]
    together: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate in order, and why it is there."""

    name: str
    rationale: str


@dataclass(frozen=True, slots=True)
class Ranks:
    """Candidates in order, twice; `taken` is what the reader went on to like."""

    alone: tuple[Placed, ...]
    together: tuple[Placed, ...]
    taken: str


@dataclass(frozen=True, slots=True)
class News:
    """What somebody did later, and the updates that reached the reader."""

    what: str
    updates: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Who was forgotten, how many rows went, and the first answer afterwards."""

    who: str
    rows: int
    query: str
    left: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """What was played, and how many memories and interactions of how many owners it took."""

    name: str
    title: str
    about: str
    reader: str
    records: int
    owners: int
    asked: tuple[Asked, ...]
    ranks: Ranks | None = None
    news: News | None = None
    forgotten: Forgotten | None = None
