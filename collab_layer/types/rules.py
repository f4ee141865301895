"""Curation rules as their users see them: what they were made from, what they say, how they fire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from collab_layer.types.asking import Usage
from collab_layer.types.entity import Value
from collab_layer.types.time import UtcTime

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Where a `Spread` is read."""


class Spread(Value):
    """How some values are spread.

    Attributes:
        count: How many values.
        quantiles: At `QUANTILES`, each a value that occurs.
        zeros: Share of zeros, in [0, 1].
    """

    count: int = Field(ge=1)
    quantiles: tuple[float, float, float, float, float]
    zeros: float = Field(ge=0, le=1)

    @property
    def constant(self) -> bool:
        """Whether nearly all values are the same: no threshold tells them apart."""
        return self.quantiles[0] == self.quantiles[-1] and self.zeros in (0.0, 1.0)


class FeatureFacts(Value):
    """One curation feature over candidates as they really come up.

    Attributes:
        name, summary, low, high: As the feature declares itself.
        owners, things: Its values for each kind; None if too few pools hold that kind.
    """

    name: str
    summary: str
    low: float
    high: float
    owners: Spread | None = None
    things: Spread | None = None


class DomainFacts(Value):
    """What a tenant's data are like, in numbers and common topics.

    Attributes:
        owners: Owners whose pools were looked at.
        candidates: Candidates sampled from them.
        pool: Candidates of one owner.
        owner_degree: Distinct targets of an owner.
        thing_degree: Visible holders of a thing.
        density: Share of an owner's own targets that a candidate holds too, in [0, 1].
        topic_share: Share of an owner's targets that are topics, in [0, 1].
        features: In the order that rules list them.
        topics: Names that at least `min_contributors` owners hold, most held first; never stored.
    """

    owners: int
    candidates: int
    pool: Spread | None = None
    owner_degree: Spread | None = None
    thing_degree: Spread | None = None
    density: float = 0.0
    topic_share: float = 0.0
    features: tuple[FeatureFacts, ...] = ()
    topics: tuple[str, ...] = ()


class RuleFiring(Value):
    """How one rule, or one term of the score, fares on sampled candidates.

    Attributes:
        words: The rule in plain words.
        fires: Share of the candidates of its kind for which its condition holds, in [0, 1].
        acts: Share of them whose score it changes, in [0, 1].
        finding: What is wrong with that, if anything: it never fires, fires for everybody, changes nothing.
    """

    words: str
    fires: float
    acts: float
    finding: str | None = None


class RuleSet(Value):
    """Curation rules with their origin; `words` says them plainly.

    Attributes:
        hash: sha256 of the canonical tree.
        name: As the tree calls itself.
        tree: The rules as data, see docs/rules.md.
        words: One line for the score and one for each rule.
        made_by: The model, `file`, or `preset`.
        at: When it was stored; None for presets and for trees not stored.
        facts: The statistics that a model was shown; None for others.
        findings: What was put right or left out when it was made, one sentence each.
        usage: What asking the model cost.
        in_use: Whether this tenant's neighbours are chosen by it now.
    """

    hash: str
    name: str
    tree: dict[str, Any]
    words: str
    made_by: str
    at: UtcTime | None = None
    facts: DomainFacts | None = None
    findings: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()
    in_use: bool = False


class RuleDiff(Value):
    """Two sets of rules side by side, in words and on sampled data.

    Attributes:
        before: Those in use.
        after: Those they are compared with.
        added, removed: Lines that only one of them has.
        changed: Lines about the same features, before and after.
        firing_before, firing: How the terms and rules of each fare; empty without data.
        overlap: Mean share of the top 16 that both choose, in [0, 1]; None without data.
        owners: For how many owners the two were compared.
        candidates: On how many sampled candidates firing was counted.
    """

    before: RuleSet
    after: RuleSet
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    firing_before: tuple[RuleFiring, ...] = ()
    firing: tuple[RuleFiring, ...] = ()
    overlap: float | None = None
    owners: int = 0
    candidates: int = 0


class RulesPreview(Value):
    """What a model would be asked for rules, before anything is spent.

    Attributes:
        facts: The statistics.
        instructions, data: The prompt, word for word.
        tokens: Estimated, of both.
        model: Who would be asked; None if no memory model is set.
    """

    facts: DomainFacts
    instructions: str
    data: str
    tokens: int
    model: str | None = None


__all__ = [
    "QUANTILES",
    "DomainFacts",
    "FeatureFacts",
    "RuleDiff",
    "RuleFiring",
    "RuleSet",
    "RulesPreview",
    "Spread",
]
