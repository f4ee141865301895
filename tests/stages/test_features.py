from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.errors import PluginError
from collab_layer.plugins.specs import FeatureSpec
from collab_layer.stages.features import BUILTIN, column, columns, is_expensive
from collab_layer.types.graph import Edges, Neighborhood, VectorView

DAY = 86_400_000_000
NOW = 20_000 * DAY


def alice() -> Neighborhood:
    """Own: dune (id 10), emma (11), topic scifi (12). Bob holds dune and scifi, Cleo nothing, then dune itself."""
    return Neighborhood(
        focus=1,
        now=NOW,
        own=Edges(
            np.array([10, 11, 12]),
            np.array([1.0, 2.0, 4.0]),
            np.array([3, 1, 2]),
            np.array([NOW - DAY, NOW - 2 * DAY, NOW - 3 * DAY]),
        ),
        own_topic=np.array([False, False, True]),
        own_idf=np.array([1.0, 2.0, 3.0]),
        own_degree=3,
        ids=np.array([2, 3, 10]),
        is_owner=np.array([True, True, False]),
        level=np.full(3, 2, np.int8),
        degree=np.array([4, 1, 9]),
        last=np.array([NOW, NOW - 50 * DAY, NOW - DAY]),
        pair_own=np.array([0, 2], np.int32),
        pair_candidate=np.array([0, 0], np.int32),
        pair_weight=np.array([1.0, 5.0]),
        pair_last=np.array([NOW - 30 * DAY, NOW - 7 * DAY]),
        group=np.array([False, True, False]),
        peer=np.array([0.0, 0.7, 0.0]),
        vectors=VectorView(np.eye(2, dtype=np.float32), np.array([0, 1, -1], np.int32)),
        focus_vector=np.array([0.6, -0.8], np.float32),
    )


def value(name: str, neighborhood: Neighborhood | None = None) -> list[float]:
    return column(BUILTIN[name], neighborhood or alice()).tolist()


def test_edge_weight_is_the_shared_part_for_owners_and_own_strength_for_things():
    assert value("edge_weight") == pytest.approx([2 / 3, 0.0, 1 / 4 * 3 / 3])


def test_idf_cosine_follows_its_formula():
    norm, rms = np.sqrt(14), np.sqrt(14 / 3)
    assert value("idf_cosine") == pytest.approx([(1 + 9) / (norm * np.sqrt(4) * rms), 0, 0])


def test_an_owner_with_exactly_the_same_targets_has_idf_cosine_one():
    twin = replace(
        alice(),
        degree=np.array([3, 1, 9]),
        pair_own=np.array([0, 1, 2], np.int32),
        pair_candidate=np.zeros(3, np.int32),
        pair_weight=np.ones(3),
        pair_last=np.full(3, NOW),
    )
    assert value("idf_cosine", twin)[0] == pytest.approx(1.0)


def test_counts_are_shared_targets_for_owners_and_interactions_for_own_things():
    assert value("co_interaction_count") == [2, 0, 3]


def test_recency_is_the_newest_shared_interaction_else_the_last_activity():
    assert value("recency_days") == [7, 50, 1]


def test_a_clock_that_runs_behind_gives_no_negative_days():
    assert value("recency_days", replace(alice(), now=0)) == [0, 0, 0]


def test_metadata_overlap_counts_topics_only_and_is_zero_without_topics():
    two_topics = replace(alice(), own_topic=np.array([True, True, False]))
    assert value("metadata_overlap") == [1, 0, 0]
    assert value("metadata_overlap", two_topics) == pytest.approx([1 / 3, 0, 0])
    assert value("metadata_overlap", replace(alice(), own_topic=np.zeros(3, np.bool_))) == [0, 0, 0]


def test_similarities_are_cosines_and_zero_where_a_vector_is_missing():
    assert value("memory_similarity") == pytest.approx([0.6, -0.8, 0])
    assert value("query_similarity") == [0, 0, 0]


def test_importance_saturates_with_the_weight_of_what_is_shared():
    assert value("importance") == pytest.approx([3 / 4, 0, 1 / 2])


