from __future__ import annotations

import copy
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.builtin.domains import DOMAINS
from collab_layer.errors import InvalidRuleError
from collab_layer.plugins.specs import FeatureSpec
from collab_layer.stages.features import BUILTIN
from collab_layer.stages.rules import Scorer, load

DOC = Path(__file__).parents[2] / "docs" / "rules.md"
TREES = {domain.name: domain.tree for domain in DOMAINS}


def tree(score=None, rules=(), **more):
    return {"name": "t", "version": 1, "score": score or [{"feature": "edge_weight"}], "rules": list(rules)} | more


def when(feature, op, value):
    return {"feature": feature, "op": op, "value": value}


def scored(source, **given: float) -> float:
    scorer = load(source)
    return float(scorer.score({name: np.array([given.get(name, 0.0)]) for name in scorer.features})[0])


# what the parts mean


def test_terms_are_weighted_and_summed():
    score = [{"feature": "edge_weight", "weight": 2}, {"feature": "peer", "scale": 3, "bias": 1}, {"constant": 5}]
    assert scored(tree(score), edge_weight=0.5, peer=-0.5) == pytest.approx(1 + (1 - 1.5) + 5)


def test_a_product_multiplies_factors_of_every_kind():
    product = [
        2,
        {"feature": "peer", "floor": 0, "ceil": 0.5, "bias": 1},
        {"shrink": {"feature": "co_interaction_count", "by": 3}},
        {"decay": {"feature": "recency_days", "rate": 0.1}},
    ]
    got = scored(tree([{"product": product, "weight": 10}]), peer=0.9, co_interaction_count=1, recency_days=2)
    assert got == pytest.approx(10 * 2 * 1.5 * 0.25 * math.exp(-0.2))


@pytest.mark.parametrize(
    ("op", "expected"),
    [(">", [1, 1, 2]), (">=", [1, 2, 2]), ("<", [2, 1, 1]), ("<=", [2, 2, 1]), ("==", [1, 2, 1]), ("!=", [2, 1, 2])],
)
def test_operators_compare_a_feature_with_a_constant(op, expected):
    scorer = load(tree([{"constant": 1}], [{"when": when("peer", op, 0.5), "then": [{"multiply": 2}]}]))
    assert scorer.score({"peer": np.array([0.4, 0.5, 0.6])}).tolist() == expected


@pytest.mark.parametrize(
    ("op", "below", "within", "above"),
    [
        (">", [5, 5], [1, 5], [1, 1]),
        (">=", [5, 5], [1, 5], [1, 1]),
        ("<", [1, 1], [1, 5], [5, 5]),
        ("<=", [1, 1], [1, 5], [5, 5]),
        ("==", [1, 1], [1, 5], [1, 1]),
        ("!=", [5, 5], [1, 5], [5, 5]),
    ],
)
def test_bounds_take_a_condition_on_an_unknown_feature_both_ways(op, below, within, above):
    for value, expected in ((-1.5, below), (0.3, within), (1.5, above)):
        condition = when("memory_similarity", op, value)
        for wrapped in (condition, {"not": {"not": condition}}, {"all": [condition]}, {"any": [condition]}):
            scorer = load(tree([{"constant": 1}], [{"when": wrapped, "then": [{"add": 4}]}]))
            assert [float(side[0]) for side in scorer.bounds({}, 1)] == expected


def test_bounds_of_a_drop_that_may_happen_include_zero():
    rules = [{"when": when("memory_similarity", "<", 0), "then": [{"drop": True}]}]
    assert [float(side[0]) for side in load(tree([{"constant": 3}], rules)).bounds({}, 1)] == [0, 3]
    assert [float(side[0]) for side in load(tree([{"constant": -3}], rules)).bounds({}, 1)] == [-3, 0]


def test_conditions_nest():
    both = {"all": [when("peer", ">", 0), {"any": [when("group", "==", 1), {"not": when("importance", "<", 0.5)}]}]}
    scorer = load(tree([{"constant": 1}], [{"when": both, "then": [{"add": 1}]}]))
    columns = {
        "peer": np.array([1.0, 1.0, 1.0, -1.0]),
        "group": np.array([1.0, 0.0, 0.0, 1.0]),
        "importance": np.array([0.0, 0.7, 0.2, 0.7]),
    }
    assert scorer.score(columns).tolist() == [2, 2, 1, 1]


def test_rules_run_in_the_order_written():
    first = [{"then": [{"add": 1}]}, {"then": [{"multiply": 10}]}]
    assert scored(tree(rules=first), edge_weight=1) == 20
    assert scored(tree(rules=first[::-1]), edge_weight=1) == 11


