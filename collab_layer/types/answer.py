"""A question answered from what the neighbours know, every claim cited."""

from __future__ import annotations

from collab_layer.types.asking import Usage
from collab_layer.types.entity import Entity, Value
from collab_layer.types.facet import Facet
from collab_layer.types.time import UtcTime

NOT_KNOWN = "not known"


class Claim(Value):
    """One sentence, and the facets that it rests on.

    Attributes:
        text: The sentence.
        facets: Ids of facets in `Answer.facets`; never empty.
    """

    text: str
    facets: tuple[str, ...]


class Answer(Value):
    """What is known, sentence by sentence; `str()` gives the text with citations.

    Attributes:
        entity: For whom.
        question: As asked.
        claims: Empty if nothing known answers the question.
        facets: Those that the claims cite, each with its evidence.
        made_by: The model, or `rules` where the best lessons are quoted as they are.
        degraded: What could not be reached or was not asked, one short sentence each.
        usage: What asking cost; empty if no model was asked.
        as_of: The past moment that was read, if any.
    """

    entity: Entity
    question: str
    claims: tuple[Claim, ...] = ()
    facets: tuple[Facet, ...] = ()
    made_by: str = "rules"
    degraded: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()
    as_of: UtcTime | None = None

    @property
    def known(self) -> bool:
        """Whether anything known answers the question."""
        return bool(self.claims)

    def __str__(self) -> str:
        if not self.claims:
            return NOT_KNOWN
        return " ".join(f"{claim.text} [{', '.join(claim.facets)}]" for claim in self.claims)


__all__ = ["NOT_KNOWN", "Answer", "Claim"]
