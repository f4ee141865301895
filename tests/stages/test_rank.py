from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from collab_layer.errors import InputError
from collab_layer.stages.rank import DEFAULT_WEIGHTS, OWN, SHARED, features, rank, rationale, standardise
from collab_layer.types.graph import Candidates, Edges, VectorView
from collab_layer.types.scope import Level

ALICE, BOB, CARL, DORA = 101, 102, 103, 104


def view(*vectors: tuple[float, float] | None) -> VectorView:
    """Unit vectors in the plane; None where an entity has none."""
    known = [np.array(vector) / np.linalg.norm(vector) for vector in vectors if vector is not None]
    matrix = np.array(known, np.float32).reshape(-1, 2)
    have = np.cumsum([vector is not None for vector in vectors]) - 1
    row = np.where([vector is not None for vector in vectors], have, -1)
    return VectorView(matrix, row.astype(np.int32))


def edges(*ids: int) -> Edges:
    size = len(ids)
    return Edges(np.array(ids, np.int64), np.ones(size), np.ones(size, np.int64), np.arange(size, 0, -1))


def candidates(
    ids: tuple[int, ...] = (1, 2, 3),
    own: tuple[int, ...] = (11, 12),
    holds: tuple[tuple[int, int], ...] = ((0, 0),),
    weight: tuple[float, ...] = (0.75, 0.25),
    level: tuple[Level, ...] = (Level.RECORDS, Level.RECORDS),
    popularity: tuple[float, ...] | None = None,
    visible: int = 10,
) -> Candidates:
    """Own things lie at 0 and 90 degrees, candidates at 0, 90 and 180."""
    around = ((1, 0), (0, 1), (-1, 0))
    counted = [len({who for who, what in holds if what == row}) for row in range(len(ids))]
    return Candidates(
        ids=np.array(ids, np.int64),
        own=edges(*own),
        own_vectors=view(*[around[at % 2] for at in range(len(own))]),
        candidate_vectors=view(*[around[at % 3] for at in range(len(ids))]),
        neighbors=np.arange(ALICE, ALICE + len(weight)),
        neighbor_weight=np.array(weight),
        neighbor_level=np.array(level, np.int8),
        hold_neighbor=np.array([who for who, _ in holds], np.int32),
        hold_candidate=np.array([what for _, what in holds], np.int32),
        hold_weight=np.ones(len(holds)),
        popularity=np.array(counted if popularity is None else popularity, np.float64),
        owners_visible=visible,
    )


def test_own_features_are_the_cosines_of_their_definitions():
    found = features(candidates(own=(11, 12)))
    half = 0.5**0.1  # the second newest thing
    assert found["own_centroid"] == pytest.approx([0.5**0.5, 0.5**0.5, -(0.5**0.5)])
    assert found["own_top3"] == pytest.approx([0.5, 0.5, -0.5])
    length = (1 + half**2) ** 0.5
    assert found["own_recent"] == pytest.approx([1 / length, half / length, -1 / length])


def test_evidence_is_the_weight_of_those_who_hold_it():
    found = features(candidates(holds=((0, 0), (1, 0), (1, 1))))
    assert found["evidence"] == pytest.approx([1.0, 0.25, 0.0])


def test_log_lift_follows_the_published_formula_and_is_neutral_for_the_unheld():
    found = features(candidates(holds=((0, 0), (1, 1)), popularity=(5, 5, 0), visible=10))
    expected = [np.log((ev + 0.25 * 0.5 + 0.02) / (1.25 * 0.5 + 0.02)) for ev in (0.75, 0.25)]
    assert found["log_lift"] == pytest.approx([*expected, 0.0])
    assert found["popularity"] == pytest.approx([np.log(6), np.log(6), 0.0])


def test_a_candidate_already_owned_does_not_speak_for_itself():
    alone = features(candidates(ids=(11, 2, 3), own=(11,)))
    assert [alone[name][0] for name in OWN] == [0.0, 0.0, 0.0]
    beside = features(candidates(ids=(11, 2, 3), own=(11, 12)))
    # what is left is the thing at 90 degrees
    assert [beside[name][0] for name in OWN] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    assert beside["own_centroid"][1] == pytest.approx(0.5**0.5)


def test_repeated_candidates_get_equal_values():
    given_ = candidates(ids=(1, 2, 1), holds=((0, 0), (0, 2)))
    same = replace(given_, candidate_vectors=VectorView(given_.candidate_vectors.matrix, np.array([0, 1, 0], np.int32)))
    found = features(same)
    assert all(column[0] == column[2] for column in found.values())
    scores = rank(found, DEFAULT_WEIGHTS)
    assert scores[0] == scores[2]


def test_repeated_pairs_count_once():
    once, twice = features(candidates(holds=((0, 0),))), features(candidates(holds=((0, 0), (0, 0))))
    assert once["evidence"].tolist() == twice["evidence"].tolist()


def test_facets_level_owners_count_only_together():
    facets = (Level.FACETS,) * 4
    weight = (0.25,) * 4
    two = features(candidates(holds=((0, 0), (1, 0)), weight=weight, level=facets, popularity=(2, 0, 0)))
    assert two["evidence"][0] == two["popularity"][0] == two["log_lift"][0] == 0.0
    three = features(candidates(holds=((0, 0), (1, 0), (2, 0)), weight=weight, level=facets, popularity=(3, 0, 0)))
    assert three["evidence"][0] == pytest.approx(0.75)
    stricter = features(
        candidates(holds=((0, 0), (1, 0), (2, 0)), weight=weight, level=facets, popularity=(3, 0, 0)),
        min_contributors=4,
    )
    assert stricter["evidence"][0] == stricter["popularity"][0] == 0.0


