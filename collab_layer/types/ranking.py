"""Candidates in order, each with its reasons."""

from __future__ import annotations

from pydantic import Field

from collab_layer.types.asking import Usage
from collab_layer.types.entity import Entity, Value
from collab_layer.types.facet import Evidence, Facet
from collab_layer.types.lift import Arm, Gate
from collab_layer.types.time import UtcTime


class Ranked(Value):
    """One candidate.

    Attributes:
        entity: The candidate.
        score: Higher is better; comparable within one ranking only; in steps of 0.1 where owners count
            that share only facets.
        features: What the score was made of, before weighting; then only what is the entity's own.
        rationale: One sentence that names what the evidence shows.
        evidence: Neighbours' records that speak for it, strongest first.
        cites: Ids of facets in `Ranking.facets` that a model's rationale rests on.
    """

    entity: Entity
    score: float
    features: dict[str, float] = Field(default_factory=dict)
    rationale: str = ""
    evidence: tuple[Evidence, ...] = ()
    cites: tuple[str, ...] = ()


class Ranking(Value):
    """Candidates, best first. Iterate it, or take `entities`.

    Attributes:
        entity: For whom.
        items: Every candidate once.
        weights: What each feature counted, for an owner that holds so much; the own ones alone where
            `arm` is not `neighbours`.
        holds: Things the entity holds, which the weights are mixed by; see `Gate.few`.
        gate: Whether neighbours count in this tenant, why, and the version of the weights.
        arm: `neighbours`: by these weights. `holdout`: by own memory alone, as a small share is drawn
            by lot to compare with. `muted`: by own memory alone, since neighbours did harm here.
        degraded: What could not be reached.
        as_of: The past moment that was read, if any.
        made_by: The model that ordered the candidates, or `rules`.
        facets: What the model was shown of the neighbours; empty if none was asked.
        usage: What asking models cost.
    """

    entity: Entity
    items: tuple[Ranked, ...]
    weights: dict[str, float] = Field(default_factory=dict)
    holds: int = 0
    gate: Gate | None = None
    arm: Arm = "neighbours"
    degraded: tuple[str, ...] = ()
    as_of: UtcTime | None = None
    made_by: str = "rules"
    facets: tuple[Facet, ...] = ()
    usage: tuple[Usage, ...] = ()

    @property
    def entities(self) -> tuple[Entity, ...]:
        """The candidates alone, best first."""
        return tuple(item.entity for item in self.items)


__all__ = ["Ranked", "Ranking"]
