from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.errors import InputError
from collab_layer.stages.fit import MIN_CASES, Case, fit, fit_gated, hit
from collab_layer.stages.rank import DEFAULT_WEIGHTS, OWN, standardise

NAMES = ("own_centroid", "evidence", "noise")


def cases(count: int, truth: dict[str, float], seed: int = 0, size: int = 10) -> list[Case]:
    """Lists whose choice follows a conditional logit with the weights of `truth`."""
    random = np.random.default_rng(seed)
    out: list[Case] = []
    for _ in range(count):
        columns = {name: random.normal(size=size) for name in NAMES}
        score = sum(truth.get(name, 0.0) * standardise(column) for name, column in columns.items())
        out.append(Case(columns, int(np.argmax(score + random.gumbel(size=size)))))
    return out


def loss(weights: dict[str, float], given_: list[Case], l2: float) -> float:
    total = 0.5 * l2 * sum(weight**2 for weight in weights.values())
    for case in given_:
        score = sum(weight * standardise(case.columns[name]) for name, weight in weights.items())
        total += float(np.log(np.exp(score).sum()) - score[case.chosen])
    return total


def test_weights_of_synthetic_choices_are_found_again():
    found = fit(cases(3000, {"own_centroid": 0.5, "evidence": 1.2}), features=NAMES)
    assert found["own_centroid"] == pytest.approx(0.5, abs=0.08)
    assert found["evidence"] == pytest.approx(1.2, abs=0.08)
    assert found["noise"] < 0.08


def test_a_feature_that_speaks_against_the_choice_gets_zero_never_less():
    found = fit(cases(400, {"own_centroid": 1.0, "evidence": -1.0}), features=NAMES)
    assert found["evidence"] == 0.0
    assert found["own_centroid"] > 0.5


def test_no_small_move_within_the_bounds_is_better():
    given_ = cases(200, {"own_centroid": 0.4, "evidence": -0.3, "noise": 0.1}, seed=3)
    found = fit(given_, features=NAMES, l2=2.0)
    best = loss(found, given_, 2.0)
    for name in NAMES:
        for move in (-1e-3, 1e-3):
            tried = {**found, name: max(0.0, found[name] + move)}
            assert loss(tried, given_, 2.0) >= best - 1e-7


def test_the_order_of_cases_does_not_matter():
    given_ = cases(60, {"evidence": 1.0})
    one, two = fit(given_, features=NAMES), fit(given_[::-1], features=NAMES)
    assert one == pytest.approx(two, abs=1e-6)


def test_too_few_cases_keep_the_defaults():
    given_ = cases(MIN_CASES - 1, {"evidence": 5.0})
    assert fit(given_, features=OWN) == {name: DEFAULT_WEIGHTS[name] for name in OWN}
    assert fit([]) == dict(DEFAULT_WEIGHTS)


def test_lists_of_different_length_and_missing_features_are_fine():
    mixed = cases(40, {"evidence": 2.0}, size=4) + cases(40, {"evidence": 2.0}, seed=1, size=12)
    found = fit(mixed, features=("evidence", "absent"))
    assert found["evidence"] > 1.0
    assert found["absent"] == 0.0


def test_lists_without_a_choice_are_left_out():
    single = Case({"evidence": np.array([1.0])}, 0)
    assert fit([single] * 100, features=("evidence",)) == {"evidence": DEFAULT_WEIGHTS["evidence"]}


def test_perfectly_separable_cases_stay_finite():
    given_ = [Case({"evidence": np.array([1.0, 0.0, 0.0])}, 0)] * 200
    assert 0 < fit(given_, features=("evidence",), l2=1e-3)["evidence"] < 50


def test_collinear_features_stay_finite():
    random = np.random.default_rng(0)
    columns = [random.normal(size=5) for _ in range(60)]
    given_ = [Case({"a": column, "b": 2 * column}, int(np.argmax(column))) for column in columns]
    found = fit(given_, features=("a", "b"))
    assert found["a"] == pytest.approx(found["b"], rel=1e-4)


