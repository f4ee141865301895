"""Intervals of differences: the published examples, their coverage, and a fair, unforeseeable draw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collab_layer.stages.experiment import LEAST, difference, held_out, paired, request, wilson

COUNT = st.integers(0, 60)


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [((56, 70, 48, 80), 0.0524, 0.3339), ((9, 10, 3, 10), 0.1705, 0.8090), ((10, 10, 0, 10), 0.6075, 1.0)],
)
def test_two_samples_as_newcombe_prints_them(counts, low, high):
    found = difference(*counts)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_a_rate_as_wilson_bounds_it():
    assert [round(bound, 4) for bound in wilson(81, 263)] == [0.2553, 0.3662]
    assert wilson(0, 0) == (0.0, 1.0)


@given(COUNT, COUNT, COUNT, COUNT)
def test_a_paired_difference_lies_in_its_interval_and_turns_with_its_sides(both, won, lost, neither):
    found, turned = paired(both, won, lost, neither), paired(both, lost, won, neither)
    assert -1 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1 + 1e-12
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


@pytest.mark.parametrize("rates", [(0.3, 0.1, 0.1, 0.5), (0.05, 0.2, 0.1, 0.65), (0.0, 0.3, 0.3, 0.4)])
@pytest.mark.parametrize("cases", [10, 30, 100])
def test_a_paired_interval_holds_the_truth_about_19_times_in_20(rates, cases):
    draws = np.random.default_rng(0).multinomial(cases, rates, size=2_000)
    truth = rates[1] - rates[2]
    inside = [found.low <= truth <= found.high for found in (paired(*map(int, draw)) for draw in draws)]
    assert 0.92 <= np.mean(inside) <= 1.0


def ever_muted(rates, choices=60, owners=400):
    """Share of owners whose upper bound is below 0 at any of the looks after each choice."""
    kinds = np.random.default_rng(1).choice(4, p=rates, size=(owners, choices))
    count = 0
    for mine in kinds:
        seen = np.cumsum(np.eye(4, dtype=int)[mine], axis=0)[LEAST - 1 :]
        count += any(paired(*map(int, so_far)).high < 0 for so_far in seen)
    return count / owners


def test_who_is_hurt_is_found_and_few_others_are_mistaken_for_it():
    """Looked at after every choice, as a worker would at worst."""
    assert ever_muted((0.2, 0.05, 0.35, 0.4)) > 0.9
    assert ever_muted((0.3, 0.1, 0.1, 0.5)) < 0.15
    assert ever_muted((0.2, 0.3, 0.1, 0.4)) < 0.02


def test_a_draw_is_fair_and_depends_on_the_secret():
    drawn = [held_out(request("secret", f"user:{n}", 19_000, "a\0b"), 0.05) for n in range(20_000)]
    assert 0.044 <= np.mean(drawn) <= 0.056
    again = [held_out(request("secret", f"user:{n}", 19_000, "a\0b"), 0.05) for n in range(20_000)]
    other = [held_out(request("other", f"user:{n}", 19_000, "a\0b"), 0.05) for n in range(20_000)]
    assert drawn == again
    assert 0 < sum(one and two for one, two in zip(drawn, other, strict=True)) < 0.2 * sum(drawn)
    assert not any(held_out(request("secret", f"user:{n}", 1, ""), 0.0) for n in range(100))
    assert all(0 <= request("", "", day, "") < 2**63 for day in range(100))
