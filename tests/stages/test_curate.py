from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.builtin.domains import DOMAINS
from collab_layer.errors import InputError
from collab_layer.plugins.specs import FeatureSpec
from collab_layer.stages.curate import FEW, curate
from collab_layer.stages.features import BUILTIN, columns
from collab_layer.stages.rules import Scorer, load
from collab_layer.types.graph import Edges, Neighborhood, Selection, VectorView
from collab_layer.types.scope import Level

DAY = 86_400_000_000
NOW = 20_000 * DAY
PRESETS = {domain.name: load(domain.tree) for domain in DOMAINS}


def neighborhood(owners: int, things: int, own: int, seed: int, *, ties: bool = False) -> Neighborhood:
    """A random pool; with `ties` few distinct values, so that many candidates score alike."""
    random = np.random.default_rng(seed)
    size, things = owners + min(things, own), min(things, own)
    held = random.random((owners, own)) < (0.5 if ties else 0.2)
    candidate, target = np.nonzero(held)
    pairs = len(candidate)
    matrix = random.normal(size=(3 if ties else size + 1, 5)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    own_ids = random.permutation(np.arange(10_000, 10_000 + own))
    hood = Neighborhood(
        focus=0,
        now=NOW,
        own=Edges(
            own_ids,
            random.integers(1, 4, own) * 1.0,
            random.integers(1, 5, own),
            NOW - DAY * random.integers(0, 9, own),
        ),
        own_topic=random.random(own) < 0.4,
        own_idf=random.choice([0.5, 1.0, 2.0], own) if ties else random.uniform(0, 9, own),
        own_degree=own,
        ids=np.concatenate([random.permutation(np.arange(1, owners + 1)), own_ids[:things]]).astype(np.int64),
        is_owner=np.arange(size) < owners,
        level=random.choice([0, 1, 2], size, p=[0.1, 0.4, 0.5]).astype(np.int8),
        degree=np.full(size, 7) if ties else random.integers(1, 60, size),
        last=NOW - DAY * random.integers(-2, 2 if ties else 900, size),
        pair_own=target.astype(np.int32),
        pair_candidate=candidate.astype(np.int32),
        pair_weight=random.integers(1, 3, pairs) * 1.0,
        pair_last=NOW - DAY * random.integers(-2, 2 if ties else 900, pairs),
        group=random.random(size) < 0.3,
        peer=np.round(random.uniform(-1, 1, size), 1),
        vectors=VectorView(matrix, random.integers(-1, len(matrix), size).astype(np.int32)),
        focus_vector=matrix[0] if seed % 5 else None,
        query_vector=matrix[-1] if seed % 3 else None,
        owners_visible=owners + 1,
    )
    return shuffled(hood, random.permutation(size))


def shuffled(hood: Neighborhood, order: np.ndarray, pairs: np.ndarray | None = None) -> Neighborhood:
    pairs = np.arange(len(hood.pair_own)) if pairs is None else pairs
    names = ("ids", "is_owner", "level", "degree", "last", "group", "peer")
    return replace(
        hood,
        **{name: getattr(hood, name)[order] for name in names},
        pair_candidate=np.argsort(order)[hood.pair_candidate][pairs].astype(np.int32),
        **{name: getattr(hood, name)[pairs] for name in ("pair_own", "pair_weight", "pair_last")},
        vectors=VectorView(hood.vectors.matrix, hood.vectors.row[order]),
    )


HOODS = st.builds(
    neighborhood,
    owners=st.integers(0, 120),
    things=st.integers(0, 20),
    own=st.integers(0, 25),
    seed=st.integers(0, 2**32 - 1),
    ties=st.booleans(),
)
NAMES = st.sampled_from(sorted(BUILTIN))
NUMBERS = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0, 40.0]) | st.floats(-1e4, 1e4)
FACTORS = st.one_of(
    NUMBERS,
    st.fixed_dictionaries(
        {"feature": NAMES},
        optional={"scale": NUMBERS, "bias": NUMBERS, "floor": st.floats(-9, 0), "ceil": st.floats(0, 9)},
    ),
    st.fixed_dictionaries(
        {"decay": st.fixed_dictionaries({"feature": NAMES, "rate": st.floats(0, 2)}, optional={"over": NUMBERS})}
    ),
    st.fixed_dictionaries({"shrink": st.fixed_dictionaries({"feature": NAMES, "by": st.floats(0.001, 50)})}),
)
CONDITIONS = st.recursive(
    st.fixed_dictionaries(
        {"feature": NAMES, "op": st.sampled_from([">", ">=", "<", "<=", "==", "!="]), "value": NUMBERS}
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=4,
)
ACTIONS = st.one_of(
    st.fixed_dictionaries({"multiply": FACTORS}),
    st.fixed_dictionaries({"add": FACTORS}),
    st.just({"drop": True}),
)
TERMS = st.one_of(
    st.fixed_dictionaries({"feature": NAMES}, optional={"weight": NUMBERS}),
    st.fixed_dictionaries({"product": st.lists(FACTORS, min_size=1, max_size=3)}, optional={"weight": NUMBERS}),
)
RULES = st.fixed_dictionaries({"then": st.lists(ACTIONS, min_size=1, max_size=3)}, optional={"when": CONDITIONS})
TREES = st.builds(
    lambda name, score, rules: load(
        {"name": "random", "version": 1, "score": [{"feature": name}, *score], "rules": rules}
    ),
    NAMES,
    st.lists(TERMS, max_size=3),
    st.lists(RULES, max_size=4),
)
SCORERS = TREES | st.sampled_from(list(PRESETS.values()))


def exhaustive(hood: Neighborhood, scorer: Scorer, k: int, owners: int, things: int) -> list[tuple[float, int]]:
    """Score everybody, pick by plain loops."""
    if owners + things > k:
        owners, things = owners * k // (owners + things), things * k // (owners + things)
    scores = scorer.score(columns(scorer.features.values(), hood))
    everybody = zip(-scores, hood.ids, hood.is_owner, hood.level, strict=True)
    order = sorted(row for row in everybody if row[0] < 0 and row[3] > 0)
    picked = [row for row in order if row[2]][:owners] + [row for row in order if not row[2]][:things]
    rest = [row for row in order if row not in picked]
    return [(-score, node) for score, node, *_ in sorted(picked + rest[: k - len(picked)])]


def pairs_of(selection: Selection) -> list[tuple[float, int]]:
    return list(zip(selection.scores, selection.ids, strict=True))


# exactness, as properties


@settings(max_examples=200, deadline=None)
@given(hood=HOODS, scorer=SCORERS, k=st.integers(0, 20), owners=st.integers(0, 6), things=st.integers(0, 7))
def test_pruning_selects_the_same_as_scoring_everybody(hood, scorer, k, owners, things):
    for few in (0, FEW):
        got = curate(hood, scorer, k=k, min_owners=owners, min_things=things, few=few)
        assert pairs_of(got) == exhaustive(hood, scorer, k, owners, things)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6), owners=st.integers(0, 3), things=st.integers(0, 3))
