"""The compiled parts of a rule tree as plain data, and how each reads in plain words.

In:   checked numbers and names (see `rule_syntax`).
Out:  frozen values; what they compute is in `rule_math`.
Pure: nothing here looks at a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LIMIT = 1e12
"""Scores and their parts are cut to [-LIMIT, LIMIT] after every step, so none overflows."""


@dataclass(frozen=True, slots=True)
class Number:
    """The same for everybody."""

    value: float
    feature: None = None


@dataclass(frozen=True, slots=True)
class Affine:
    """`bias + scale * min(max(feature, floor), ceil)`."""

    feature: str
    scale: float = 1.0
    bias: float = 0.0
    floor: float = -LIMIT
    ceil: float = LIMIT


@dataclass(frozen=True, slots=True)
class Decay:
    """`exp(-rate * max(0, feature - over))`, rate >= 0: 1 up to `over`, then falling, without a step."""

    feature: str
    rate: float
    over: float = 0.0


@dataclass(frozen=True, slots=True)
class Shrink:
    """`x / (x + by)` for `x = max(0, feature)`, by > 0: small counts are trusted less."""

    feature: str
    by: float


Factor = Number | Affine | Decay | Shrink


@dataclass(frozen=True, slots=True)
class Term:
    """`weight * factor * factor ...`; no factor stands for 1."""

    weight: float
    factors: tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """A feature against a constant; `op` is one of > >= < <= == !=."""

    feature: str
    op: str
    value: float


@dataclass(frozen=True, slots=True)
class Junction:
    """All or any of several conditions, at least one."""

    kind: Literal["all", "any"]
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """The opposite of a condition."""

    part: Condition


Condition = Compare | Junction | Negation


@dataclass(frozen=True, slots=True)
class Action:
    """What happens to the score where a rule holds."""

    kind: Literal["multiply", "add"]
    factor: Factor


@dataclass(frozen=True, slots=True)
class Rule:
    """Actions, one after another, where a condition holds; `None` holds for all.

    Attributes:
        drops: The candidates end at 0, whatever follows.
    """

    when: Condition | None
    actions: tuple[Action, ...]
    drops: bool = False


def features_of(node: Term | Condition | Rule) -> tuple[str, ...]:
    """The features a part looks at, each once, in order of appearance."""
    match node:
        case Compare(feature=name):
            found = [name]
        case Negation(part=part):
            found = list(features_of(part))
        case Junction(parts=parts):
            found = [name for part in parts for name in features_of(part)]
        case Term(factors=factors):
            found = [factor.feature for factor in factors if factor.feature is not None]
        case Rule(when=when, actions=actions):
            found = list(features_of(when)) if when else []
            found += [action.factor.feature for action in actions if action.factor.feature is not None]
    return tuple(dict.fromkeys(found))


def words(node: Factor | Term | Condition | Action | Rule) -> str:
    """A part of a rule in plain words."""
    match node:
        case Number(value=value):
            return f"{value:g}"
        case Affine():
            return _affine_words(node)
        case Decay(feature=name, rate=rate, over=over):
            return f"exp(-{rate:g} x the excess of `{name}` over {over:g})"
        case Shrink(feature=name, by=by):
            return f"`{name}` / (`{name}` + {by:g})"
        case Term(weight=weight, factors=factors):
            parts = [words(factor) for factor in factors]
            return " x ".join(parts if parts and weight == 1 else [f"{weight:g}", *parts])
        case Compare(feature=name, op=op, value=value):
            return f"`{name}` {op} {value:g}"
        case Negation(part=part):
            return f"not {words(part)}"
        case Junction(kind=kind, parts=parts):
            return "(" + (" and " if kind == "all" else " or ").join(words(part) for part in parts) + ")"
        case Action(kind=kind, factor=factor):
            return f"{kind} {'by ' if kind == 'multiply' else ''}{words(factor)}"
        case Rule(when=when, actions=actions, drops=drops):
            done = "drop it" if drops else ", then ".join(words(action) for action in actions)
            return f"if {words(when)}: {done}" if when else f"always: {done}"


def _affine_words(node: Affine) -> str:
    text = f"`{node.feature}`"
    if node.floor > -LIMIT:
        text += f" (at least {node.floor:g})"
    if node.ceil < LIMIT:
        text += f" (at most {node.ceil:g})"
    text = text if node.scale == 1 else f"{node.scale:g} x {text}"
    return text if node.bias == 0 else f"({node.bias:g} + {text})"


__all__ = [
    "LIMIT",
    "Action",
    "Affine",
    "Compare",
    "Condition",
    "Decay",
    "Factor",
    "Junction",
    "Negation",
    "Number",
    "Rule",
    "Shrink",
    "Term",
    "features_of",
    "words",
]
