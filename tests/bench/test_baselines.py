"""The closed forms are those of their sources, and see only what happened."""

import numpy as np
import pytest

from collab_layer.bench.baselines import RIDGE, Seen, installed, models


def held(users=80, items=30, seed=0):
    random = np.random.default_rng(seed)
    chance = np.where(np.arange(items)[None, :] % 2 == np.arange(users)[:, None] % 2, 0.4, 0.04)
    return (random.random((users, items)) < chance).astype(float)


def seen_of(matrix):
    seen = Seen()
    for user, item in zip(*np.nonzero(matrix), strict=True):
        seen.add(int(user), int(item) + 100)
    seen.fit()
    return seen


def test_ease_solves_its_own_problem():
    matrix = held()
    gram = matrix.T @ matrix
    score = models(matrix)["ease"]
    every = np.arange(matrix.shape[1])
    weights = np.stack([score(every[at : at + 1], every) for at in every.tolist()])
    assert np.abs(np.diag(weights)).max() == 0
    slope = gram @ weights - gram + RIDGE * weights  # 0 off the diagonal at the minimum
    np.fill_diagonal(slope, 0.0)
    assert np.abs(slope).max() < 1e-8


@pytest.mark.parametrize("name", ["itemknn", "ease", "gfcf", "ials"])
def test_each_prefers_things_of_the_user_s_taste(name):
    if name == "ials" and not installed():
        pytest.skip("implicit is not installed")
    matrix = held()
    seen = seen_of(matrix)
    own = [(np.flatnonzero(matrix[user]) + 100).tolist() for user in range(0, 80, 2)]
    right = [seen.scores(mine, [100 + item for item in range(30)])[name] for mine in own]
    assert np.mean([row[::2].mean() > row[1::2].mean() for row in right]) > 0.9


def test_an_item_it_does_not_know_scores_nothing():
    found = seen_of(held()).scores([101, 103, 9], [100, 7])
    assert all(column[1] == 0.0 for name, column in found.items() if name != "random")


def test_what_is_not_installed_is_left_out():
    assert ("ials" in models(held())) == installed()
