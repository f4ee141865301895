"""What the layer learned about ranking in one tenant, and what neighbours changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from collab_layer.types.entity import Entity, Value


class Gate(Value):
    """The weights that ranking uses in a tenant, and why.

    Attributes:
        state: `open`: neighbours paid on past choices, for who holds much or for who holds little.
            `shut`: they did not, and only decide between candidates that own memory cannot tell apart.
            `untested`: too few past choices; shut, with the own weights that were measured on public
            sets. `set`: the operator chose the weights.
        weights: Of each feature, finite and >= 0, for who holds much.
        few: The same for who holds nothing or little; None: `weights` for everybody. With n things the
            first count `n^4 / (n^4 + 14^4)`, the second the rest; `Ranking.weights` says what came of it.
        version: Changes whenever the weights do.
        gain: Difference in hits at 1 that neighbours made on past choices that were held out.
        low: Lower 95 % bound of `gain`; the gate opens if it is above 0.
        few_gain, few_low: The same on those choices seen as if the owner had held its newest one or
            three things; neighbours count in `few` if the bound is above 0, whatever `low` is.
        cases: How many past choices it rests on.
        muted: Whether the whole tenant is served without neighbours for now: rankings went better
            without them.
    """

    state: Literal["open", "shut", "untested", "set"]
    weights: dict[str, float]
    few: dict[str, float] | None = None
    version: str
    gain: float = 0.0
    low: float = 0.0
    few_gain: float = 0.0
    few_low: float = 0.0
    cases: int = 0
    muted: bool = False


Arm = Literal["neighbours", "holdout", "muted"]
"""How a ranking was made: with the weights in use; by own memory alone, for comparison; or by own
memory alone because neighbours did harm."""


class Compared(Value):
    """Hits with neighbours and without; a hit is the thing chosen in first place.

    Attributes:
        alone, together: Share of hits by own memory, and with neighbours.
        alone_cases, together_cases: Over how many choices each.
        change: `together` minus `alone`; `low` and `high` its 95 % interval, [-1, 1] if nothing is known.
        alone_served, together_served: How many requests were answered so, of an experiment: with a
            choice or without.
    """

    alone: float
    together: float
    alone_cases: int
    together_cases: int
    change: float
    low: float
    high: float
    alone_served: int = 0
    together_served: int = 0

    def __str__(self) -> str:
        """One clause."""
        wide = (self.high - self.low) / 2
        return f"{self.change:+.3f} ± {wide:.3f} ({self.alone:.3f} alone, {self.together:.3f} with neighbours)"


class Lift(Value):
    """What neighbours change in an owner's hit rate, or in a tenant's.

    Attributes:
        entity: Whose; None is the whole tenant.
        experiment: Requests served with neighbours against those held out, drawn by lot; None while
            one of the two has no choice yet. Nothing but chance tells them apart.
        both_orders: The same choices, each placed in the order that was served, with neighbours, and
            in the one that own memory would have served. What is shown is chosen more often, so it
            flatters neighbours; None without such a choice.
        replay: Past choices, each read as of the moment before it, among nine other things of like
            popularity, under the weights in use; of the tenant the newest one of up to 300 owners.
            Candidates that score the same share a hit.
        gate: The weights in use.
        muted: Whether neighbours are muted for this owner, or for the tenant.
    """

    entity: Entity | None
    experiment: Compared | None = None
    both_orders: Compared | None = None
    replay: Compared
    gate: Gate
    muted: bool = False

    @property
    def best(self) -> Compared:
        """The experiment where there is one, else the replay."""
        return self.replay if self.experiment is None else self.experiment


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


__all__ = ["Arm", "Compared", "Gate", "Lift", "Rebuilt"]
