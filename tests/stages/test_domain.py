"""What candidates are like in numbers, and which rules never or always fire on them."""

from __future__ import annotations

import numpy as np
import pytest

from collab_layer.builtin.domains import DOMAINS
from collab_layer.stages import domain
from collab_layer.stages.curate import permitted
from collab_layer.stages.features import BUILTIN
from collab_layer.stages.firing import firing
from collab_layer.stages.rule_diff import difference
from collab_layer.stages.rules import load
from collab_layer.types.graph import Edges, Neighborhood, VectorView

DAY = 86_400_000_000
PRESETS = {one.name: load(one.tree) for one in DOMAINS}


def pool(owner: int, *, others: int = 5, own: int = 4, permit: int = 2, topics: bool = True) -> Neighborhood:
    """Owners 100, 101, … of whom the n-th holds n of the focus's targets 0, 1, …; the first half are topics."""
    holds = [(min(n, own - 1), n) for n in range(others)]
    pairs = [(target, row) for most, row in holds for target in range(most + 1)]
    targets, rows = (np.array(part, np.int32) for part in zip(*pairs, strict=True))
    size = others + own
    last = np.full(size, 90 * DAY)
    return Neighborhood(
        focus=900 + owner,
        now=100 * DAY,
        own=Edges(np.arange(own), np.ones(own), np.ones(own, np.int64), np.full(own, 95 * DAY)),
        own_topic=np.arange(own) < (own // 2 if topics else 0),
        own_idf=np.ones(own),
        own_degree=own,
        ids=np.concatenate([np.arange(100, 100 + others), np.arange(own)]),
        is_owner=np.arange(size) < others,
        level=np.where(np.arange(size) < others, permit, 2).astype(np.int8),
        degree=np.arange(1, size + 1),
        last=last,
        pair_own=targets,
        pair_candidate=rows,
        pair_weight=np.ones(len(rows)),
        pair_last=np.full(len(rows), 80 * DAY),
        group=np.zeros(size, np.bool_),
        peer=np.zeros(size),
        vectors=VectorView(np.zeros((0, 3), np.float32), np.full(size, -1, np.int32)),
    )


def looked(count: int = 4, names: dict[int, str] | None = None, **more) -> domain.Sample:
    named = {0: "кино", 1: "drama"} if names is None else names
    parts = [domain.sample(permitted(pool(owner, **more)), BUILTIN.values(), named) for owner in range(count)]
    return domain.joined(parts)


def columns(**given: list[float]) -> dict[str, np.ndarray]:
    size = len(next(iter(given.values())))
    zeros = {name: np.zeros(size) for name in BUILTIN}
    return zeros | {name: np.array(values, np.float64) for name, values in given.items()}


# -- statistics ------------------------------------------------------------------------


def test_facts_count_owners_and_things_apart():
    facts = domain.facts(looked(), tuple(BUILTIN.values()), minimum=3)
    shared = next(one for one in facts.features if one.name == "co_interaction_count")
    assert shared.owners is not None
    assert shared.owners.quantiles == (1, 2, 3, 4, 4)
    assert shared.things is not None
    assert shared.things.constant
    assert (facts.owners, facts.candidates) == (4, 4 * 9)
    assert facts.density == pytest.approx(14 / 20)
    assert facts.topic_share == 0.5


def test_quantiles_are_values_that_occur():
    spread = domain.spread(np.array([0.0, 0.0, 1.0, 5.0]))
    assert spread.quantiles == (0, 0, 0, 1, 5)
    assert spread.zeros == 0.5


def test_figures_need_several_pools_behind_them():
    facts = domain.facts(looked(2), tuple(BUILTIN.values()), minimum=3)
    assert facts.pool is facts.owner_degree is facts.thing_degree is None
    assert all(one.owners is None and one.things is None for one in facts.features)


def test_a_topic_is_named_only_if_enough_owners_hold_it():
    assert domain.facts(looked(others=3), (), minimum=3).topics == ("кино",)
    assert domain.facts(looked(others=5), (), minimum=3).topics == ("кино", "drama")
    assert domain.facts(looked(others=2), (), minimum=3).topics == ()


def test_who_shares_nothing_holds_no_topic_and_moves_no_figure():
    sample = looked(permit=0)
    assert not sample.is_owner.any()
    assert domain.facts(sample, tuple(BUILTIN.values()), minimum=3).topics == ()


def test_two_topics_of_the_same_name_do_not_add_up_to_one_that_is_common():
    parts = [domain.sample(pool(0, others=2, own=4), (BUILTIN["is_owner"], BUILTIN["activity"]), {0: "x", 1: "x"})]
    held = domain.joined(parts).holders
    assert {topic: len(ids) for topic, ids in held.items()} == {0: 2, 1: 1}
    assert domain.facts(domain.joined(parts), (), minimum=3).topics == ()


def test_a_large_pool_is_sampled_evenly():
    sample = domain.sample(pool(0, others=5000), BUILTIN.values(), {}, rows=50)
    assert sample.is_owner.sum() == 50
    assert sample.columns["activity"][:50].max() == 5000
    assert sample.sizes.tolist() == [5004]


# -- firing ----------------------------------------------------------------------------


def released() -> dict[str, np.ndarray]:
    """Candidates as the released code of MemRec sees them: the features of its thresholds are constants.

    Things have metadata_overlap 0.5, owners 0.0; memory_similarity is 0.0 for all.
    """
    random = np.random.default_rng(7)
    things = np.arange(400) % 2 == 0
    return columns(
        is_owner=(~things).astype(float).tolist(),
        metadata_overlap=np.where(things, 0.5, 0.0).tolist(),
        memory_similarity=np.zeros(400).tolist(),
        edge_weight=random.random(400).tolist(),
        co_interaction_count=np.where(things, 0, random.integers(1, 30, 400)).tolist(),
        recency_days=np.where(things, random.random(400) * 365, 0).tolist(),
    )


DEAD = [
    ("books", "`metadata_overlap` > 0.6"),
    ("books", "`memory_similarity` > 0.5"),
    ("goodreads", "`metadata_overlap` > 0.8"),
    ("movietv", "`metadata_overlap` > 0.6"),
    ("yelp", "`metadata_overlap` > 0.85"),
    ("yelp", "`metadata_overlap` > 0.7 and"),
]


@pytest.mark.parametrize(("preset", "threshold"), DEAD)
def test_the_papers_thresholds_never_fire_on_the_constants_of_its_released_code(preset, threshold):
    fires = firing(PRESETS[preset], released())
    [rule] = [one for one in fires if threshold in one.words and not one.words.startswith("score")][:1]
    assert rule.fires == 0
    assert rule.finding is not None
    assert rule.finding.startswith("it never fires")
    assert "for all of them" in rule.finding


@pytest.mark.parametrize("preset", ["books", "goodreads", "yelp"])
def test_similarity_that_is_always_zero_changes_nothing(preset):
    fires = firing(PRESETS[preset], released())
    similar = [one for one in fires if "`memory_similarity` (at least 0)" in one.words]
    assert similar
    assert all(one.acts == 0 and one.finding for one in similar)
    assert any(one.finding == "it fires but changes nothing" for one in similar)


@pytest.mark.parametrize("preset", ["books", "goodreads", "movietv", "yelp"])
def test_the_same_presets_do_fire_where_features_are_real(preset):
    random = np.random.default_rng(8)
    given = released() | {
        "metadata_overlap": random.random(400),
        "memory_similarity": random.random(400) * 2 - 1,
        "recency_days": random.random(400) * 900,
    }
    given["co_interaction_count"] = random.integers(0, 30, 400).astype(float)
    assert [one.finding for one in firing(PRESETS[preset], given) if one.finding] == []


def rule(*then, when=None):
    return {"name": "t", "version": 1, "score": [{"feature": "edge_weight"}], "rules": [_rule(then, when)]}


def _rule(then, when):
    return {"then": list(then)} | ({"when": when} if when else {})


def test_a_rule_that_fires_for_everybody_of_its_kind_is_found():
    given = columns(is_owner=[1, 1, 0, 0], co_interaction_count=[2, 9, 0, 0], edge_weight=[0.1, 0.2, 0.3, 0.4])
    owners = {"feature": "is_owner", "op": "==", "value": 1}
    shared = {"feature": "co_interaction_count", "op": ">", "value": 0}
    [_, found] = firing(load(rule({"multiply": 2}, when={"all": [owners, shared]})), given)
    assert (found.fires, found.acts) == (1, 1)
    assert found.finding == "it fires for every candidate of its kind"
    [_, kind] = firing(load(rule({"multiply": 2}, when=owners)), given)
    assert kind.finding is None, "a rule about owners is meant for all of them"


def test_shares_are_of_the_kind_a_rule_is_about():
    given = columns(is_owner=[1, 1, 0, 0], co_interaction_count=[2, 9, 0, 0], edge_weight=[0.1, 0.2, 0.3, 0.4])
    owners = {"feature": "is_owner", "op": "==", "value": 1}
    many = {"feature": "co_interaction_count", "op": ">", "value": 5}
    [_, found] = firing(load(rule({"drop": True}, when={"all": [owners, many]})), given)
    assert (found.fires, found.finding) == (0.5, None)


def test_a_decay_that_begins_beyond_the_oldest_is_found():
    given = columns(edge_weight=[0.1, 0.2], recency_days=[3, 60])
    beyond = rule({"decay": {"feature": "recency_days", "rate": 0.1, "over": 365}})
    assert firing(load(beyond), given)[1].finding == "it fires but changes nothing"
    within = rule({"decay": {"feature": "recency_days", "rate": 0.1, "over": 30}})
    assert firing(load(within), given)[1].acts == 0.5


def test_conditions_that_never_meet_are_found():
    given = columns(edge_weight=[0.1, 0.9], activity=[1, 9])
    parts = [{"feature": "edge_weight", "op": ">", "value": 0.5}, {"feature": "activity", "op": "<", "value": 5}]
    [_, found] = firing(load(rule({"multiply": 2}, when={"all": parts})), given)
    assert found.finding == "it never fires: its conditions do not meet"


def test_a_part_of_the_score_that_is_the_same_for_all_is_found():
    given = columns(edge_weight=[0.5, 0.5])
    [found] = firing(load({"name": "t", "version": 1, "score": [{"feature": "edge_weight"}]}), given)
    assert found.finding == "it is 0.5 for every candidate, so it tells nobody from another"


# -- differences -----------------------------------------------------------------------


def test_a_difference_says_what_came_what_went_and_what_changed():
    more = {"feature": "edge_weight", "op": ">", "value": 0.5}
    before = load(rule({"multiply": 2}, when=more))
    after = load(
        {
            "name": "other",
            "version": 1,
            "score": [{"feature": "edge_weight"}],
            "rules": [
                {"when": more | {"value": 0.7}, "then": [{"multiply": 2}]},
                {"then": [{"decay": {"feature": "recency_days", "rate": 0.1}}]},
            ],
        }
    )
    found = difference(before, after)
    assert found.changed == (("if `edge_weight` > 0.5: multiply by 2", "if `edge_weight` > 0.7: multiply by 2"),)
    assert len(found.added) == 1
    assert "recency_days" in found.added[0]
    assert found.removed == ()
    assert difference(after, after) == type(found)((), (), ())
