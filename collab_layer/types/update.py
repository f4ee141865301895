"""Derived items on their way into the graph and, where wanted, into a store."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity, Value
from collab_layer.types.facet import FacetKind
from collab_layer.types.time import UtcTime


class Source(Value):
    """One source of a derived item: what it was, whose, and how much it counted."""

    id: str
    principal: Entity
    weight: float = Field(ge=0, le=1)


class Update(Value):
    """A derived item about to be stored: deterministic id, text, lineage.

    Attributes:
        id: The same plan gives the same id, so that applying twice stores once.
        owner: For whom it was derived.
        kind: What it is.
        text: One line.
        confidence: Support, in [0, 1].
        hop: Steps from the interaction that caused it, >= 1.
        links: What it is about.
        sources: Its lineage; never empty. Who shares no more than facets is in it under a pseudonym.
        at: From when on it holds: when the last thing that it rests on began. None where that is not to be told.
        expires: When it stops being shown: by then something that it rests on has ended.
    """

    id: str
    owner: Entity
    kind: FacetKind = FacetKind.UPDATE
    text: str
    confidence: float = Field(ge=0, le=1)
    hop: int = Field(default=1, ge=1)
    links: tuple[Entity, ...] = ()
    sources: tuple[Source, ...] = Field(min_length=1)
    at: UtcTime | None = None
    expires: UtcTime | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.at is not None and self.expires is not None and self.expires <= self.at:
            raise InputError(f"the item would end at {self.expires.isoformat()}, but begin at {self.at.isoformat()}")
        return self


class Receipt(Value):
    """What a store says of one write: under which key, as which native id."""

    key: str
    native_id: str
    backend: str


__all__ = ["Receipt", "Source", "Update"]
