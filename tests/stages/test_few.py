from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages.curate import curate
from collab_layer.stages.few import HALF, Weights, newest_around, share
from collab_layer.stages.rules import load
from collab_layer.types.graph import Edges, Neighborhood, VectorView
from collab_layer.types.scope import Level

RULES = {"name": "x", "version": 1, "score": [{"feature": "idf_cosine"}]}


def around(random: np.random.Generator, own: int, owners: int, topics: bool = False) -> Neighborhood:
    """Owners 100, 101, ... each hold some of the things 0, 1, ..., of which the first is the newest."""
    holds = random.random((own, owners)) < 0.5
    pair_own, pair_candidate = np.nonzero(holds)
    size = len(pair_own)
    return Neighborhood(
        focus=1,
        now=10_000,
        own=Edges(np.arange(own), np.ones(own), np.ones(own, np.int64), 1_000 - np.arange(own)),
        own_topic=random.random(own) < 0.3 if topics else np.zeros(own, np.bool_),
        own_idf=1.0 + random.random(own),
        own_degree=own,
        ids=np.arange(100, 100 + owners),
        is_owner=np.ones(owners, np.bool_),
        level=np.full(owners, Level.RECORDS, np.int8),
        degree=np.maximum(holds.sum(axis=0), 1) + 3,
        last=np.full(owners, 500),
        pair_own=pair_own.astype(np.int32),
        pair_candidate=pair_candidate.astype(np.int32),
        pair_weight=np.ones(size),
        pair_last=np.full(size, 500),
        group=np.zeros(owners, np.bool_),
        peer=np.zeros(owners),
        vectors=VectorView(np.zeros((0, 2), np.float32), np.full(owners, -1, np.int32)),
        owners_visible=owners,
    )


def test_both_sets_count_alike_at_the_half_and_nothing_held_takes_the_few_alone():
    weights = Weights({"a": 1.0, "b": 2.0}, {"a": 3.0, "c": 1.0})
    assert weights.at(0) == {"a": 3.0, "b": 0.0, "c": 1.0}
    assert weights.at(HALF) == pytest.approx({"a": 2.0, "b": 1.0, "c": 0.5})
    assert weights.at(10_000) == pytest.approx({"a": 1.0, "b": 2.0, "c": 0.0}, abs=1e-5)


def test_without_weights_for_few_everybody_is_ranked_alike():
    assert Weights({"a": 1.0}).at(0) == Weights({"a": 1.0}).at(500) == {"a": 1.0}


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 9), st.floats(0, 9))
def test_a_weight_lies_between_the_two_and_moves_one_way(one, other, much, few):
    one, other = sorted((one, other))
    assert 0.0 <= share(one) <= share(other) <= 1.0
    first, second = (Weights({"a": much}, {"a": few}).at(held)["a"] for held in (one, other))
    assert min(much, few) - 1e-9 <= second <= max(much, few) + 1e-9
    assert abs(first - few) <= abs(second - few) + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_a_cut_pool_is_the_one_of_an_owner_that_never_held_more(seed, count):
    """What curation makes of it equals the pool made of the newest things alone."""
    whole = around(np.random.default_rng(seed), own=8, owners=6)
    cut = newest_around(whole, count)
    assert cut.own.ids.tolist() == list(range(count))
    pairs = whole.pair_own < count
    assert sorted(zip(cut.pair_own, cut.pair_candidate, strict=True)) == sorted(
        zip(whole.pair_own[pairs], whole.pair_candidate[pairs], strict=True)
    )
    idf = whole.own_idf[:count]
    chosen = curate(cut, load(RULES), k=6)
    for owner, score in zip(chosen.ids.tolist(), chosen.scores.tolist(), strict=True):
        shared = whole.pair_own[pairs & (whole.pair_candidate == owner - 100)]
        total = float((idf**2).sum())
        norm = (total * whole.degree[owner - 100] * total / count) ** 0.5
        assert score == pytest.approx(float((idf[shared] ** 2).sum()) / norm)


def test_topics_older_than_the_things_that_are_kept_go_too():
    whole = around(np.random.default_rng(3), own=12, owners=4, topics=True)
    cut = newest_around(whole, 2)
    assert int((~cut.own_topic).sum()) == 2
    assert cut.own.last.min() >= whole.own.last[~whole.own_topic][1]


def test_more_than_there_is_changes_nothing_and_nothing_is_no_error():
    whole = around(np.random.default_rng(1), own=3, owners=4)
    same = newest_around(whole, 9)
    assert same.own.ids.tolist() == whole.own.ids.tolist()
    assert same.pair_own.tolist() == whole.pair_own.tolist()
    empty = newest_around(around(np.random.default_rng(1), own=0, owners=4), 1)
    assert len(empty.own) == 0
    assert len(curate(empty, load(RULES))) == 0
