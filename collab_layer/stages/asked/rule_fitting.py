"""Fit what a model wrote to the data it is for, and make a rule tree of it.

In:   `Term`s and `Line`s, sampled candidates as columns, the features with their bounds.
Out:  parts of a rule tree; what was put right, one sentence each.
Pure: same input, same bytes. A part that cannot be fitted raises with the reason.

Thresholds end within the feature's bounds and, where a step depends on them, within the usual
values (5 to 95 %) of the kind they are about; numbers that scale end within fixed limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from collab_layer.stages.asked.rule_lines import Line, Term, Threshold, UnusableError
from collab_layer.stages.domain import spread
from collab_layer.stages.features import FeatureLike
from collab_layer.stages.rule_math import OPERATORS, Columns
from collab_layer.types.graph import Bools, Floats

MAX_WEIGHT = 5.0
FACTORS = (0.1, 5.0)
"""The least and the largest factor of a `multiply`."""
MAX_BOOST = 5.0
"""The most that a `boost` adds to 1 at the 95 % value."""
MIN_DECAY = 0.01
"""The least that a `decay` leaves at the 95 % value."""
MAX_SHRINK = 50.0
LEAST_CHANGE = 1e-3
"""Of a factor, or of the addend; what changes less is no rule."""
SMOOTH = ("boost", "decay")
"""Actions on the excess over a threshold: they have no step, so they may concern everybody."""


def fit_term(term: Term, feature: FeatureLike, given: Columns) -> tuple[dict[str, Any], list[str]]:
    """A part of the score: its feature brought to 0…1, so that weights compare.

    Counts become x / (x + median), days halve with every median of days, other ranges are
    cut at their 5 and 95 % values; what lies in [-1, 1] counts from 0 up.

    Raises:
        UnusableError: The feature is the same for everybody, or the weight is 0.
    """
    values = given[term.feature]
    if values.min() == values.max():
        raise UnusableError(f"`{term.feature}` is {values[0]:.3g} for every candidate here")
    if term.weight == 0:
        raise UnusableError("its weight is 0")
    weight = min(max(term.weight, -MAX_WEIGHT), MAX_WEIGHT)
    said = [] if weight == term.weight else [f"weight {term.weight:.4g} was cut to {weight:g}"]
    shape = _brought_to_unit(feature, values)
    if term.shrink > 0:
        by = min(term.shrink, MAX_SHRINK)
        shape = {"product": [shape, {"shrink": {"feature": "co_interaction_count", "by": by}}]}
    return {**shape, "weight": weight}, said


def fit_line(line: Line, features: Mapping[str, FeatureLike], given: Columns, *, most: float) -> tuple[Line, list[str]]:
    """A rule whose thresholds tell some of its candidates from others.

    Args:
        line: As read.
        features: By name.
        given: The sampled candidates.
        most: The largest addend, > 0.

    Raises:
        UnusableError: It would never fire, fire for everybody, or change nothing, whatever
            threshold near its meaning it were given.
    """
    rows = _of_kind(line, given)
    if not rows.any():
        raise UnusableError(f"there is no {line.kind} among the candidates here")
    mine = {name: column[rows] for name, column in given.items()}
    said: list[str] = []
    smooth = line.action in SMOOTH
    asked = replace(line.test, op=">") if smooth else line.test
    test = _moved(asked, features[line.test.feature], mine[line.test.feature], said, smooth=smooth)
    also = line.also
    if also is not None:
        also = _moved(also, features[also.feature], mine[also.feature], said)
        if not (_holds(test, mine[test.feature]) & _holds(also, mine[also.feature])).any():
            raise UnusableError("its two conditions never hold together here")
    fitted = replace(line, test=test, also=also)
    amount = _amount(fitted, mine[test.feature], most)
    if amount != line.amount:
        said.append(f"amount {line.amount:.4g} was set to {amount:.3g}")
    return replace(fitted, amount=amount), said


def as_rule(line: Line) -> dict[str, Any]:
    """A fitted rule as a node of the tree."""
    smooth = line.action in SMOOTH
    tests = [] if line.kind == "any" else [{"feature": "is_owner", "op": "==", "value": int(line.kind == "owner")}]
    wanted = [line.also] if smooth else [line.test, line.also]
    tests += [{"feature": one.feature, "op": one.op, "value": one.value} for one in wanted if one is not None]
    rule: dict[str, Any] = {"then": [_action(line)]}
    if tests:
        rule["when"] = tests[0] if len(tests) == 1 else {"all": tests}
    return rule


def _action(line: Line) -> dict[str, Any]:
    feature, value, amount = line.test.feature, line.test.value, line.amount
    match line.action:
        case "drop":
            return {"drop": True}
        case "decay":
            return {"decay": {"feature": feature, "rate": amount, "over": value}}
        case "boost":
            # 1 up to the threshold, then 1 + amount x the excess.
            return {"multiply": {"feature": feature, "floor": value, "scale": amount, "bias": 1 - amount * value}}
        case "multiply" | "add":
            return {line.action: amount}


def _brought_to_unit(feature: FeatureLike, values: Floats) -> dict[str, Any]:
    name, middle = feature.name, float(np.median(values))
    if name == "recency_days":
        return {"decay": {"feature": name, "rate": _short(math.log(2) / max(middle, 1.0))}}
    if feature.low >= -1 and feature.high <= 1:
        return {"feature": name, "floor": 0} if feature.low < 0 else {"feature": name}
    if feature.low >= 0:
        return {"shrink": {"feature": name, "by": _short(middle) if middle > 0 else 1.0}}
    low, *_, high = spread(values).quantiles
    if low == high:
        low, high = float(values.min()), float(values.max())
    return {"feature": name, "floor": low, "ceil": high, "scale": 1 / (high - low), "bias": -low / (high - low)}


def _moved(
    test: Threshold, feature: FeatureLike, values: Floats, said: list[str], *, smooth: bool = False
) -> Threshold:
    """The threshold, or the nearest usual value that separates and keeps what the test means.

    It means the same if the comparison stays, a rare case stays rare (and a common one
    common), and what asked for likeness does not end up asking for unlikeness.
    """
    known = spread(values).quantiles
    bounded = replace(test, value=min(max(test.value, feature.low), feature.high))
    share = _share(_holds(bounded, values))
    if share > 0 and (smooth or (share < 1 and known[0] <= bounded.value <= known[-1])):
        if bounded != test:
            said.append(f"{test} lies beyond the feature's bounds; set to {bounded.value:.4g}")
        return bounded
    options = [replace(test, value=value) for value in dict.fromkeys(known)]
    good = [one for one in options if _means_the_same(one, bounded, share, values)]
    if not good:
        if 0 < share < 1:
            return bounded
        low, high = float(values.min()), float(values.max())
        where = f"is {low:.3g}" if low == high else f"lies in {low:.3g} to {high:.3g}"
        holds = "always holds" if share else "never holds"
        raise UnusableError(f"{test} {holds}: `{test.feature}` {where} here, and no threshold near would do")
    best = min(good, key=lambda one: abs(one.value - bounded.value))
    now = _percent(_share(_holds(best, values)))
    said.append(f"{test} holds for {_percent(share)} here; moved to {best.value:.4g}, which holds for {now}")
    return best


def _means_the_same(one: Threshold, before: Threshold, share: float, values: Floats) -> bool:
    now = _share(_holds(one, values))
    return 0 < now < 1 and (now <= 0.5) == (share <= 0.5) and one.value * before.value >= 0


def _amount(line: Line, values: Floats, most: float) -> float:
    """The amount within its limits.

    Raises:
        UnusableError: It would change nothing, or turn the action round.
    """
    given = line.amount
    reach = max(spread(values).quantiles[-1] - line.test.value, 0.0) or float(values.max()) - line.test.value
    match line.action:
        case "drop":
            return 0.0
        case "multiply":
            given = min(max(given, FACTORS[0]), FACTORS[1])
        case "add":
            given = min(max(given, -most), most)
        case "boost":
            given = min(given, MAX_BOOST / reach)
        case "decay":
            # A sign only says that it falls, which every decay does.
            given = min(abs(given), -math.log(MIN_DECAY) / reach)
    if line.action == "boost" and given < 0:
        raise UnusableError("a boost raises; to lower something use multiply or decay")
    most_changed = given * reach if line.action in SMOOTH else given - (line.action == "multiply")
    if abs(most_changed) < LEAST_CHANGE:
        raise UnusableError("it would change nothing")
    return given if given == line.amount else _short(given)


def _of_kind(line: Line, given: Columns) -> Bools:
    owners = given["is_owner"] > 0
    return np.ones_like(owners) if line.kind == "any" else owners == (line.kind == "owner")


def _holds(test: Threshold, values: Floats) -> Bools:
    return OPERATORS[test.op](values, test.value)


def _share(mask: Bools) -> float:
    return int(np.count_nonzero(mask)) / len(mask)


def _percent(share: float) -> str:
    if share in (0.0, 1.0):
        return "all" if share else "none"
    return f"{share * 100:.0f} %" if share >= 0.01 else "less than 1 %"


def _short(value: float) -> float:
    """Three digits, never past the limit it was cut to by more than that."""
    return float(f"{value:.3g}")


__all__ = ["FACTORS", "MAX_WEIGHT", "as_rule", "fit_line", "fit_term"]