def test_a_dropped_candidate_stays_at_zero_whatever_follows():
    rules = [{"when": when("group", "==", 1), "then": [{"drop": True}]}, {"then": [{"add": 5}]}]
    assert scored(tree(rules=rules), edge_weight=1, group=1) == 0
    assert scored(tree(rules=rules), edge_weight=1, group=0) == 6


def test_decay_has_no_step_at_its_threshold():
    rules = [{"then": [{"decay": {"feature": "recency_days", "rate": 0.01, "over": 180}}]}]
    before, at, after = (scored(tree(rules=rules), edge_weight=1, recency_days=d) for d in (10, 180, 180.001))
    assert before == at == 1
    assert after == pytest.approx(1, abs=1e-4)
    assert scored(tree(rules=rules), edge_weight=1, recency_days=280) == pytest.approx(math.exp(-1))


def test_weights_and_scores_are_clamped_so_that_nothing_overflows():
    assert scored(tree([{"feature": "edge_weight", "weight": 1e300}]), edge_weight=1) == 1000
    rules = [{"then": [{"multiply": {"feature": "activity", "scale": 1000}}]}] * 60
    assert scored(tree(rules=rules), edge_weight=1, activity=1e6) == 1e12
    assert scored(tree(rules=rules), edge_weight=1, activity=0) == 0


def test_a_feature_of_a_plugin_can_be_used_with_its_bounds():
    spec = FeatureSpec("trust", "how reliable", 0, 5, lambda n: np.ones(len(n)))
    scorer = load(tree([{"feature": "trust", "scale": 2}]), [spec])
    assert scorer.score({"trust": np.array([2.0])}).tolist() == [4]
    assert [side.tolist() for side in scorer.bounds({}, 1)] == [[0], [10]]
    with pytest.raises(InvalidRuleError, match="trust"):
        load(tree([{"feature": "trust"}]))


@pytest.mark.parametrize(
    ("name", "low", "high"), [("peer", 0, 1), ("constant", 0, 1), ("x", 1, 0), ("x", 0, math.inf), ("x", 0, 1e10)]
)
def test_an_extra_feature_needs_a_free_name_and_finite_bounds(name, low, high):
    with pytest.raises(InvalidRuleError, match=f"feature {name}"):
        load(tree(), [FeatureSpec(name, "", low, high, lambda n: np.ones(len(n)))])


# what a scorer tells


def test_it_knows_which_features_it_needs_and_which_can_wait():
    scorer = load(TREES["books"])
    assert set(scorer.features) == {
        "edge_weight", "metadata_overlap", "co_interaction_count", "memory_similarity", "recency_days", "is_owner",
    }  # fmt: skip
    assert [feature.name for feature in scorer.expensive] == ["memory_similarity"]
    assert {feature.name for feature in scorer.cheap} == set(scorer.features) - {"memory_similarity"}


def test_the_hash_depends_on_what_the_tree_says_not_on_how_it_is_written():
    one = load('{"name": "t", "version": 1, "score": [{"feature": "peer", "weight": 1}]}')
    same = load({"version": 1.0, "score": ({"weight": 1.0, "feature": "peer"},), "name": "t"})
    other = load('{"name": "t", "version": 1, "score": [{"feature": "peer", "weight": 2}]}')
    assert one.hash == same.hash == "41893632dcd7c6e5d31b60006d62b527a879cb83b4541a52faa8f0e023475db0"
    assert other.hash != one.hash


def test_the_tree_cannot_be_changed_through_what_was_passed_in():
    mine = tree([{"feature": "peer", "weight": 1}])
    scorer = load(mine)
    before = scorer.hash
    mine["score"][0]["weight"] = 2
    assert scorer.hash == before == load(tree([{"feature": "peer", "weight": 1}])).hash


def test_it_explains_itself_in_plain_words():
    rules = [
        {"when": {"not": when("peer", "<", 0.5)}, "then": [{"multiply": {"feature": "peer", "scale": 2, "floor": 0}}]},
        {"then": [{"decay": {"feature": "recency_days", "rate": 0.5, "over": 3}}]},
        {"when": when("group", "==", 0), "then": [{"drop": True}]},
    ]
    assert load(tree(rules=rules)).explain().splitlines() == [
        "t: start from `edge_weight`",
        "1. if not `peer` < 0.5: multiply by 2 x `peer` (at least 0)",
        "2. always: multiply by exp(-0.5 x the excess of `recency_days` over 3)",
        "3. if `group` == 0: drop it",
    ]


