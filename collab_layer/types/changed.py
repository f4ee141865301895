"""What changed in the memories that an entity may read."""

from __future__ import annotations

from enum import StrEnum

from collab_layer.types.entity import Entity, MemoryRef, Value
from collab_layer.types.time import UtcTime


class ChangeKind(StrEnum):
    """How a memory changed."""

    ADDED = "added"
    """It was not there before."""
    CHANGED = "changed"
    """Another version, or another statement, took its place."""
    ENDED = "ended"
    """It holds no more, and nothing took its place."""
    REMOVED = "removed-unknown"
    """It was deleted from its store; what it said is erased, here too."""


class Changed(Value):
    """One change.

    Attributes:
        kind: How it changed.
        what: Opaque id of the memory as it is now, or as it was where it ended; `forget` takes it.
            Empty for a removed one.
        whose: The owner.
        old: What it said before; None where nothing was there, or where the words were not kept.
        new: What it says now; None where it ended, or where the words may not be shown.
        at: When it changed.
        recorded_at: When the layer was told; later than `at` for what came late.
        ref: Where it lies, if a store keeps it.
    """

    kind: ChangeKind
    what: str = ""
    whose: Entity
    old: str | None = None
    new: str | None = None
    at: UtcTime
    recorded_at: UtcTime
    ref: MemoryRef | None = None


__all__ = ["ChangeKind", "Changed"]
