"""Compile a JSON rule tree into a bounded, vectorised scorer.

In:   a tree as text or mapping (grammar: docs/rules.md), and the features it may use.
Out:  a `Scorer`: scores, bounds on scores, contributions per feature, plain words, a hash.
Pure: no clock, no I/O, no `eval`. Same tree and columns, same bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from collab_layer.errors import InvalidRuleError
from collab_layer.stages.features import BUILTIN, FeatureLike, is_expensive
from collab_layer.stages.rule_math import (
    Columns,
    Interval,
    Ranges,
    action_bounds,
    action_value,
    factor_value,
    holds,
    limit,
    may_hold,
    plus,
    term_bounds,
    term_value,
)
from collab_layer.stages.rule_nodes import Rule, Term, features_of, words
from collab_layer.stages.rule_syntax import MAX_THRESHOLD, Parsed, parse
from collab_layer.types.graph import Bools, Floats

CONSTANT = "constant"
"""Whom contributions are credited to that no feature caused."""


def load(source: str | bytes | Mapping[str, Any], features: Iterable[FeatureLike] = ()) -> Scorer:
    """Check and compile a rule tree.

    Args:
        source: JSON text, or the mapping itself.
        features: Allowed beside the built-in ones, each with its bounds.

    Raises:
        InvalidRuleError: With the path of the offending node, such as `$.rules[0].when.op`.
    """
    known: dict[str, FeatureLike] = dict(BUILTIN)
    for feature in features:
        _check_feature(feature, known)
        known[feature.name] = feature
    parsed = parse(source, known)
    names = [name for part in (*parsed.terms, *parsed.rules) for name in features_of(part)]
    if not names:
        raise InvalidRuleError("$.score", "uses no feature: everybody would get the same")
    return Scorer(parsed, MappingProxyType({name: known[name] for name in dict.fromkeys(names)}))


def _check_feature(feature: FeatureLike, known: Mapping[str, FeatureLike]) -> None:
    where = f"feature {feature.name}"
    if feature.name in known or feature.name == CONSTANT:
        raise InvalidRuleError(where, "this name is taken")
    if not (math.isfinite(feature.low) and math.isfinite(feature.high) and feature.low <= feature.high):
        raise InvalidRuleError(where, f"its bounds [{feature.low}, {feature.high}] are no finite interval")
    if max(-feature.low, feature.high) > MAX_THRESHOLD:
        raise InvalidRuleError(where, f"its bounds exceed {MAX_THRESHOLD:g}")


@dataclass(frozen=True)
class Scorer:
    """A compiled rule tree.

    Columns are float64, shape (n,), within the bounds of their feature (`features.columns`).

    Attributes:
        parsed: The checked tree.
        features: The features it needs, by name.
    """

    parsed: Parsed
    features: Mapping[str, FeatureLike]

    @property
    def name(self) -> str:
        """As the tree calls itself."""
        return self.parsed.name

    @cached_property
    def cheap(self) -> tuple[FeatureLike, ...]:
        """Needed for every candidate."""
        return tuple(feature for feature in self.features.values() if not is_expensive(feature))

    @cached_property
    def expensive(self) -> tuple[FeatureLike, ...]:
        """Needed only where the bounds leave the outcome open."""
        return tuple(feature for feature in self.features.values() if is_expensive(feature))

    @cached_property
    def hash(self) -> str:
        """sha256 of the tree as canonical JSON; the order of keys and `1` for `1.0` do not matter."""
        text = json.dumps(self.parsed.canonical, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def score(self, columns: Columns) -> Floats:
        """Score all candidates, shape (n,), finite; a dropped candidate gets 0."""
        size = _size(columns)
        score = np.zeros(size)
        for term in self.parsed.terms:
            score = limit(score + term_value(term, columns))
        dropped = np.zeros(size, np.bool_)
        for rule in self.parsed.rules:
            mask = _mask(rule, columns, size)
            if rule.drops:
                dropped |= mask
                continue
            after = score
            for action in rule.actions:
                after = action_value(action, after, columns)
            score = np.where(mask, after, score)
        return np.where(dropped, 0.0, score)

    def bounds(self, columns: Columns, size: int | None = None) -> Interval:
        """The least and the largest score each candidate may get, both of shape (n,).

        A feature that is missing from `columns` may take any value within its own bounds.

        Args:
            columns: Usually the cheap features.
            size: n, needed if `columns` is empty.
        """
        n = _size(columns) if size is None else size
        ranges = self._ranges(columns)
        zero = np.zeros(n)
        score: Interval = (zero, zero)
        for term in self.parsed.terms:
            score = plus(score, term_bounds(term, ranges))
        gone, maybe = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        for rule in self.parsed.rules:
            if rule.drops:
                always = np.ones(n, np.bool_)
                certain, possible = (always, always) if rule.when is None else may_hold(rule.when, ranges)
                gone, maybe = gone | certain, maybe | possible
            else:
                score = _apply_bounds(rule, score, ranges)
        low = np.where(maybe, np.minimum(score[0], 0.0), score[0])
        high = np.where(maybe, np.maximum(score[1], 0.0), score[1])
        return np.where(gone, 0.0, low), np.where(gone, 0.0, high)

    def _ranges(self, columns: Columns) -> Ranges:
        exact: dict[str, Interval] = {name: (column, column) for name, column in columns.items()}
        unknown = {name: feature for name, feature in self.features.items() if name not in columns}
        return exact | {name: (np.asarray(f.low, float), np.asarray(f.high, float)) for name, f in unknown.items()}

    def contributions(self, columns: Columns) -> dict[str, Floats]:
        """What each feature added to the score, shape (n,) each; they sum to `score(columns)`.

        The score is built step by step as written, and each step's change is credited to
        the feature that made it: the first factor of a product gets the value so far, each
        further factor what it changes; an action with a feature credits that feature, a
        constant action shares its change equally among the features of its condition.
        What no feature caused is under `constant`. Negative means lowered. A dropped
        candidate has only zeros.
        """
        size = _size(columns)
        ledger = _Ledger({name: np.zeros(size) for name in (*self.features, CONSTANT)})
        score = np.zeros(size)
        for term in self.parsed.terms:
            score = ledger.term(term, score, columns)
        dropped = np.zeros(size, np.bool_)
        for rule in self.parsed.rules:
            mask = _mask(rule, columns, size)
            dropped |= mask & rule.drops
            score = score if rule.drops else ledger.rule(rule, mask, score, columns)
        totals = {name: np.where(dropped, 0.0, total) for name, total in ledger.totals.items()}
        return {name: total for name, total in totals.items() if name != CONSTANT or total.any()}

    def explain(self) -> str:
        """The rules in plain words, one line each."""
        lines = [f"{self.name}: start from {' + '.join(words(term) for term in self.parsed.terms)}"]
        return "\n".join([*lines, *(f"{at}. {words(rule)}" for at, rule in enumerate(self.parsed.rules, 1))])


@dataclass(frozen=True, slots=True)
class _Ledger:
    """Running totals of contributions."""

    totals: dict[str, Floats]

    def credit(self, names: tuple[str, ...], change: Floats) -> None:
        for name in names:
            self.totals[name] = self.totals[name] + change / len(names)

    def term(self, term: Term, score: Floats, columns: Columns) -> Floats:
        value, credited = np.asarray(term.weight), np.asarray(0.0)
        for factor in term.factors:
            value = limit(value * factor_value(factor, columns))
            if factor.feature is not None:
                self.credit((factor.feature,), value - credited)
                credited = value
        total = score + value
        after = limit(total)
        self.credit((CONSTANT,), value - credited + (after - total))
        return after

    def rule(self, rule: Rule, mask: Bools, score: Floats, columns: Columns) -> Floats:
        """Credit the changes; gives the score after the rule."""
        causes = features_of(rule.when) if rule.when else (CONSTANT,)
        before = score
        for action in rule.actions:
            after = np.where(mask, action_value(action, before, columns), before)
            feature = action.factor.feature
            self.credit(causes if feature is None else (feature,), after - before)
            before = after
        return before


def _size(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _mask(rule: Rule, columns: Columns, size: int) -> Bools:
    return np.ones(size, np.bool_) if rule.when is None else holds(rule.when, columns)


def _apply_bounds(rule: Rule, score: Interval, ranges: Ranges) -> Interval:
    after = score
    for action in rule.actions:
        after = action_bounds(action, after, ranges)
    if rule.when is None:
        return after
    certain, possible = may_hold(rule.when, ranges)
    low = np.where(certain, after[0], np.where(possible, np.minimum(score[0], after[0]), score[0]))
    if certain is possible and score[0] is score[1] and after[0] is after[1]:
        return low, low
    return low, np.where(certain, after[1], np.where(possible, np.maximum(score[1], after[1]), score[1]))


__all__ = ["CONSTANT", "Scorer", "load"]
