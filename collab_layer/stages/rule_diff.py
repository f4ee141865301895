"""What two sets of rules say differently, line by line.

In:   two compiled rule trees.
Out:  lines that only one has; lines about the same features and actions, before and after.
Pure: the order of the lines is that of the trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collab_layer.stages.rule_nodes import Rule, features_of, words
from collab_layer.stages.rules import Scorer


@dataclass(frozen=True, slots=True)
class Difference:
    """Lines in plain words."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[tuple[str, str], ...]


def difference(before: Scorer, after: Scorer) -> Difference:
    """Compare by meaning of the lines, not by name or note of the tree."""
    old, new = _lines(before), _lines(after)
    gone = _without(old, new)
    come = _without(new, old)
    changed: list[tuple[str, str]] = []
    for line in list(gone):
        partner = next((other for other in come if other.about == line.about), None)
        if partner is not None:
            changed.append((line.says, partner.says))
            gone.remove(line)
            come.remove(partner)
    return Difference(tuple(line.says for line in come), tuple(line.says for line in gone), tuple(changed))


@dataclass(frozen=True, slots=True)
class _Line:
    about: tuple[object, ...]
    says: str


def _lines(scorer: Scorer) -> list[_Line]:
    terms = [_Line(("score", features_of(term)), f"score: {words(term)}") for term in scorer.parsed.terms]
    return terms + [_Line(_about(rule), words(rule)) for rule in scorer.parsed.rules]


def _about(rule: Rule) -> tuple[object, ...]:
    actions = tuple((action.kind, type(action.factor)) for action in rule.actions)
    return ("rule", features_of(rule), actions, rule.drops)


def _without(lines: Sequence[_Line], others: Sequence[_Line]) -> list[_Line]:
    """The lines that the others do not say, each other line taken once."""
    left = [other.says for other in others]
    out: list[_Line] = []
    for line in lines:
        if line.says in left:
            left.remove(line.says)
        else:
            out.append(line)
    return out


__all__ = ["Difference", "difference"]