def test_pruning_is_exact_where_the_bounds_mislead(seed, k, owners, things):
    """The cheap part orders the rounds, the postponed part decides: many rounds, much left for late ones."""
    scorer = load(
        {"name": "t", "version": 1, "score": [{"feature": "peer", "weight": 0.2}, {"feature": "memory_similarity"}]}
    )
    hood = neighborhood(150, 25, 25, seed)
    got = curate(hood, scorer, k=k, min_owners=owners, min_things=things, few=0)
    assert pairs_of(got) == exhaustive(hood, scorer, k, owners, things)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_selects_the_same_as_scoring_everybody_on_a_large_pool(name):
    for seed in range(1, 5):
        hood = neighborhood(4_000, 20, 25, seed, ties=seed == 4)
        got = curate(hood, PRESETS[name])
        assert pairs_of(got) == exhaustive(hood, PRESETS[name], 16, 4, 6)
        assert len(got) == 16


@settings(max_examples=100, deadline=None)
@given(hood=HOODS, scorer=SCORERS)
def test_bounds_contain_the_score_and_scores_are_finite(hood, scorer):
    every = columns(scorer.features.values(), hood)
    score = scorer.score(every)
    assert np.isfinite(score).all()
    assert score.shape == (len(hood),)
    for known in ({f.name for f in scorer.cheap}, set(), set(scorer.features)):
        low, high = scorer.bounds({name: every[name] for name in known}, len(hood))
        slack = 1e-9 * (1 + np.abs(score))
        assert ((low - slack <= score) & (score <= high + slack)).all()
    assert np.array_equal(low, score)
    assert np.array_equal(high, score)


