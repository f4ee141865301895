"""The lines a model may write: flat and bounded, so that a small one can fill them in.

In:   parts of a reply as they came, whatever they are.
Out:  `Term`s and `Line`s whose names are known and whose numbers are finite, or why not.
Pure: nothing of the reply goes on as text; only names from closed lists and numbers do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, cast, get_args

from collab_layer.stages.asked.schema import JsonSchema, Lenient, Number, Parts, Text, many, obj, one_of

Kind = Literal["any", "owner", "thing"]
Op = Literal[">", ">=", "<", "<="]
Action = Literal["multiply", "add", "boost", "decay", "drop"]

KINDS: tuple[str, ...] = get_args(Kind)
OPS: tuple[str, ...] = get_args(Op)
ACTIONS: tuple[str, ...] = get_args(Action)
NONE = "none"
"""Stands for no second condition."""
MOST_TERMS, MOST_LINES, LEAST_LINES = 4, 5, 3


class TermReply(Lenient):
    """A part of the score as it came."""

    feature: Text = ""
    weight: Number = None
    shrink: Number = None


class LineReply(Lenient):
    """A rule as it came."""

    kind: Text = ""
    feature: Text = ""
    op: Text = ""
    value: Number = None
    and_feature: Text = ""
    and_op: Text = ""
    and_value: Number = None
    action: Text = ""
    amount: Number = None


class RulesReply(Lenient):
    """The whole reply as it came."""

    score: Annotated[tuple[TermReply, ...], Parts] = ()
    rules: Annotated[tuple[LineReply, ...], Parts] = ()


def schema(features: Sequence[str]) -> JsonSchema:
    """What is asked for, with these features and no other."""
    number: JsonSchema = {"type": "number"}
    score = obj(feature=one_of(features), weight=number, shrink=number)
    rule = obj(
        kind=one_of(KINDS),
        feature=one_of(features),
        op=one_of(OPS),
        value=number,
        and_feature=one_of([*features, NONE]),
        and_op=one_of(OPS),
        and_value=number,
        action=one_of(ACTIONS),
        amount=number,
    )
    return obj(score=many(score, MOST_TERMS, 1), rules=many(rule, MOST_LINES, LEAST_LINES))


@dataclass(frozen=True, slots=True)
class Threshold:
    """A feature against a threshold."""

    feature: str
    op: Op
    value: float

    def __str__(self) -> str:
        return f"`{self.feature}` {self.op} {self.value:.4g}"


@dataclass(frozen=True, slots=True)
class Line:
    """One rule: for candidates of a kind that pass the tests, an action on the score.

    `multiply` and `add` take `amount` as it is; `boost` multiplies by 1 + amount x the excess
    of the feature over the threshold, `decay` by exp(-amount x that excess): neither has a step.
    """

    kind: Kind
    test: Threshold
    also: Threshold | None
    action: Action
    amount: float


@dataclass(frozen=True, slots=True)
class Term:
    """One part of the score before the rules: weight x feature, less where little is shared.

    `shrink` > 0 multiplies by s / (s + shrink) for s shared targets.
    """

    feature: str
    weight: float
    shrink: float = 0.0


class UnusableError(Exception):
    """A part of the reply that cannot be used; the text says why. Never leaves this package."""


def line(given: LineReply, known: Collection[str]) -> Line:
    """Read one rule.

    Raises:
        UnusableError: It names no known feature, comparison or action, or lacks a finite number.
    """
    action = cast(Action, _one_of(given.action, ACTIONS, "action"))
    test = _threshold(given.feature, given.op, given.value, known)
    also = None
    if _word(given.and_feature) not in ("", NONE):
        # A rule with half of its condition would be another rule.
        also = _threshold(given.and_feature, given.and_op, given.and_value, known)
    if action in ("boost", "decay") and test.op.startswith("<"):
        raise UnusableError(f"a {action} counts what lies above its threshold, not below")
    kind = cast(Kind, _one_of(given.kind or "any", KINDS, "kind"))
    amount = 0.0 if action == "drop" else _finite(given.amount, "amount")
    return Line(kind, test, None if also == test else also, action, amount)


def term(given: TermReply, known: Collection[str]) -> Term:
    """Read one part of the score.

    Raises:
        UnusableError: It names no known feature, or has no finite weight.
    """
    feature = _one_of(given.feature, known, "feature")
    return Term(feature, _finite(given.weight, "weight"), max(given.shrink or 0.0, 0.0))


def _threshold(feature: str, op: str, value: float | None, known: Collection[str]) -> Threshold:
    compared = cast(Op, _one_of(op, OPS, "comparison"))
    return Threshold(_one_of(feature, known, "feature"), compared, _finite(value, "threshold"))


def _finite(value: float | None, what: str) -> float:
    if value is None:
        raise UnusableError(f"its {what} is no finite number")
    return value


def _one_of(given: str, allowed: Collection[str], what: str) -> str:
    word = _word(given)
    found = next((one for one in allowed if one.lower() == word), None)
    if found is None:
        # Quoted only as far as it could be a name: a reply's sentences go nowhere.
        named = re.sub(r"[^\w<>=!-]", "", word)[:32]
        raise UnusableError(f"`{named}` is no {what} here" if named else f"it names no {what}")
    return found


def _word(given: str) -> str:
    return given.strip().strip("`\"'").lower()


__all__ = [
    "LEAST_LINES",
    "MOST_LINES",
    "MOST_TERMS",
    "Line",
    "LineReply",
    "RulesReply",
    "Term",
    "TermReply",
    "Threshold",
    "UnusableError",
    "line",
    "schema",
    "term",
]
