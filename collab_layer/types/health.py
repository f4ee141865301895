"""How the layer and each store are doing; down, degraded and empty told apart."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from collab_layer.types.entity import Value

Condition = Literal["ok", "empty", "degraded", "down"]


class PartHealth(Value):
    """One part: `empty` is healthy and holds nothing; `down` cannot be asked."""

    name: str
    condition: Condition
    detail: str = ""


class Health(Value):
    """The whole: as bad as its worst part, except that `empty` counts as `ok`."""

    condition: Condition
    parts: tuple[PartHealth, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict)


__all__ = ["Condition", "Health", "PartHealth"]