@pytest.mark.parametrize("l2", [0.0, -1.0, float("nan")])
def test_a_penalty_that_is_not_positive_is_refused(l2):
    with pytest.raises(InputError):
        fit(cases(30, {}), features=NAMES, l2=l2)


def test_a_choice_outside_its_list_is_refused():
    with pytest.raises(InputError):
        fit([Case({"evidence": np.zeros(3)}, 3)] * 30, features=("evidence",))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 1e4]))
def test_weights_are_never_negative_and_never_nan(seed, l2):
    random = np.random.default_rng(seed)
    given_: list[Case] = []
    for _ in range(25):
        size = int(random.integers(2, 6))
        columns = {name: random.normal(size=size) * 10.0 ** random.integers(-6, 7) for name in NAMES}
        if random.random() < 0.3:
            columns["noise"][0] = random.choice([np.nan, np.inf, -np.inf])
        given_.append(Case(columns, int(random.integers(size))))
    found = fit(given_, features=NAMES, l2=l2)
    assert all(np.isfinite(weight) and weight >= 0 for weight in found.values())


def test_the_gate_opens_where_sharing_pays():
    found = fit_gated(cases(300, {"own_centroid": 0.3, "evidence": 1.5}), features=NAMES)
    assert found.open
    assert found.low > 0
    assert found.weights["evidence"] > 1.0


def test_the_gate_stays_shut_where_sharing_is_noise():
    found = fit_gated(cases(300, {"own_centroid": 1.5}), features=NAMES)
    assert not found.open
    assert found.weights["evidence"] == found.weights["noise"] == 0.0
    assert found.weights["own_centroid"] > 1.0


def test_the_gate_stays_shut_for_too_few_cases():
    found = fit_gated(cases(5, {"evidence": 5.0}))
    assert not found.open
    assert all(found.weights[name] == 0.0 for name in found.weights if name not in OWN)


def test_repeating_the_same_cases_does_not_open_the_gate():
    weak = cases(60, {"own_centroid": 0.3, "evidence": 0.25}, seed=5)
    repeated, groups = weak * 50, [*range(60)] * 50
    once = fit_gated(weak, features=NAMES)
    grouped = fit_gated(repeated, features=NAMES, groups=groups)
    assert grouped.open == once.open
    assert (grouped.cases, grouped.gain) == (60, once.gain)
    assert grouped.low == pytest.approx(once.low)
    assert grouped.weights == pytest.approx(once.weights, abs=1e-5)


def test_groups_must_match_their_cases():
    with pytest.raises(InputError):
        fit_gated(cases(30, {}), features=NAMES, groups=[0])


def test_a_tie_is_no_hit():
    assert hit(Case({"evidence": np.array([1.0, 1.0, 0.0])}, 0), {"evidence": 1.0}) == 0.0
    assert hit(Case({"evidence": np.array([1.0, 0.5, 0.0])}, 0), {"evidence": 1.0}) == 1.0


def test_a_feature_beside_the_others_counts_only_where_it_pays():
    given_ = cases(300, {"own_centroid": 0.3, "evidence": 1.5})
    twin = [Case({**case.columns, "twin": case.columns["evidence"]}, case.chosen) for case in given_]
    without = fit_gated(given_, features=NAMES)
    found = fit_gated(twin, features=(*NAMES, "twin"), beside=("twin",))
    assert found.weights == pytest.approx({**without.weights, "twin": 0.0})
    assert (found.gain, found.low) == (without.gain, without.low)
    alone = [Case({name: case.columns[name] for name in ("own_centroid", "twin")}, case.chosen) for case in twin]
    paid = fit_gated(alone, features=("own_centroid", "twin"), beside=("twin",))
    assert paid.open
    assert paid.weights["twin"] > 1.0
