"""What is kept of an answer that carried something of others: who got which items, when, and for what."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from collab_layer.types.entity import Entity, Value
from collab_layer.types.time import UtcTime

Use = Literal["context", "rank", "answer", "delivery"]
"""What an answer was: of `context`, `rank` or `answer`, or items written into a store."""


class Injection(Value):
    """One answer.

    Attributes:
        at: When it was given.
        entity: Whom it was made for.
        principal: Who asked; None for the operator, and where it is somebody else's to know.
        purpose: For what it was asked.
        use: What it was.
        items: Ids that `explain` and `forget` take, strongest first; of rankings also `h…`, "this
            owner holds that thing". Those erased since are left out.
    """

    at: UtcTime
    entity: Entity
    principal: Entity | None = None
    purpose: str | None = None
    use: Use
    items: tuple[str, ...] = ()


class Received(Value):
    """Who received an item or what was derived of it, as far as it may be told.

    Attributes:
        entity: The reader, for the operator; None for everybody else, who is told numbers only.
        use: What the answers were.
        readers: How many, >= 1.
        answers: How many, >= 1.
        first, last: When, for the operator.
    """

    entity: Entity | None = None
    use: Use
    readers: int = Field(default=1, ge=1)
    answers: int = Field(ge=1)
    first: UtcTime | None = None
    last: UtcTime | None = None


__all__ = ["Injection", "Received", "Use"]