def test_contributions_name_what_each_feature_added():
    columns = {
        "idf_cosine": [0.4],
        "co_interaction_count": [2],
        "memory_similarity": [0.5],
        "peer": [0.3],
        "group": [1],
    }
    got = load(TREES["overlap"]).contributions({name: np.array(v, float) for name, v in columns.items()})
    assert {name: round(float(v[0]), 12) for name, v in got.items()} == {
        "idf_cosine": 0.4,
        "co_interaction_count": -0.2,
        "memory_similarity": 0.1,
        "peer": 0.03,
        "group": 0.05,
    }


def test_a_constant_action_is_credited_to_the_features_of_its_condition():
    both = {"all": [when("group", "==", 1), when("peer", ">", 0)]}
    scorer = load(tree(rules=[{"when": both, "then": [{"add": 4}]}, {"then": [{"multiply": 2}]}]))
    got = scorer.contributions({"edge_weight": np.ones(2), "group": np.array([1.0, 0.0]), "peer": np.ones(2)})
    assert {name: values.tolist() for name, values in got.items()} == {
        "edge_weight": [1, 1],
        "group": [2, 0],
        "peer": [2, 0],
        "constant": [5, 1],
    }


# what is refused

REFUSED = [
    ({"extra": 1}, "$.extra"),
    ({"name": ""}, "$.name"),
    ({"name": 3}, "$.name"),
    ({"version": 2}, "$.version"),
    ({"version": True}, "$.version"),
    ({"note": 1}, "$.note"),
    ({"score": []}, "$.score"),
    ({"score": {}}, "$.score"),
    ({"score": ["edge_weight"]}, "$.score[0]"),
    ({"score": [{"constant": 1}]}, "$.score"),
    ({"score": [{"feature": "edge_wait"}]}, "$.score[0].feature"),
    ({"score": [{"feature": ["peer"]}]}, "$.score[0].feature"),
    ({"score": [{"feature": "peer", "weight": "2"}]}, "$.score[0].weight"),
    ({"score": [{"feature": "peer", "weight": True}]}, "$.score[0].weight"),
    ({"score": [{"feature": "peer", "weight": math.nan}]}, "$.score[0].weight"),
    ({"score": [{"feature": "peer", "weight": -math.inf}]}, "$.score[0].weight"),
    ({"score": [{"feature": "peer", "weight": 10**400}]}, "$.score[0].weight"),
    ({"score": [{"feature": "peer", "weight": None}]}, "$.score[0].weight"),
    ({"score": [{"feature": "peer", "floor": 1, "ceil": 0}]}, "$.score[0].floor"),
    ({"score": [{"product": []}]}, "$.score[0].product"),
    ({"score": [{"product": [{"feature": "peer"}], "feature": "peer"}]}, "$.score[0].product"),
    ({"score": [{"shrink": {"feature": "activity", "by": 0}}]}, "$.score[0].shrink.by"),
    ({"score": [{"shrink": {"feature": "activity", "by": -2}}]}, "$.score[0].shrink.by"),
    ({"score": [{"decay": {"feature": "activity", "rate": -1}}]}, "$.score[0].decay.rate"),
    ({"score": [{"decay": {"feature": "activity"}}]}, "$.score[0].decay"),
    ({"score": [{"feature": "peer", 5: 1}]}, "$.score[0]"),
    ({"score": [{"feature": "peer", "weight": object()}]}, "$.score[0].weight"),
    ({"rules": {}}, "$.rules"),
    ({"rules": [{"then": []}]}, "$.rules[0].then"),
    ({"rules": [{"when": when("peer", ">", 0)}]}, "$.rules[0]"),
    ({"rules": [{"then": [{"drop": False}]}]}, "$.rules[0].then[0].drop"),
    ({"rules": [{"then": [{"divide": 0}]}]}, "$.rules[0].then[0]"),
    ({"rules": [{"then": [{"add": 1, "multiply": 2}]}]}, "$.rules[0].then[0]"),
    ({"rules": [{"then": [{"multiply": "__import__('os')"}]}]}, "$.rules[0].then[0].multiply"),
    ({"rules": [{"when": when("peer", "in", 0), "then": [{"add": 1}]}]}, "$.rules[0].when.op"),
    ({"rules": [{"when": when("peer", [], 0), "then": [{"add": 1}]}]}, "$.rules[0].when.op"),
    ({"rules": [{"when": when("peer", ">", "0"), "then": [{"add": 1}]}]}, "$.rules[0].when.value"),
    ({"rules": [{"when": {"all": []}, "then": [{"add": 1}]}]}, "$.rules[0].when.all"),
    ({"rules": [{"when": {"xor": []}, "then": [{"add": 1}]}]}, "$.rules[0].when"),
    (
        {"rules": [{"when": {"any": [when("peer", ">", 0), {"not": when("nobody", ">", 0)}]}, "then": [{"add": 1}]}]},
        "$.rules[0].when.any[1].not.feature",
    ),
]


