from __future__ import annotations

import numpy as np
import pytest

from collab_layer.bench.candidates import NEGATIVES, digest, draw, plan
from collab_layer.bench.data import DataSet, load
from collab_layer.errors import DataSetError


@pytest.fixture(params=["sequences", "ratings"])
def data(request) -> DataSet:
    return load(request.getfixturevalue(request.param))


def test_nothing_of_the_target_or_later_is_told_before_it_is_asked(data):
    told: dict[int, list[int]] = {}
    trials = 0
    for step in plan(data, 1):
        for user, event in step.events:
            told.setdefault(user, []).append(event.item)
        for trial in step.trials:
            history = [event.item for event in data.histories[trial.user]]
            known = told[trial.user]
            assert trial.target not in known
            assert known == history[: len(known)]
            assert len(known) <= history.index(trial.target)
            trials += 1
    assert trials > 20


def test_nothing_that_anybody_did_later_is_told_in_a_replay(ratings):
    data = load(ratings)
    for step in plan(data, 1):
        for trial in step.trials:
            moment = next(event.at for event in data.histories[trial.user] if event.item == trial.target)
            assert all(event.at < moment for _, event in step.events)


def test_everything_before_the_target_is_told_first(ratings):
    data = load(ratings)
    told: set[tuple[int, int]] = set()
    for step in plan(data, 1):
        told.update((user, event.item) for user, event in step.events)
        for trial in step.trials:
            moment = next(event.at for event in data.histories[trial.user] if event.item == trial.target)
            before = {(user, e.item) for user, held in data.histories.items() for e in held if e.at < moment}
            assert before == told


def test_last_items_of_everybody_are_hidden_in_a_set_without_a_clock(sequences):
    data = load(sequences)
    first, second = plan(data, 1)
    hidden = {(user, held[at].item) for user, held in data.histories.items() for at in (-2, -1)}
    assert hidden.isdisjoint((user, event.item) for user, event in first.events)
    last = {(user, held[-1].item) for user, held in data.histories.items()}
    assert last.isdisjoint((user, event.item) for user, event in second.events)
    assert {trial.user for trial in first.trials} == set(sorted(data.histories)[::2])
    assert all(trial.fitting for trial in first.trials)
    assert len(second.trials) == len(data.histories)


def test_no_trial_is_both_fitted_on_and_scored(data):
    trials = [trial for step in plan(data, 1) for trial in step.trials]
    fitted = {(trial.user, trial.target) for trial in trials if trial.fitting}
    scored = {(trial.user, trial.target) for trial in trials if not trial.fitting}
    assert fitted
    assert scored
    assert fitted.isdisjoint(scored)


def test_replay_fits_only_on_what_lies_before_what_is_scored(ratings):
    data = load(ratings)
    order = [trial.fitting for step in plan(data, 1) for trial in step.trials]
    assert order == sorted(order, reverse=True)


def test_wrong_candidates_are_never_in_the_users_history(data):
    for step in plan(data, 3):
        for trial in step.trials:
            held = {event.item for event in data.histories[trial.user]}
            for rows in trial.lists.values():
                assert rows.shape == (3, NEGATIVES + 1)
                assert (rows[:, 0] == trial.target).all()
                assert held.isdisjoint(rows[:, 1:].ravel().tolist())
                assert all(len(set(row)) == NEGATIVES + 1 for row in rows.tolist())


def test_the_same_set_gives_the_same_questions(data):
    assert digest(plan(data, 2)) == digest(plan(data, 2))
    assert digest(plan(data, 2)) != digest(plan(data, 3))


def test_seeds_give_different_lists_and_the_first_ones_do_not_depend_on_how_many(sequences):
    data = load(sequences)
    one, three = (plan(data, seeds)[1].trials for seeds in (1, 3))
    assert any((a.lists["uni"][0] != a.lists["uni"][1]).any() for a in three)
    assert all((a.lists["pop"][0] == b.lists["pop"][0]).all() for a, b in zip(one, three, strict=True))


def test_popularity_matched_candidates_lie_within_150_places_of_the_target():
    holders = np.arange(1000, 0, -1)
    for seed in range(20):
        found = draw("pop", 400, holders, np.array([400, 401]), np.random.default_rng(seed))
        assert (np.abs(found - 400) <= 150).all()
        assert 401 not in found


def test_as_many_matched_candidates_are_more_popular_as_are_less():
    random = np.random.default_rng(0)
    holders = np.arange(1000, 0, -1)
    none = np.zeros(0, np.int64)
    above = [(draw("pop", target, holders, none, random) < target).sum() for target in range(200, 800)]
    assert 4.3 < np.mean(above) < 4.7


def test_items_nobody_holds_are_not_drawn():
    holders = np.array([0] * 20 + [5] * 12)
    for kind in ("pop", "uni"):
        assert (draw(kind, 3, holders, np.zeros(0, np.int64), np.random.default_rng(0)) >= 20).all()


def test_a_user_who_holds_all_the_near_ones_gets_the_nearest_of_the_others():
    holders = np.arange(1000, 0, -1)
    held = np.arange(300, 700)
    found = draw("pop", 500, holders, held, np.random.default_rng(0))
    assert set(found.tolist()) <= {*range(290, 300), *range(700, 710)}
    assert len(set(found.tolist())) == NEGATIVES


def test_a_set_with_too_few_items_is_refused():
    with pytest.raises(DataSetError):
        draw("uni", 0, np.ones(9, np.int64), np.zeros(0, np.int64), np.random.default_rng(0))
