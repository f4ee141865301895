"""What a tenant's candidates are like, and how rules fire on them.

In:   neighbourhoods that their readers may see, one after another; compiled rules.
Out:  a `Sample` of columns, `DomainFacts` in numbers, a `RuleFiring` for each term and rule.
Pure: vectorised numpy, no clock, no I/O, no randomness; rows are taken evenly.

A figure is given only where at least `minimum` owners' pools are behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.stages.features import FeatureLike, columns
from collab_layer.stages.rule_math import Columns, factor_value, holds, term_value
from collab_layer.stages.rule_nodes import Compare, Condition, Junction, Rule, Term, words
from collab_layer.stages.rules import Scorer
from collab_layer.types.graph import Bools, Floats, Ids, Neighborhood
from collab_layer.types.rules import QUANTILES, DomainFacts, FeatureFacts, RuleFiring, Spread

ROWS = 96
"""Candidates of each kind taken from one pool."""
MAX_TOPICS = 20
KIND = "is_owner"


@dataclass(frozen=True, slots=True)
class Sample:
    """Candidates of several owners' pools, n rows, f owners.

    Attributes:
        columns: Each feature's values, shape (n,); `is_owner` is always among them.
        pool_of: Which of the owners each row was a candidate of, shape (n,).
        degrees, sizes: Distinct targets of each owner, and candidates in its pool, shape (f,).
        pairs, possible: Own targets that candidates hold too, and of how many.
        targets, topics: Own targets looked at, and how many of them are topics.
        holders: Topic to owners that some reader here may use and that hold it.
        names: Of those topics.
    """

    columns: Columns
    pool_of: Ids
    degrees: Ids
    sizes: Ids
    pairs: int
    possible: int
    targets: int
    topics: int
    holders: Mapping[int, frozenset[int]]
    names: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.pool_of)

    @property
    def is_owner(self) -> Bools:
        """Which rows are owners, shape (n,)."""
        return self.columns[KIND] > 0


def sample(
    hood: Neighborhood, features: Iterable[FeatureLike], names: Mapping[int, str], *, rows: int = ROWS
) -> Sample:
    """Look at one owner's pool.

    Args:
        hood: Cut to what its owner may see; candidates that permit nothing already removed.
        features: All that rules may use.
        names: Of the topics that may be named.
        rows: Candidates of each kind to take, evenly over the pool, >= 1.
    """
    kinds = (hood.is_owner, ~hood.is_owner)
    taken = np.concatenate([_evenly(np.flatnonzero(kind), rows) for kind in kinds])
    owners = hood.is_owner[hood.pair_candidate]
    return Sample(
        columns=columns(features, hood, taken),
        pool_of=np.zeros(len(taken), np.int64),
        degrees=np.array([hood.own_degree], np.int64),
        sizes=np.array([len(hood)], np.int64),
        pairs=int(owners.sum()),
        possible=len(hood.own) * int(hood.is_owner.sum()),
        targets=len(hood.own),
        topics=int(hood.own_topic.sum()),
        holders=_holders(hood, names),
        names=names,
    )


def joined(samples: Sequence[Sample]) -> Sample:
    """Several owners' samples as one, at least one; pools are numbered in order."""
    starts = np.cumsum([0, *(len(one.sizes) for one in samples)])
    holders: dict[int, set[int]] = {}
    for one in samples:
        for topic, ids in one.holders.items():
            holders.setdefault(topic, set()).update(ids)
    return Sample(
        columns={name: np.concatenate([one.columns[name] for one in samples]) for name in samples[0].columns},
        pool_of=np.concatenate([one.pool_of + start for one, start in zip(samples, starts[:-1], strict=True)]),
        degrees=np.concatenate([one.degrees for one in samples]),
        sizes=np.concatenate([one.sizes for one in samples]),
        pairs=sum(one.pairs for one in samples),
        possible=sum(one.possible for one in samples),
        targets=sum(one.targets for one in samples),
        topics=sum(one.topics for one in samples),
        holders={topic: frozenset(ids) for topic, ids in holders.items()},
        names={topic: name for one in samples for topic, name in one.names.items()},
    )


