"""That two entities are one principal, which is counted once."""

from __future__ import annotations

from collab_layer.types.entity import Entity, Value
from collab_layer.types.time import UtcTime


class Alias(Value):
    """One entity that a principal also acts as.

    Attributes:
        entity: The alias.
        principal: Who is counted for it; never an alias itself.
        at: Since when this is so.
    """

    entity: Entity
    principal: Entity
    at: UtcTime


__all__ = ["Alias"]