@pytest.mark.parametrize(("change", "path"), REFUSED)
def test_a_malformed_tree_is_refused_with_the_path_of_the_offending_node(change, path):
    with pytest.raises(InvalidRuleError) as caught:
        load(tree() | change)
    assert caught.value.path == path


@pytest.mark.parametrize("missing", ["name", "version", "score"])
def test_a_required_key_cannot_be_left_out(missing):
    with pytest.raises(InvalidRuleError, match=missing):
        load({key: value for key, value in tree().items() if key != missing})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        b"\xff\xfe",
        '{"name": "t", "version": 1, "score": [{"feature": "peer", "weight": NaN}]}',
        '{"name": "t", "version": 1, "score": [{"feature": "peer", "weight": 1e999}]}',
        '{"name": "t", "version": 1, "score": [{"feature": "peer", "weight": 1, "weight": 2}]}',
        f'{{"name": "t", "version": 1, "score": [{{"feature": "peer", "weight": {"9" * 5000}}}]}}',
        '{"name": "t", "version": 1, "score": [{"feature": "peer"}], "note": "' + "x" * 200_000 + '"}',
    ],
)
def test_a_text_that_is_no_rule_tree_is_refused(text):
    with pytest.raises(InvalidRuleError):
        load(text)


def nested(depth: int) -> str:
    condition = '{"not": ' * depth + '{"feature": "peer", "op": ">", "value": 0}' + "}" * depth
    rule = f'{{"when": {condition}, "then": [{{"add": 1}}]}}'
    return f'{{"name": "t", "version": 1, "score": [{{"feature": "peer"}}], "rules": [{rule}]}}'


@pytest.mark.parametrize("depth", [13, 1_000, 5_000])
def test_deep_nesting_is_refused_as_text_and_as_mapping(depth):
    with pytest.raises(InvalidRuleError, match="deeper than 16"):
        load(nested(depth))
    condition: dict = when("peer", ">", 0)
    for _ in range(depth):
        condition = {"not": condition}
    with pytest.raises(InvalidRuleError, match="deeper than 16"):
        load(tree(rules=[{"when": condition, "then": [{"add": 1}]}]))


def test_sixteen_levels_are_allowed_and_brackets_in_texts_do_not_count():
    assert load(nested(12)).features
    assert load(tree(note="[{" * 500)).features


def test_a_tree_that_contains_itself_is_refused():
    loop: dict = {"all": []}
    loop["all"].append(loop)
    with pytest.raises(InvalidRuleError, match="deeper than 16"):
        load(tree(rules=[{"when": loop, "then": [{"add": 1}]}]))


def test_a_large_tree_is_refused():
    with pytest.raises(InvalidRuleError, match="more than 1000 nodes"):
        load(tree([{"feature": "peer"}] * 1_000))
    assert load(tree([{"feature": "peer"}] * 300)).score({"peer": np.ones(1)}).tolist() == [300]


