"""What the parts of a rule compute: exact values, and intervals where a feature is not known yet.

In:   columns by feature name, shape (n,), or `Ranges`: a low and a high column for each.
Out:  values, or intervals that contain every value the ranges allow.
Pure: same columns, same bytes; each candidate's value depends on its own row only.

An interval whose two ends are the same array is exact and costs half; results keep that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from collab_layer.stages.rule_nodes import (
    LIMIT,
    Action,
    Affine,
    Compare,
    Condition,
    Decay,
    Factor,
    Junction,
    Negation,
    Number,
    Shrink,
    Term,
)
from collab_layer.types.graph import Bools, Floats

Columns = Mapping[str, Floats]
Interval = tuple[Floats, Floats]
Ranges = Mapping[str, Interval]
Masks = tuple[Bools, Bools]

OPERATORS: Mapping[str, Callable[[Floats, float], Bools]] = {
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def limit(values: Floats) -> Floats:
    """Cut to [-LIMIT, LIMIT]."""
    return np.minimum(np.maximum(values, -LIMIT), LIMIT)


def factor_value(factor: Factor, columns: Columns) -> Floats:
    """The factor for each candidate, shape (n,), or () for a number."""
    return np.asarray(factor.value) if isinstance(factor, Number) else _curve(factor, columns[factor.feature])


def factor_bounds(factor: Factor, ranges: Ranges) -> Interval:
    """The least and the largest value of the factor; each kind is monotone in its feature."""
    if isinstance(factor, Number):
        value = np.asarray(factor.value)
        return value, value
    low, high = ranges[factor.feature]
    first = _curve(factor, low)
    last = first if low is high else _curve(factor, high)
    falling = isinstance(factor, Decay) or (isinstance(factor, Affine) and factor.scale < 0)
    return (last, first) if falling else (first, last)


def _curve(factor: Affine | Decay | Shrink, values: Floats) -> Floats:
    match factor:
        case Affine(scale=scale, bias=bias, floor=floor, ceil=ceil):
            return bias + scale * np.minimum(np.maximum(values, floor), ceil)
        case Decay(rate=rate, over=over):
            return np.exp(-rate * np.maximum(values - over, 0.0))
        case Shrink(by=by):
            count = np.maximum(values, 0.0)
            return count / (count + by)


def term_value(term: Term, columns: Columns) -> Floats:
    """The term for each candidate, shape (n,), or () without features."""
    value = np.asarray(term.weight)
    for factor in term.factors:
        value = limit(value * factor_value(factor, columns))
    return value


def term_bounds(term: Term, ranges: Ranges) -> Interval:
    """The least and the largest value of the term."""
    weight = np.asarray(term.weight)
    value = (weight, weight)
    for factor in term.factors:
        value = _times(value, factor_bounds(factor, ranges))
    return value


def action_value(action: Action, score: Floats, columns: Columns) -> Floats:
    """The score after the action."""
    value = factor_value(action.factor, columns)
    return limit(score * value if action.kind == "multiply" else score + value)


def action_bounds(action: Action, score: Interval, ranges: Ranges) -> Interval:
    """The least and the largest score after the action."""
    value = factor_bounds(action.factor, ranges)
    return _times(score, value) if action.kind == "multiply" else plus(score, value)


def plus(a: Interval, b: Interval) -> Interval:
    """The sum of two intervals."""
    low = limit(a[0] + b[0])
    return low, low if a[0] is a[1] and b[0] is b[1] else limit(a[1] + b[1])


def _times(a: Interval, b: Interval) -> Interval:
    if a[0] is a[1] and b[0] is b[1]:
        product = limit(a[0] * b[0])
        return product, product
    if (a[0] >= 0).all() and (b[0] >= 0).all():
        return limit(a[0] * b[0]), limit(a[1] * b[1])
    one, two, three, four = (limit(x * y) for x in a for y in b)
    low = np.minimum(np.minimum(one, two), np.minimum(three, four))
    return low, np.maximum(np.maximum(one, two), np.maximum(three, four))


def holds(condition: Condition, columns: Columns) -> Bools:
    """For whom the condition holds, shape (n,)."""
    match condition:
        case Compare(feature=name, op=op, value=value):
            return OPERATORS[op](columns[name], value)
        case Negation(part=part):
            return ~holds(part, columns)
        case Junction(kind=kind, parts=parts):
            return _join(kind, [holds(part, columns) for part in parts])


def may_hold(condition: Condition, ranges: Ranges) -> Masks:
    """For whom the condition holds for certain, and for whom it may."""
    match condition:
        case Compare(feature=name):
            return _compare_masks(condition, ranges[name])
        case Negation(part=part):
            certain, possible = may_hold(part, ranges)
            never = ~possible
            return never, never if certain is possible else ~certain
        case Junction(kind=kind, parts=parts):
            masks = [may_hold(part, ranges) for part in parts]
            certain = _join(kind, [mask[0] for mask in masks])
            exact = all(mask[0] is mask[1] for mask in masks)
            return certain, certain if exact else _join(kind, [mask[1] for mask in masks])


def _compare_masks(condition: Compare, given: Interval) -> Masks:
    compare, value, (low, high) = OPERATORS[condition.op], condition.value, given
    if low is high:
        exact = compare(low, value)
        return exact, exact
    if condition.op in ("==", "!="):
        inside, alone = (low <= value) & (value <= high), (low == value) & (high == value)
        return (alone, inside) if condition.op == "==" else (~inside, ~alone)
    at_low, at_high = compare(low, value), compare(high, value)
    return (at_low, at_high) if condition.op in (">", ">=") else (at_high, at_low)


def _join(kind: str, masks: list[Bools]) -> Bools:
    joined = masks[0]
    for mask in masks[1:]:
        joined = joined & mask if kind == "all" else joined | mask
    return joined


__all__ = [
    "OPERATORS",
    "Columns",
    "Interval",
    "Ranges",
    "action_bounds",
    "action_value",
    "factor_value",
    "holds",
    "limit",
    "may_hold",
    "plus",
    "term_bounds",
    "term_value",
]
