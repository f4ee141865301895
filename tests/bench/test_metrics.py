from __future__ import annotations

import numpy as np
import pytest

from collab_layer.bench import metrics


def test_places_count_those_before_and_ties_against():
    scores = np.array([[3.0, 1.0, 2.0], [2.0, 3.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert metrics.places(scores).tolist() == [1, 2, 2, 3]


def test_hits_and_gains_by_hand():
    place = np.array([1, 2, 5, 6])
    assert metrics.hits(place).tolist() == [1, 0, 0, 0]
    assert metrics.hits(place, 5).tolist() == [1, 1, 1, 0]
    assert metrics.ndcg(place) == pytest.approx([1.0, 1 / np.log2(3), 1 / np.log2(6), 0.0])


def test_harm_is_the_share_of_hits_that_were_lost():
    before = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    after = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert metrics.harm(before, after).tolist() == [0.5, 0.0, 0.0]


def test_worse_counts_places_that_went_down():
    before, after = np.array([[1, 3], [2, 2]]), np.array([[2, 1], [2, 9]])
    assert metrics.worse(before, after).tolist() == [0.5, 0.5]


def test_lift_is_relative():
    before, after = np.array([1.0, 0.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0, 1.0])
    found = metrics.lift(before, after, 0)
    assert found.value == pytest.approx(0.5)
    assert found.low <= 0.5 <= found.high


def test_pairing_makes_the_interval_narrow():
    random = np.random.default_rng(0)
    before = (random.random(400) < 0.3).astype(float)
    gained = np.where(random.random(400) < 0.1, 1.0, before)
    paired = metrics.lift(before, gained, 0)
    shuffled = metrics.lift(before, random.permutation(gained), 0)
    assert paired.high - paired.low < shuffled.high - shuffled.low
    assert paired.low > 0


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(1)
    covered = 0
    for at in range(200):
        found = metrics.mean((random.random(200) < 0.3).astype(float), at)
        covered += found.low <= 0.3 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_the_same_seed_gives_the_same_interval():
    values = np.random.default_rng(2).random(50)
    assert metrics.mean(values, 7) == metrics.mean(values, 7)


def test_no_hit_before_gives_no_number_to_trust():
    zero = np.zeros(3)
    assert metrics.lift(zero, zero, 0).value == 0.0
    assert metrics.lift(zero, np.ones(3), 0).value == float("inf")
