"""What the layer learned about ranking in one tenant, and what neighbours changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from collab_layer.types.entity import Entity, Value


class Gate(Value):
    """The weights that ranking uses in a tenant, and why.

    Attributes:
        state: `open`: neighbours paid on past choices. `shut`: they did not, and only decide between
            candidates that own memory cannot tell apart. `untested`: too few past choices, the
            defaults hold. `set`: the operator chose the weights.
        weights: Of each feature, finite and >= 0.
        version: Changes whenever the weights do.
        gain: Difference in hits at 1 that neighbours made on past choices that were held out.
        low: Lower 95 % bound of `gain`; the gate opens if it is above 0.
        cases: How many past choices it rests on.
    """

    state: Literal["open", "shut", "untested", "set"]
    weights: dict[str, float]
    version: str
    gain: float = 0.0
    low: float = 0.0
    cases: int = 0


class Lift(Value):
    """What neighbours change in an owner's past choices, or in those of a tenant.

    Each choice is read as of the moment before it, among nine other things of like popularity; a
    hit is the thing chosen in first place, candidates that score the same share it.

    Attributes:
        entity: Whose choices; None is the newest of up to 300 owners.
        cases: How many choices.
        alone, together: Share of hits by own memory, and with neighbours under the weights in use.
        change: The difference; `low` and `high` its 95 % interval, [-1, 1] if one case tells nothing.
        gate: The weights in use.
    """

    entity: Entity | None
    cases: int
    alone: float
    together: float
    change: float
    low: float
    high: float
    gate: Gate


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


__all__ = ["Gate", "Lift", "Rebuilt"]
