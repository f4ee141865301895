"""The prompt that asks for rules: our words apart, numbers and common topic names as fenced data.

In:   the facts of a domain, its description.
Out:  instructions, data.
Pure: nothing of a single owner is in it.
"""

from __future__ import annotations

import re

from collab_layer.errors import InputError
from collab_layer.stages.asked.rule_lines import LEAST_LINES, MOST_LINES, MOST_TERMS
from collab_layer.stages.fence import RULES_OF_DATA, Fence, said
from collab_layer.types.rules import DomainFacts, FeatureFacts, Spread

NEVER_OFFERED = frozenset({"is_owner"})
"""A rule's `kind` says it."""

_TOPIC_TOKENS = 16
_DOMAIN_TOKENS = 120
_SUMMARY_TOKENS = 30
_NAME = re.compile(r"\w{1,64}")

INSTRUCTIONS = f"""\
You write the rules by which a shared memory picks whose notes are worth reading for one reader.
Candidates are owners (people or agents who hold some of the same things as the reader) and things \
(what the reader itself holds). Each candidate has features. The score starts as a sum of weight x feature, \
each feature brought to 0..1 by us; then every rule in turn changes the score of the candidates that meet its \
condition. The 16 best are read.

Write 1 to {MOST_TERMS} parts of the score and {LEAST_LINES} to {MOST_LINES} rules that suit this domain:
- score: feature; weight 0.1 to 5; shrink 0, or 1 to 20 to count the part less where few things are shared.
- rule: kind (owner, thing, any); feature, op, value: the condition; and_feature, and_op, and_value: a second \
condition, and_feature "none" if there is none; action; amount.
- actions: multiply (score x amount, 0.1 to 5); add (score + amount); boost (score x (1 + amount x what the \
feature has above value)); decay (score x exp(-amount x what the feature has above value)); drop (amount 0).

The statistics give, for owners and for things, the values at 5, 25, 50, 75 and 95 % of the candidates and the \
share of zeros. A threshold must lie between the 5 % and the 95 % value of its kind, or the rule never or always \
fires and is thrown away. Use only the features listed, and only for a kind that has values. Decay with \
recency_days where interest fades; be slow where tastes are stable. Do not reward activity for its own sake.
{RULES_OF_DATA}
Answer with the JSON object only."""


def offered(facts: DomainFacts) -> tuple[FeatureFacts, ...]:
    """The features that tell candidates of some kind apart."""
    return tuple(
        one
        for one in facts.features
        if one.name not in NEVER_OFFERED and _NAME.fullmatch(one.name) and (_varies(one.owners) or _varies(one.things))
    )


def data(facts: DomainFacts, *, domain: str | None, fence: Fence) -> str:
    """The fenced blocks: what the domain is, its statistics, its topics.

    Raises:
        InputError: The description is empty or reads like an order to a model.
    """
    statistics = [*_general(facts), *(_row(one) for one in offered(facts))]
    blocks = [fence.block("statistics", statistics)]
    if domain is not None:
        words = said(domain, _DOMAIN_TOKENS)
        if words is None or not fence.holds(words):
            raise InputError("the description of the domain is empty or reads like an order to a model; say it plainly")
        blocks.insert(0, fence.block("domain", [words]))
    topics = [words for topic in facts.topics if (words := said(topic, _TOPIC_TOKENS)) and fence.holds(words)]
    if topics:
        blocks.append(fence.block("topics", [", ".join(topics)]))
    return "\n".join(blocks)


def _varies(spread: Spread | None) -> bool:
    return spread is not None and not spread.constant


def _general(facts: DomainFacts) -> list[str]:
    rows = [f"{facts.owners} owners looked at, {facts.candidates} candidates sampled"]
    named = {
        "candidates of one reader": facts.pool,
        "things of one owner": facts.owner_degree,
        "holders of one thing": facts.thing_degree,
    }
    rows += [f"{name}: {_values(spread)}" for name, spread in named.items() if spread is not None]
    shares = f"{facts.density:.2g} of a reader's things, on average"
    return [*rows, f"a candidate holds {shares}", f"share of topics among things: {facts.topic_share:.2g}"]


def _row(one: FeatureFacts) -> str:
    about = said(one.summary, _SUMMARY_TOKENS)
    head = f"{one.name}, {one.low:g} to {one.high:g}" + (f", {about}" if about else "")
    kinds = {"owners": one.owners, "things": one.things}
    told = [f"{kind} {_values(spread)}" for kind, spread in kinds.items() if spread is not None and _varies(spread)]
    return f"{head}: {'; '.join(told)}"


def _values(spread: Spread) -> str:
    zeros = f", zeros {spread.zeros:.0%}" if spread.zeros else ""
    return " ".join(f"{value:.3g}" for value in spread.quantiles) + zeros


__all__ = ["INSTRUCTIONS", "data", "offered"]
