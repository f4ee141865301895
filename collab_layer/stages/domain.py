"""What a tenant's candidates are like, in numbers and common topics.

In:   neighbourhoods that their readers may see, one after another.
Out:  a `Sample` of columns, `DomainFacts`.
Pure: vectorised numpy, no clock, no I/O, no randomness; rows are taken evenly.

A figure is given only where at least `minimum` owners' pools are behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.stages.features import FeatureLike, columns
from collab_layer.stages.rule_math import Columns
from collab_layer.types.graph import Bools, Floats, Ids, Neighborhood
from collab_layer.types.rules import QUANTILES, DomainFacts, FeatureFacts, Spread

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
        holders: Topic to principals that some reader here may use and that hold it.
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
    hood: Neighborhood,
    features: Iterable[FeatureLike],
    names: Mapping[int, str],
    *,
    party: Mapping[int, int] | None = None,
    rows: int = ROWS,
) -> Sample:
    """Look at one owner's pool.

    Args:
        hood: Cut to what its owner may see; candidates that permit nothing already removed.
        features: All that rules may use.
        names: Of the topics that may be named.
        party: Owner to the principal that it is an alias of; those who are none are left out.
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
        holders=_holders(hood, names, party or {}),
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
    return Spread(
        count=len(given),
        quantiles=(low, second, middle, third, high),
        zeros=int(np.count_nonzero(given == 0)) / len(given),
    )


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


def _evenly(rows: Ids, most: int) -> Ids:
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _holders(hood: Neighborhood, names: Mapping[int, str], party: Mapping[int, int]) -> dict[int, frozenset[int]]:
    """Which principals hold each own topic; that of the focus is not counted: nobody else looks here."""
    topical = hood.own_topic[hood.pair_own] & hood.is_owner[hood.pair_candidate]
    out: dict[int, set[int]] = {}
    topics, holders = hood.own.ids[hood.pair_own[topical]], hood.ids[hood.pair_candidate[topical]]
    for topic, holder in zip(topics.tolist(), holders.tolist(), strict=True):
        who = party.get(holder, holder)
        if topic in names and who != party.get(hood.focus, hood.focus):
            out.setdefault(topic, set()).add(who)
    return {topic: frozenset(ids) for topic, ids in out.items()}


__all__ = ["MAX_TOPICS", "Sample", "facts", "joined", "sample", "spread"]
