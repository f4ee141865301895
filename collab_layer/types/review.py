"""What and who is held back, for a person to look at."""

from __future__ import annotations

from collab_layer.types.entity import Entity, MemoryRef, Value
from collab_layer.types.time import UtcTime


class Quarantined(Value):
    """A record that is shown to no reader and no model, since it reads like an order to a model.

    Attributes:
        id: Pass it to `release` or `drop_quarantined`.
        owner: Whose record.
        at: When it was written.
        reason: One sentence about the text.
        text: Its words and its outcome. It is hostile until somebody has looked: show it quoted, and
            hand it to no model. None where its store does not give it now.
        ref: Where it lies; None for what we keep ourselves.
    """

    id: str
    owner: Entity
    at: UtcTime
    reason: str
    text: str | None = None
    ref: MemoryRef | None = None


class Blocked(Value):
    """A principal that nobody else reads, whatever it granted, until `unblock`.

    Attributes:
        entity: Who.
        since: When `forget_influence` took back what had been derived of it.
    """

    entity: Entity
    since: UtcTime


__all__ = ["Blocked", "Quarantined"]