def facts(given: Sample, features: Iterable[FeatureLike], *, minimum: int) -> DomainFacts:
    """The sample in numbers, and the topics that at least `minimum` owners hold."""
    enough = len(given.degrees) >= minimum
    common = [topic for topic, ids in given.holders.items() if len(ids) >= minimum]
    common.sort(key=lambda topic: (-len(given.holders[topic]), given.names[topic]))
    things = ~given.is_owner
    return DomainFacts(
        owners=len(given.sizes),
        candidates=len(given),
        pool=spread(given.sizes) if enough else None,
        owner_degree=spread(given.degrees) if enough else None,
        thing_degree=_of_kind(given, given.columns["activity"], things, minimum),
        density=given.pairs / given.possible if given.possible else 0.0,
        topic_share=given.topics / given.targets if given.targets else 0.0,
        features=tuple(_feature(given, feature, minimum) for feature in features),
        topics=tuple(dict.fromkeys(given.names[topic] for topic in common))[:MAX_TOPICS],
    )


def spread(values: Ids | Floats) -> Spread:
    """Quantiles of at least one value; each is a value that occurs."""
    given = np.asarray(values, np.float64)
    low, second, middle, third, high = np.quantile(given, QUANTILES, method="inverted_cdf").tolist()
    return Spread(count=len(given), quantiles=(low, second, middle, third, high), zeros=_share(given == 0))


def firing(scorer: Scorer, given: Columns) -> tuple[RuleFiring, ...]:
    """How each term and each rule fares on n >= 1 candidates.

    Shares are of the candidates of the kind that a rule is about. A term "fires" where it is
    not 0. A rule without a condition fires for all by design; that is no finding.
    """
    terms = [_term(term, given) for term in scorer.parsed.terms]
    return (*terms, *(_rule(rule, given) for rule in scorer.parsed.rules))


def of_its_kind(when: Condition | None, given: Columns) -> Bools:
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
    rows = of_its_kind(rule.when, given)
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


def _feature(given: Sample, feature: FeatureLike, minimum: int) -> FeatureFacts:
    values = given.columns[feature.name]
    return FeatureFacts(
        name=feature.name,
        summary=feature.summary,
        low=feature.low,
        high=feature.high,
        owners=_of_kind(given, values, given.is_owner, minimum),
        things=_of_kind(given, values, ~given.is_owner, minimum),
    )


def _of_kind(given: Sample, values: Floats, rows: Bools, minimum: int) -> Spread | None:
    return spread(values[rows]) if len(np.unique(given.pool_of[rows])) >= max(minimum, 1) else None


def _size(given: Columns) -> int:
    return len(next(iter(given.values())))


def _share(mask: Bools) -> float:
    return int(np.count_nonzero(mask)) / len(mask)


def _evenly(rows: Ids, most: int) -> Ids:
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _holders(hood: Neighborhood, names: Mapping[int, str]) -> dict[int, frozenset[int]]:
    """Who of the candidates holds each own topic; the focus itself is not counted: nobody else looks here."""
    topical = hood.own_topic[hood.pair_own] & hood.is_owner[hood.pair_candidate]
    out: dict[int, set[int]] = {}
    topics, holders = hood.own.ids[hood.pair_own[topical]], hood.ids[hood.pair_candidate[topical]]
    for topic, holder in zip(topics.tolist(), holders.tolist(), strict=True):
        if topic in names:
            out.setdefault(topic, set()).add(holder)
    return {topic: frozenset(ids) for topic, ids in out.items()}


__all__ = ["MAX_TOPICS", "Sample", "facts", "firing", "joined", "of_its_kind", "sample", "spread"]