@settings(max_examples=100, deadline=None)
@given(hood=HOODS, scorer=SCORERS)
def test_contributions_sum_to_the_score(hood, scorer):
    every = columns(scorer.features.values(), hood)
    parts = scorer.contributions(every)
    total = sum(parts.values(), np.zeros(len(hood)))
    size = sum((np.abs(part) for part in parts.values()), np.ones(len(hood)))
    assert (np.abs(total - scorer.score(every)) <= 1e-9 * size).all()
    assert set(parts) <= {*scorer.features, "constant"}


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_contributions_of_the_selected_sum_to_their_scores(name):
    got = curate(neighborhood(300, 10, 20, 7), PRESETS[name])
    assert len(got) == 16
    assert sum(got.contributions.values()) == pytest.approx(got.scores, abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(hood=HOODS, scorer=SCORERS, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_candidates_and_pairs_does_not_matter(hood, scorer, seed):
    random = np.random.default_rng(seed)
    mixed = shuffled(hood, random.permutation(len(hood)), random.permutation(len(hood.pair_own)))
    one, two = curate(hood, scorer, few=0), curate(mixed, scorer, few=0)
    assert pairs_of(one) == pairs_of(two)
    assert one.scored == two.scored
    assert {name: part.tolist() for name, part in one.contributions.items()} == {
        name: part.tolist() for name, part in two.contributions.items()
    }
    assert [ids.tolist() for ids in one.shared] == [ids.tolist() for ids in two.shared]


# what is selected


def test_vectors_are_read_for_few_candidates_only():
    got = curate(neighborhood(4_000, 20, 25, 1), PRESETS["overlap"])
    assert got.scored < 0.2 * got.pool


def test_strongest_first_and_ties_by_id():
    scorer = load({"name": "t", "version": 1, "score": [{"feature": "group"}, {"feature": "is_owner", "weight": 0}]})
    hood = neighborhood(60, 0, 5, 3)
    got = curate(hood, scorer)
    members = sorted(hood.ids[hood.group & (hood.level > 0)])
    assert got.ids.tolist() == members[:16]


def test_owners_and_things_keep_their_slots_even_if_the_other_kind_scores_higher():
    hood = neighborhood(80, 20, 25, 2)
    scorer = load(
        {"name": "t", "version": 1, "score": [{"feature": "is_owner", "bias": 1, "scale": 5}, {"feature": "peer"}]}
    )
    got = curate(hood, scorer)
    assert (int(got.is_owner.sum()), len(got)) == (10, 16)
    scorer = load({"name": "t", "version": 1, "score": [{"feature": "is_owner", "bias": 9, "scale": -5}]})
    assert int(curate(hood, scorer).is_owner.sum()) == 4


def test_missing_things_leave_their_slots_to_owners():
    got = curate(neighborhood(80, 0, 25, 2), PRESETS["overlap"])
    assert len(got) == 16
    assert got.is_owner.all()


def test_minima_shrink_with_a_small_k():
    hood = neighborhood(80, 20, 25, 2)
    scorer = load({"name": "t", "version": 1, "score": [{"feature": "is_owner", "bias": 1}]})
    assert [int((~curate(hood, scorer, k=k).is_owner).sum()) for k in (1, 3, 5, 10)] == [0, 1, 3, 6]


def test_owners_without_evidence_are_no_neighbours():
    hood = neighborhood(50, 0, 20, 4)
    nobody = np.zeros(0, np.int32)
    lonely = replace(
        hood,
        pair_own=nobody,
        pair_candidate=nobody,
        pair_weight=np.zeros(0),
        pair_last=np.zeros(0, np.int64),
        peer=np.zeros(len(hood)),
        group=np.zeros(len(hood), bool),
    )
    assert len(curate(lonely, PRESETS["overlap"])) == 0
    assert len(curate(hood, PRESETS["overlap"])) == 16


def test_who_permits_nothing_reaches_no_feature():
    hood = neighborhood(100, 10, 20, 6)
    seen: list[int] = []

    def look(given: Neighborhood) -> np.ndarray:
        seen.extend(given.ids.tolist())
        held = np.bincount(given.pair_candidate, minlength=len(given))
        return held * 1.0

    scorer = load({"name": "t", "version": 1, "score": [{"feature": "held"}]}, [FeatureSpec("held", "", 0, 99, look)])
    got = curate(hood, scorer)
    barred = set(hood.ids[hood.level == Level.NONE].tolist())
    assert barred
    assert not barred & set(seen)
    assert got.pool == len(hood) - len(barred) == len(seen)
    held = {int(node): int((hood.pair_candidate == row).sum()) for row, node in enumerate(hood.ids)}
    assert [held[int(node)] for node in got.ids] == got.scores.tolist()


@pytest.mark.parametrize("kind", ["owner", "thing"])
def test_only_the_kinds_asked_for_are_selected(kind):
    got = curate(neighborhood(60, 20, 20, 8), PRESETS["books"], kinds=(kind,))
    assert len(got)
    assert set(got.is_owner.tolist()) == {kind == "owner"}


def test_the_focus_is_not_its_own_neighbour():
    hood = neighborhood(30, 0, 20, 9)
    first = curate(hood, PRESETS["overlap"])
    again = curate(replace(hood, focus=int(first.ids[0])), PRESETS["overlap"])
    assert again.ids.tolist()[:5] == first.ids.tolist()[1:6]


def test_shared_targets_are_what_both_hold_rarest_first():
    hood = neighborhood(60, 5, 20, 10)
    got = curate(hood, PRESETS["books"])
    idf = dict(zip(hood.own.ids.tolist(), hood.own_idf.tolist(), strict=True))
    for node, owner, shared in zip(got.ids, got.is_owner, got.shared, strict=True):
        row = int(np.flatnonzero(hood.ids == node)[0])
        held = hood.own.ids[hood.pair_own[hood.pair_candidate == row]].tolist()
        assert shared.tolist() == sorted(held, key=lambda target: (-idf[target], target))
        assert owner or not held


def test_an_empty_pool_gives_an_empty_selection():
    got = curate(neighborhood(0, 0, 0, 1), PRESETS["overlap"])
    assert (len(got), got.pool, got.scored, list(got.shared)) == (0, 0, 0, [])


@pytest.mark.parametrize("size", [{"k": -1}, {"min_owners": -1}, {"min_things": -2}, {"kinds": "owners"}])
def test_negative_sizes_and_unknown_kinds_are_refused(size):
    with pytest.raises(InputError):
        curate(neighborhood(3, 0, 3, 1), PRESETS["overlap"], **size)
