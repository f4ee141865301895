"""For whom rules fire: which never do, which always do, which change nothing.

In:   compiled rules, candidates as columns.
Out:  a `RuleFiring` for each part of the score and each rule.
Pure: vectorised numpy, no clock, no I/O.
"""

from __future__ import annotations

import numpy as np

from collab_layer.stages.rule_math import Columns, factor_value, holds, term_value
from collab_layer.stages.rule_nodes import Compare, Condition, Junction, Rule, Term, words
from collab_layer.stages.rules import Scorer
from collab_layer.types.graph import Bools
from collab_layer.types.rules import RuleFiring

KIND = "is_owner"


def firing(scorer: Scorer, given: Columns) -> tuple[RuleFiring, ...]:
    """How each term and each rule fares on n >= 1 candidates.

    Shares are of the candidates of the kind that a rule is about. A term "fires" where it is
    not 0. A rule without a condition fires for all by design; that is no finding.
    """
    terms = [_term(term, given) for term in scorer.parsed.terms]
    return (*terms, *(_rule(rule, given) for rule in scorer.parsed.rules))


def _of_its_kind(when: Condition | None, given: Columns) -> Bools:
    """The candidates of the kind (owner or thing) that a condition asks for, shape (n,)."""
    rows: Bools = np.ones(_size(given), np.bool_)
    for part in _parts(when):
        if isinstance(part, Compare) and part.feature == KIND:
            rows &= holds(part, given)
    return rows


def _term(term: Term, given: Columns) -> RuleFiring:
    values = np.broadcast_to(term_value(term, given), _size(given))
    share = _share(values != 0)
    said = None
    if values.min() == values.max():
        said = f"it is {values[0]:.3g} for every candidate, so it tells nobody from another"
    return RuleFiring(words=f"score: {words(term)}", fires=share, acts=share, finding=said)


def _rule(rule: Rule, given: Columns) -> RuleFiring:
    said = words(rule)
    rows = _of_its_kind(rule.when, given)
    if not rows.any():
        return RuleFiring(words=said, fires=0, acts=0, finding="it never fires: no candidate is of its kind")
    here = {name: column[rows] for name, column in given.items()}
    mask: Bools = holds(rule.when, here) if rule.when else np.ones(_size(here), np.bool_)
    acts: Bools = mask & _changes(rule, here)
    finding = None
    if not mask.any():
        finding = f"it never fires: {_why(rule.when, given, rows)}"
    elif not acts.any():
        finding = "it fires but changes nothing"
    elif mask.all() and any(_asks(part) for part in _parts(rule.when)):
        finding = "it fires for every candidate of its kind"
    return RuleFiring(words=said, fires=_share(mask), acts=_share(acts), finding=finding)


def _changes(rule: Rule, given: Columns) -> Bools:
    """For whom the actions are more than nothing: a factor that is not 1, an addend that is not 0."""
    changed: Bools = np.full(_size(given), rule.drops, np.bool_)
    for action in rule.actions:
        neutral = 1.0 if action.kind == "multiply" else 0.0
        changed = changed | np.not_equal(factor_value(action.factor, given), neutral)
    return changed


def _asks(part: Condition) -> bool:
    """Whether a part of a condition looks at more than the kind."""
    return not (isinstance(part, Compare) and part.feature == KIND)


def _why(when: Condition | None, given: Columns, rows: Bools) -> str:
    for part in _parts(when):
        if isinstance(part, Compare) and not holds(part, given)[rows].any():
            values = given[part.feature][rows]
            low, high = float(values.min()), float(values.max())
            where = f"is {low:.3g}" if low == high else f"lies in {low:.3g} to {high:.3g}"
            return f"`{part.feature}` {where} for all of them"
    return "its conditions do not meet"


def _parts(when: Condition | None) -> tuple[Condition, ...]:
    if when is None:
        return ()
    return when.parts if isinstance(when, Junction) and when.kind == "all" else (when,)


def _size(given: Columns) -> int:
    return len(next(iter(given.values())))


def _share(mask: Bools) -> float:
    return int(np.count_nonzero(mask)) / len(mask)


__all__ = ["firing"]
