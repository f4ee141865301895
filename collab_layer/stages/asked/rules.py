"""Curation rules written by a model: statistics of a domain in, a checked rule tree out.

ask:  facts in numbers and common topic names -> a `Question` with a flat, closed reply;
read: the reply and the sampled candidates -> a rule tree that loads, and what was put right.
Pure: no clock, no I/O. The tree holds names of known features and finite numbers, no word of
the model's. What cannot be used is left out with a reason; what is then no rule set is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from collab_layer.errors import InputError, InvalidRuleError
from collab_layer.stages.asked import rule_fitting as fitting
from collab_layer.stages.asked import rule_lines as lines
from collab_layer.stages.asked.question import Question
from collab_layer.stages.asked.rule_lines import LEAST_LINES, MOST_LINES, MOST_TERMS, Line, RulesReply, UnusableError
from collab_layer.stages.asked.rule_prompt import INSTRUCTIONS, data, offered
from collab_layer.stages.asked.schema import closed, taken
from collab_layer.stages.domain import Sample
from collab_layer.stages.features import BUILTIN, FeatureLike
from collab_layer.stages.fence import Fence
from collab_layer.stages.rule_math import Columns
from collab_layer.stages.rules import Scorer, load
from collab_layer.types.asking import Prompt
from collab_layer.types.rules import DomainFacts

VERSION = "1"
MAX_TOKENS = 1_000
READ = 50
"""Parts of a reply that are looked at; the rest is left out unread."""
BASES = ("idf_cosine", "edge_weight")
"""What rules start from if the reply gives no score."""


@dataclass(frozen=True, slots=True)
class Written:
    """A rule set that a model wrote.

    Attributes:
        tree: As data; it loads.
        scorer: The same, compiled.
        repairs: What was put right or left out, one sentence each.
    """

    tree: dict[str, Any]
    scorer: Scorer
    repairs: tuple[str, ...]


def ask(facts: DomainFacts, *, domain: str | None, nonce: str) -> Question[str]:
    """Ask for 3 to 5 rules.

    Args:
        facts: Numbers, and topics that many hold; nothing else of the tenant's goes out.
        domain: What the tenant is about, in the operator's words.
        nonce: Random, hexadecimal; closes the fence.

    Raises:
        InputError: The description reads like an order to the model, or no feature tells
            candidates apart, so that no rule could.
    """
    features = offered(facts)
    if not features:
        raise InputError("no feature tells one candidate from another here, so no rule could")
    names = [one.name for one in features]
    prompt = Prompt("rules", INSTRUCTIONS, data(facts, domain=domain, fence=Fence(nonce)), MAX_TOKENS)
    return Question(prompt, closed(RulesReply, lines.schema(names)), {name: name for name in names})


def read(
    reply: BaseModel, given: Sample, features: Sequence[FeatureLike], *, allowed: Collection[str], name: str
) -> Written:
    """Make a rule tree of a reply, fitted to the candidates it was asked about.

    Args:
        reply: As it came.
        given: The sample behind the facts, n >= 1.
        features: All that trees may use.
        allowed: The names that were offered.
        name: Of the tree.

    Raises:
        InvalidRuleError: Nothing usable is left; the message gives the reasons.
    """
    came = taken(RulesReply, reply)
    fit = _Fit({feature.name: feature for feature in features}, given.columns, allowed, [])
    score = fit.score(came)
    kept = fit.lines(came, most=sum(max(term["weight"], 0.0) for term in score)) if score else []
    if not kept:
        why = "; ".join(fit.said[:MOST_LINES]) or "it is empty"
        raise InvalidRuleError("reply", f"no usable {'rule' if score else 'score'} is left of it: {why}")
    tree: dict[str, Any] = {"name": name, "version": 1, "score": score, "rules": [fitting.as_rule(one) for one in kept]}
    scorer = load(tree, [feature for feature in features if feature.name not in BUILTIN])
    if not (scorer.score(given.columns) > 0).any():
        raise InvalidRuleError("reply", "it would leave nobody: every sampled candidate ends at 0 or below")
    if len(kept) < LEAST_LINES:
        fit.said.append(f"only {len(kept)} of the {LEAST_LINES} to {MOST_LINES} rules asked for could be used")
    return Written(tree, scorer, tuple(fit.said))


@dataclass(frozen=True, slots=True)
class _Fit:
    """The parts of a reply one after another; `said` is what was done to them."""

    known: Mapping[str, FeatureLike]
    given: Columns
    allowed: Collection[str]
    said: list[str]

    def score(self, came: RulesReply) -> list[dict[str, Any]]:
        """The usable parts of the score; empty if none of them is above 0."""
        out: list[dict[str, Any]] = []
        seen: set[str] = set()
        for at, part in enumerate(came.score[:READ], 1):
            try:
                term = lines.term(part, self.allowed)
                if term.feature in seen:
                    raise UnusableError(f"`{term.feature}` is there already")
                fitted, said = fitting.fit_term(term, self.known[term.feature], self.given)
            except UnusableError as error:
                self.said.append(f"part {at} of the score was left out: {error}")
                continue
            if len(out) < MOST_TERMS:
                seen.add(term.feature)
                out.append(fitted)
                self.said.extend(f"part {at} of the score: {one}" for one in said)
        self._surplus("parts of the score", len(came.score), MOST_TERMS)
        if not any(term["weight"] > 0 for term in out):
            return self._instead(came)
        return out

    def lines(self, came: RulesReply, *, most: float) -> list[Line]:
        """The usable rules, at most five."""
        out: list[Line] = []
        for at, part in enumerate(came.rules[:READ], 1):
            if len(out) == MOST_LINES:
                break
            try:
                fitted, said = fitting.fit_line(lines.line(part, self.allowed), self.known, self.given, most=most)
                if any(replace(fitted, amount=one.amount) == one for one in out):
                    raise UnusableError("another rule has the same condition and action")
            except UnusableError as error:
                self.said.append(f"rule {at} was left out: {error}")
                continue
            out.append(fitted)
            self.said.extend(f"rule {at}: {one}" for one in said)
        self._surplus("rules", len(came.rules), MOST_LINES)
        return out

    def _instead(self, came: RulesReply) -> list[dict[str, Any]]:
        """Rules without a score of their own start from likeness by shared targets."""
        base = next((one for one in BASES if one in self.allowed), None)
        if base is None or not came.rules:
            return []
        self.said.append(f"no part of the score could be used; the rules start from `{base}`")
        return [{"feature": base, "weight": 1.0}]

    def _surplus(self, what: str, given: int, most: int) -> None:
        if given > most:
            self.said.append(f"{given} {what} were given; at most {most} are kept")


__all__ = ["MAX_TOKENS", "VERSION", "Written", "ask", "offered", "read"]
