"""What neighbours know, boiled down: facets, lessons, and where each comes from."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from collab_layer.types.asking import Usage
from collab_layer.types.entity import Entity, MemoryRef, Value
from collab_layer.types.time import UtcTime


class Evidence(Value):
    """One record behind a facet.

    Attributes:
        source: Opaque id of the record; `explain` and `forget` take it.
        owner: Whose record; `None` where the reader may know that it exists but not whose.
        quote: The owner's own words, shortened; `None` below the `records` level.
        at: When it happened.
        weight: Share of the facet's support, in [0, 1].
        ref: Where the record lies, when its owner granted `records`.
    """

    source: str
    owner: Entity | None = None
    quote: str | None = None
    at: UtcTime | None = None
    weight: float = 0.0
    ref: MemoryRef | None = None


class FacetKind(StrEnum):
    """The shapes derived material comes in."""

    FACET = "facet"
    """What several records have in common."""
    LESSON = "lesson"
    """One record in short: when ..., did ..."""
    UPDATE = "update"
    """What changed around an entity, propagated to it."""
    NOTICE = "notice"
    """What an owner published to an audience, in words of its own choice."""
    FOREIGN = "foreign"
    """What another organisation says; a candidate, never more."""


class Facet(Value):
    """One derived statement.

    Attributes:
        id: Opaque; `explain(id)` names every source.
        kind: Facet, lesson, update, notice or foreign.
        text: The statement, one line.
        confidence: Support, in [0, 1]; not a probability.
        contributors: Distinct principals behind it.
        evidence: The strongest records, strongest first.
        links: Entities it is about.
        score: Rank within its memory, higher is better.
        made_by: The rules, or the model and its prompt, that worded it.
    """

    id: str
    kind: FacetKind = FacetKind.FACET
    text: str
    confidence: float = Field(ge=0, le=1)
    contributors: int = Field(ge=1)
    evidence: tuple[Evidence, ...] = ()
    links: tuple[Entity, ...] = ()
    score: float = 0.0
    made_by: str = ""


class Neighbor(Value):
    """One entity worth reading, and why.

    Attributes:
        entity: Who. Owners that share only facets are no single neighbours.
        score: What the rules gave, higher is better; in steps of 0.1 where a crowd of such owners counts.
        contributions: What each feature added; they sum to `score`. Empty where such a crowd counts.
        shared: Targets and topics both hold, strongest first.
    """

    entity: Entity
    score: float
    contributions: dict[str, float] = Field(default_factory=dict)
    shared: tuple[Entity, ...] = ()


Shape = Literal["taste", "text"]


class CollabMemory(Value):
    """What the neighbours of an entity know; `str()` is a block for a prompt.

    Attributes:
        entity: Whose neighbours.
        query: What was asked, if anything.
        shape: `taste` (shared items) or `text` (a query over records).
        facets: Strongest first, within the budget.
        neighbors: The curated neighbours that were read.
        tokens: Estimated tokens of `str()`.
        budget_tokens: What the caller allowed.
        degraded: What could not be reached, one short sentence each; empty if all is well.
        as_of: The past moment that was read, if any.
        cached: Answered from the cache.
        usage: What asking a model cost for this answer; empty if none was asked.
    """

    entity: Entity
    query: str | None = None
    shape: Shape
    facets: tuple[Facet, ...] = ()
    neighbors: tuple[Neighbor, ...] = ()
    tokens: int = 0
    budget_tokens: int
    degraded: tuple[str, ...] = ()
    as_of: UtcTime | None = None
    cached: bool = False
    usage: tuple[Usage, ...] = ()

    def __str__(self) -> str:
        from collab_layer.types.prompt import render  # the value stays free of layout

        return render(self)


__all__ = ["CollabMemory", "Evidence", "Facet", "FacetKind", "Neighbor", "Shape"]
