"""What the layer learned about ranking in one tenant, and what neighbours changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from collab_layer.types.entity import Value


class Rebuilt(Value):
    """Edges between things, made anew.

    Attributes:
        edges: How many.
        things: Between how many.
        owners: How many owners they rest on: those that everybody in the tenant may read.
        method: `ease`, `knn`, or `none` where there was nothing to make edges of.
        seconds: How long it took.
    """

    edges: int = Field(ge=0)
    things: int = Field(ge=0)
    owners: int = Field(ge=0)
    method: Literal["ease", "knn", "none"]
    seconds: float = Field(ge=0)


__all__ = ["Rebuilt"]
