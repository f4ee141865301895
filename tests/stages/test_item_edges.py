"""Edges between things are those of the formulas, and rest on no small crowd."""

import sys

import numpy as np
import pytest

from collab_layer.errors import InputError
from collab_layer.stages.item_edges import Holdings, item_edges
from collab_layer.types.graph import EdgeMatrix, ItemEdges


def pairs(matrix, facets=()):
    owner, thing = np.nonzero(matrix)
    return Holdings(owner + 100, thing + 1000, np.isin(owner, list(facets)))


def some(owners=60, things=90, seed=0):
    random = np.random.default_rng(seed)
    chance = np.where(np.arange(things)[None, :] % 3 == np.arange(owners)[:, None] % 3, 0.4, 0.05)
    return (random.random((owners, things)) < chance).astype(int)


def as_dict(edges: ItemEdges | EdgeMatrix):
    if isinstance(edges, EdgeMatrix):
        to, other = np.nonzero(edges.weight)
        ends = zip(edges.things[to].tolist(), edges.things[other].tolist(), strict=True)
        return dict(zip(ends, edges.weight[to, other].astype(float).tolist(), strict=True))
    return dict(zip(zip(edges.thing.tolist(), edges.other.tolist(), strict=True), edges.weight.tolist(), strict=True))


def test_the_closed_form_is_the_one_of_its_source():
    held = some()
    held = held[:, held.sum(axis=0) >= 2]
    count = held.sum(axis=1)
    weight = np.minimum(np.sqrt(np.median(count) / count), 1.0)
    gram = (held.T * np.round(weight * 1024) / 1024) @ held
    inverse = np.linalg.inv(gram + 30.0 * np.eye(len(gram)))  # half of 60 owners
    weights = -inverse / np.diag(inverse)
    found = as_dict(item_edges(pairs(held), method="ease"))
    for (thing, other), weight in found.items():
        assert weight == pytest.approx(weights[other - 1000, thing - 1000], rel=1e-3, abs=1e-6)
    np.fill_diagonal(weights, 0.0)
    assert len(found) == np.count_nonzero(weights.astype(np.float16))


def test_what_own_things_say_is_summed_over_all_of_them():
    held = some()
    edges = item_edges(pairs(held), method="ease")
    own = edges.things[[3, 5, 8, 13]]
    found = edges.into(np.append(edges.things[:6], 7), np.append(own, 9))
    said = np.bincount(found.candidate, weights=found.weight, minlength=7)
    wanted = edges.weight[:6][:, [3, 5, 8, 13]].astype(float).sum(axis=1)
    assert said[:6] == pytest.approx(wanted)
    assert said[6] == 0
    assert set(found.own.tolist()) == {0, 1, 2, 3}
    assert len(edges.into(edges.things[:2], np.zeros(0, np.int64)).weight) == 0


def test_who_holds_much_weighs_less_and_nobody_more_than_one_owner():
    held = np.zeros((31, 40), int)
    held[:30, :8] = np.arange(30)[:, None] % 3 != np.arange(8)[None, :] % 3
    edge = (1000, 1001)
    base = as_dict(item_edges(pairs(held), method="ease"))[edge]
    held[30, :2] = 1
    light = as_dict(item_edges(pairs(held), method="ease"))[edge]
    held[30, :] = held[:30].any(axis=0)  # as many things as all others hold together
    held[30, :2] = 1
    heavy = as_dict(item_edges(pairs(held), method="ease"))[edge]
    assert heavy < light
    assert base < light


def test_neighbourhoods_keep_the_strongest_cosines():
    held = some(things=40)
    found = item_edges(pairs(held), method="knn")
    both, count = held.T @ held, held.sum(axis=0)
    thing, other = int(found.thing[0]) - 1000, int(found.other[0]) - 1000
    n = both[other, thing]
    assert found.weight[0] == pytest.approx(n / np.sqrt(count[thing] * count[other]) * n / (n + 10), rel=1e-3)
    assert max(np.bincount(found.thing)) <= 32
    assert all(np.diff(found.weight[found.thing == found.thing[0]]) <= 0)


@pytest.mark.parametrize("method", ["ease", "knn"])
def test_without_scipy_the_same_edges_are_made(method, monkeypatch):
    pytest.importorskip("scipy")
    held = pairs(some(), facets=range(30))
    fast = item_edges(held, method=method)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    plain = item_edges(held, method=method)
    assert as_dict(plain) == as_dict(fast)


@pytest.mark.parametrize("method", ["ease", "knn"])
def test_owners_of_facets_move_nothing_until_more_than_the_minimum_hold_both(method):
    held = np.zeros((4, 2), int)
    held[:3] = 1
    everyone = range(4)
    assert len(item_edges(pairs(held, everyone), minimum=3, method=method)) == 0
    held[3] = 1
    assert len(item_edges(pairs(held, everyone), minimum=3, method=method)) == 2


def test_a_small_crowd_beside_a_large_one_changes_no_edge():
    held = some()
    base = item_edges(pairs(held))
    few = np.vstack([held, np.zeros((3, held.shape[1]), int)])
    few[60:, :2] = 1
    watched = as_dict(item_edges(pairs(few, facets=[60, 61, 62]), minimum=3))
    ridge = {key: value for key, value in as_dict(base).items() if value > 0.01}
    assert all(watched[key] == pytest.approx(value, rel=0.15) for key, value in ridge.items())


def test_counts_left_out_never_break_the_inverse():
    held = some(owners=30, things=60, seed=3)
    found = item_edges(pairs(held, range(30)), minimum=5, method="ease")
    assert np.all(np.isfinite(found.weight))


def test_a_pair_told_twice_counts_once():
    held = pairs(some())
    again = Holdings(*(np.concatenate([column, column]) for column in (held.owner, held.thing, held.facets)))
    assert as_dict(item_edges(again)) == as_dict(item_edges(held))


def test_of_nothing_nothing_is_made():
    none = np.zeros(0, np.int64)
    assert len(item_edges(Holdings(none, none, none.astype(bool)))) == 0
    assert len(item_edges(Holdings(np.array([1]), np.array([2]), np.array([False])))) == 0
    with pytest.raises(InputError):
        item_edges(pairs(some()), minimum=0)


@pytest.mark.parametrize("parts", [2, 7, 1_000])
def test_columns_worked_out_apart_are_the_same_edges(parts):
    held = pairs(some(), facets=range(30))
    whole = item_edges(held, method="knn")
    apart = item_edges(held, method="knn", parts=parts)
    for column in ("thing", "other", "weight"):
        assert np.array_equal(getattr(whole, column), getattr(apart, column))