def test_plain_columns_are_passed_on():
    assert value("activity") == [4, 1, 9]
    assert value("peer") == [0, 0.7, 0]
    assert value("group") == [0, 1, 0]
    assert value("is_owner") == [1, 1, 0]


def test_only_features_that_read_vectors_are_postponed():
    assert {name for name, feature in BUILTIN.items() if is_expensive(feature)} == {
        "memory_similarity",
        "query_similarity",
    }


def test_rows_give_the_same_as_all():
    for feature in BUILTIN.values():
        rows = np.array([2, 0])
        assert np.array_equal(column(feature, alice(), rows), column(feature, alice())[rows]), feature.name


def test_no_candidates_and_no_own_targets_are_no_error():
    bare = replace(alice(), own=Edges.empty(), own_topic=np.zeros(0, np.bool_), own_idf=np.zeros(0))
    none = np.zeros(0, np.int32)
    bare = replace(bare, pair_own=none, pair_candidate=none, pair_weight=np.zeros(0), pair_last=np.zeros(0, np.int64))
    assert all(np.isfinite(values).all() for values in columns(BUILTIN.values(), bare).values())


def test_a_plugin_feature_is_clipped_to_what_it_declared():
    spec = FeatureSpec("odd", "", -1, 2, lambda n: np.array([np.nan, np.inf, -5.0]))
    assert column(spec, alice()).tolist() == [-1, 2, -1]


@pytest.mark.parametrize("wrong", [np.zeros(2), np.zeros((3, 1)), ["a", "b", "c"], None])
def test_a_plugin_feature_of_the_wrong_shape_is_reported_by_name(wrong):
    with pytest.raises(PluginError, match="odd"):
        column(FeatureSpec("odd", "", 0, 1, lambda n: wrong), alice())


@settings(max_examples=60, deadline=None)
@given(
    idf=st.lists(st.floats(0, 25), min_size=3, max_size=3),
    weight=st.lists(st.floats(0, 1e9), min_size=3, max_size=3),
    now=st.integers(-(2**62), 2**62),
    degree=st.lists(st.integers(0, 2**40), min_size=3, max_size=3),
)
def test_every_feature_stays_within_its_bounds(idf, weight, now, degree):
    own = replace(alice().own, weight=np.array(weight))
    odd = replace(alice(), own_idf=np.array(idf), own=own, now=now, degree=np.array(degree), peer=np.full(3, np.nan))
    for name, values in columns(BUILTIN.values(), odd).items():
        assert ((BUILTIN[name].low <= values) & (values <= BUILTIN[name].high)).all(), name


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 60), dim=st.integers(1, 70), seed=st.integers(0, 2**32 - 1))
def test_a_cosine_does_not_depend_on_which_other_rows_are_asked_for(size, dim, seed):
    random = np.random.default_rng(seed)
    view = VectorView(random.normal(size=(size, dim)).astype(np.float32), np.arange(size, dtype=np.int32))
    vector = random.normal(size=dim).astype(np.float32)
    rows = random.permutation(size)[: random.integers(1, size + 1)]
    assert np.array_equal(view.dot(vector, rows), view.dot(vector)[rows])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_sums_over_pairs_do_not_depend_on_their_order(seed):
    random = np.random.default_rng(seed)
    held, owner = (part.ravel().astype(np.int32) for part in np.meshgrid(np.arange(30), np.arange(2)))
    hood = replace(
        alice(),
        own=Edges(np.arange(10, 40), np.ones(30), np.ones(30, np.int64), np.arange(30)),
        own_topic=np.ones(30, np.bool_),
        own_idf=random.uniform(0, 20, 30),
        pair_own=held,
        pair_candidate=owner,
        pair_weight=random.uniform(0, 5, 60),
        pair_last=random.integers(0, NOW, 60),
    )
    order = random.permutation(60)
    mixed = replace(
        hood,
        pair_own=held[order],
        pair_candidate=owner[order],
        pair_weight=hood.pair_weight[order],
        pair_last=hood.pair_last[order],
    )
    for feature in BUILTIN.values():
        assert np.array_equal(column(feature, hood), column(feature, mixed)), feature.name