def test_one_facets_level_owner_changes_nothing_beside_record_sharers():
    level = (Level.RECORDS, Level.RECORDS, Level.FACETS)
    weight = (0.4, 0.4, 0.2)
    without = features(candidates(holds=((0, 0), (1, 0)), weight=weight, level=level, popularity=(2, 0, 0)))
    with_one = features(candidates(holds=((0, 0), (1, 0), (2, 0)), weight=weight, level=level, popularity=(2, 0, 0)))
    assert with_one["evidence"].tolist() == without["evidence"].tolist()


def test_few_anonymous_holders_do_not_show_as_popularity():
    found = features(candidates(holds=(), popularity=(2, 3, 0)))
    assert found["popularity"] == pytest.approx([0.0, np.log(4), 0.0])


def test_neighbours_that_permit_nothing_never_count():
    found = features(candidates(holds=((0, 0), (1, 0)), level=(Level.NONE, Level.NONE), popularity=(0, 0, 0)))
    assert found["evidence"].tolist() == [0.0, 0.0, 0.0]


def test_nothing_known_gives_zeros_and_equal_scores():
    empty = Candidates(
        ids=np.array([1, 2]),
        own=Edges.empty(),
        own_vectors=view(),
        candidate_vectors=view(None, None),
        neighbors=np.zeros(0, np.int64),
        neighbor_weight=np.zeros(0),
        neighbor_level=np.zeros(0, np.int8),
        hold_neighbor=np.zeros(0, np.int32),
        hold_candidate=np.zeros(0, np.int32),
        hold_weight=np.zeros(0),
        popularity=np.zeros(2),
        owners_visible=1,
    )
    found = features(empty)
    assert set(found) == {*OWN, *SHARED}
    assert all(column.tolist() == [0.0, 0.0] for column in found.values())
    assert rank(found, DEFAULT_WEIGHTS).tolist() == [0.0, 0.0]


def test_a_candidate_without_a_vector_is_neutral_on_the_own_side():
    given_ = candidates()
    found = features(replace(given_, candidate_vectors=view((1, 0), None, (-1, 0))))
    assert [found[name][1] for name in OWN] == [0.0, 0.0, 0.0]


def test_no_candidates_is_no_error():
    found = features(candidates(ids=(), holds=()))
    assert all(len(column) == 0 for column in found.values())
    assert rank(found, DEFAULT_WEIGHTS).shape == (0,)


def test_a_minimum_of_no_contributors_is_refused():
    with pytest.raises(InputError):
        features(candidates(), min_contributors=0)


def test_rank_sums_standardised_columns():
    columns = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([5.0, 5.0, 5.0])}
    z = np.array([-1.0, 0.0, 1.0]) * 1.5**0.5
    assert rank(columns, {"a": 2.0, "b": 9.0, "missing": 1.0}) == pytest.approx(2 * z)


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_bad_weights_are_refused_by_name(weight):
    with pytest.raises(InputError, match="evidence"):
        rank({"evidence": np.array([0.0, 1.0])}, {"evidence": weight})


def test_columns_of_different_length_are_refused():
    with pytest.raises(InputError):
        rank({"a": np.zeros(2), "b": np.zeros(3)}, {"a": 1.0})


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(0, 12), elements=st.floats(allow_nan=True, allow_infinity=True, width=64)))
def test_standardised_columns_are_finite_and_centred(column):
    found = standardise(column)
    assert np.isfinite(found).all()
    assert abs(found.sum()) < 1e-6 * max(len(found), 1)
    assert np.isfinite(rank({"x": column}, {"x": 3.0})).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_features_are_finite_and_within_their_bounds(seed):
    random = np.random.default_rng(seed)
    size, held, near = (int(random.integers(0, 6)) for _ in range(3))
    matrix = random.normal(size=(4, 3)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    pairs = int(random.integers(0, 8)) if size and near else 0
    found = features(
        Candidates(
            ids=random.integers(0, 5, size),
            own=edges(*random.permutation(8)[:held].tolist()),
            own_vectors=VectorView(matrix, random.integers(-1, 4, held).astype(np.int32)),
            candidate_vectors=VectorView(matrix, random.integers(-1, 4, size).astype(np.int32)),
            neighbors=np.arange(near),
            neighbor_weight=random.random(near),
            neighbor_level=random.integers(0, 3, near).astype(np.int8),
            hold_neighbor=random.integers(0, max(near, 1), pairs).astype(np.int32),
            hold_candidate=random.integers(0, max(size, 1), pairs).astype(np.int32),
            hold_weight=np.ones(pairs),
            popularity=random.integers(0, 9, size).astype(np.float64),
            owners_visible=int(random.integers(1, 6)),
        )
    )
    assert all(column.shape == (size,) and np.isfinite(column).all() for column in found.values())
    assert all((np.abs(found[name]) <= 1 + 1e-6).all() for name in OWN)
    assert ((found["evidence"] >= 0) & (found["evidence"] <= 1)).all()


def test_default_weights_cover_every_feature_and_are_not_negative():
    assert set(DEFAULT_WEIGHTS) == {*OWN, *SHARED}
    assert all(weight >= 0 for weight in DEFAULT_WEIGHTS.values())


def test_the_rationale_names_what_the_evidence_shows():
    raw = {"own_centroid": 0.4, "evidence": 0.3, "log_lift": 0.8}
    assert rationale(raw, holders=2) == (
        "2 similar owners have it, more than among everybody; it is like the entity's own things"
    )
    assert rationale({"evidence": 0.1}, holders=1) == "1 similar owner has it"
    assert "several" in rationale({"evidence": 0.3}, holders=0)
    assert rationale({}, holders=0) == "nothing known speaks for or against it"