WORDS = st.sampled_from(
    ["name", "version", "score", "rules", "when", "then", "feature", "op", "value", "all", "not", "multiply", "decay",
     "product", "weight", "by", "peer", "edge_weight", ">", "drop"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None)
@given(parts=st.dictionaries(st.sampled_from(["name", "version", "score", "rules"]), JSON), data=st.data())
def test_arbitrary_json_gives_a_scorer_or_a_named_error_and_nothing_else(parts, data):
    spoiled = copy.deepcopy(TREES[data.draw(st.sampled_from(sorted(TREES)))]) | parts
    for source in (spoiled, json.dumps(spoiled)):
        try:
            outcome = load(source)
        except InvalidRuleError as error:
            outcome = error
        assert isinstance(outcome, Scorer) or outcome.path.startswith("$")


# the presets


def test_overlap_is_the_measured_formula():
    for cosine, count, similarity in [(0.4, 2, 0.5), (0.9, 7, -0.3), (0.1, 0, 1)]:
        got = scored(TREES["overlap"], idf_cosine=cosine, co_interaction_count=count, memory_similarity=similarity)
        assert got == pytest.approx(cosine * count / (count + 2) * (1 + max(0, similarity)), rel=1e-15)


CASES = [
    dict(edge_weight=e, metadata_overlap=m, co_interaction_count=c, memory_similarity=s, recency_days=d, is_owner=o)
    for e, m, c, s, d, o in [
        (0.5, 0.9, 20, 0.6, 10, 1),
        (0.3, 0.75, 12, 0.4, 170, 0),
        (0.2, 0.5, 4, 0.7, 100, 1),
        (0.7, 0.1, 1, -0.5, 400, 0),
        (0.4, 0.65, 2, 0.2, 60, 1),
        (0.0, 0.3, 0, 0.9, 0, 1),
    ]
]


def paper(name: str, e, m, c, s, d, o) -> float:
    """The domains' formulas, similarity cut at 0 and decay counted from its threshold."""
    s_plus = max(0.0, s)

    def decay(rate, over):
        return math.exp(-rate * max(0, d - over))

    if name == "books":
        social = (1.8 * (1.5 if s > 0.5 else 1)) if c > 3 else 1
        return e * (2.5 if m > 0.6 else 1) * social * decay(0.004, 180) * (1 + (0.8 if o else 1.2) * s_plus)
    if name == "goodreads":
        social = (2 if c > 10 else 1) * (0.7 * 1.5 if c > 15 else 1)
        return e * social * (3 if m > 0.8 else 1) * (1 + (1.5 if c > 10 else 1) * s_plus) * decay(0.002, 365)
    if name == "movietv":
        fade = decay(0.018, 60) * decay(0.007, 180) * decay(0.0033, 365)
        base, memory = (e * 2.5 * fade + 1, 1 + 1.8 * s_plus) if c >= 3 else (e * fade + 2.8 * m, 1 + 1.5 * s_plus)
        return base * memory * (1.5 if m > 0.6 else 1)
    category = 4.5 if m > 0.85 else 3.5 if m > 0.7 else 1
    memory = 1 + (2.2 if m > 0.7 else 1) * s_plus
    social = 2 if c >= 2 else 0.5
    return e * social * category * memory * decay(0.028, 90) * decay(0.0077, 180) * (0.2 if m < 0.4 else 1)


@pytest.mark.parametrize("name", ["books", "goodreads", "movietv", "yelp"])
@pytest.mark.parametrize("case", CASES)
def test_the_memrec_domains_follow_their_formulas(name, case):
    assert scored(TREES[name], **case) == pytest.approx(paper(name, *case.values()), rel=1e-12)


def test_generative_agents_adds_recency_importance_and_relevance():
    got = scored(TREES["generative-agents"], recency_days=2, importance=0.5, query_similarity=0.25)
    assert got == pytest.approx(0.995**48 + 0.5 + 0.25, rel=1e-9)
    assert scored(TREES["generative-agents"], importance=0.5, query_similarity=-0.9) == 1.5


def test_tickets_take_topics_and_group_and_ignore_activity():
    assert "activity" not in load(TREES["tickets"]).features
    assert scored(TREES["tickets"], group=1) == 0.5
    assert scored(TREES["tickets"], group=1, metadata_overlap=0.5, recency_days=180) == 1.0
    assert 0.6 < scored(TREES["tickets"], group=1, metadata_overlap=0.5, recency_days=365) < 0.75


@pytest.mark.parametrize("name", sorted(TREES))
def test_a_preset_has_no_step_in_time(name):
    days = np.arange(0, 800, 0.25)
    scorer = load(TREES[name])
    columns = {feature: np.full(len(days), 0.5) for feature in scorer.features} | {"recency_days": days}
    score = scorer.score(columns)
    assert (np.abs(np.diff(score)) <= 0.05 * score[:-1]).all()


def test_the_presets_are_complete_and_overlap_comes_first():
    names = [domain.name for domain in DOMAINS]
    assert names[0] == "overlap"
    assert sorted(names) == sorted(["overlap", "books", "goodreads", "movietv", "yelp", "generative-agents", "tickets"])
    assert all(domain.tree["name"] == domain.name and domain.source and domain.summary for domain in DOMAINS)
    assert len({load(domain.tree).hash for domain in DOMAINS}) == len(DOMAINS)


def test_importing_the_presets_does_not_import_numpy():
    code = (
        "import sys, collab_layer; before = 'numpy' in sys.modules; import collab_layer.builtin.domains; "
        "assert before or 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=DOC.parents[1])


# the reference page


def test_the_page_names_every_feature_with_its_bounds_and_every_preset():
    rows = re.findall(r"^\| `([a-z_-]+)` \|", DOC.read_text(), re.MULTILINE)
    assert rows == [*BUILTIN, *(domain.name for domain in DOMAINS)]


def test_the_examples_on_the_page_work():
    page = DOC.read_text()
    for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL):
        assert load(block).explain()
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "rules.md", "exec"), {})
