from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages.company import co_holders, weights
from collab_layer.types.graph import Company
from collab_layer.types.scope import Level

from .test_few import around


def company(*pairs: tuple[int, int], weight: tuple[float, ...], level: Level = Level.RECORDS) -> Company:
    owner, candidate = np.array(pairs, np.int32).reshape(-1, 2).T
    return Company(np.array(weight), np.full(len(weight), level, np.int8), owner, candidate)


def test_a_thing_that_holders_of_own_things_hold_counts_more_the_fewer_others_hold_it():
    found = co_holders(company((0, 0), (1, 0), (0, 1), weight=(3.0, 1.0)), np.array([4.0, 1.0, 9.0]), 3)
    assert found == pytest.approx([1.0 / 2, 0.75, 0.0])


def test_a_pair_that_is_there_twice_counts_once():
    once, twice = company((0, 0), weight=(1.0, 1.0)), company((0, 0), (0, 0), weight=(1.0, 1.0))
    holders = np.array([1.0])
    assert co_holders(once, holders, 1).tolist() == co_holders(twice, holders, 1).tolist()


def test_who_shares_facets_only_counts_where_enough_agree():
    two = company((0, 0), (1, 0), weight=(1.0, 1.0, 1.0), level=Level.FACETS)
    three = company((0, 0), (1, 0), (2, 0), weight=(1.0, 1.0, 1.0), level=Level.FACETS)
    assert co_holders(two, np.array([1.0]), 3).tolist() == [0.0]
    assert co_holders(three, np.array([1.0]), 3).tolist() == [1.0]
    assert co_holders(three, np.array([1.0]), 4).tolist() == [0.0]


def test_nobody_says_nothing():
    assert co_holders(Company.empty(), np.zeros(2), 3).tolist() == [0.0, 0.0]
    assert co_holders(Company.empty(), np.zeros(0), 3).shape == (0,)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_who_shares_nothing_weighs_nothing_and_order_changes_no_bit(seed):
    random = np.random.default_rng(seed)
    pool = around(random, own=int(random.integers(0, 6)), owners=int(random.integers(0, 9)))
    found = weights(pool)
    assert found.shape == (len(pool),)
    assert np.isfinite(found).all()
    shared = np.bincount(pool.pair_candidate, minlength=len(pool))
    assert ((found > 0) == (shared > 0)).all()
    order = random.permutation(len(pool.pair_own))
    turned = replace(pool, pair_own=pool.pair_own[order], pair_candidate=pool.pair_candidate[order])
    assert weights(turned).tolist() == found.tolist()


def test_being_small_gains_an_account_nothing():
    """An account that holds the shared thing and little else weighs no more than the median owner does."""
    pool = around(np.random.default_rng(0), own=1, owners=40)
    holding = np.isin(np.arange(40), pool.pair_candidate)
    degree = np.where(holding, 50, 1)
    small = int(np.flatnonzero(holding)[0])
    degree[small] = 2
    found = weights(replace(pool, degree=degree))
    other = int(np.flatnonzero(holding)[1])
    assert found[small] == pytest.approx(found[other])
