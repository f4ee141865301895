from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collab_layer.bench import asking, candidates, contestants, lift, scoring, slices
from collab_layer.bench.asking import Answered, Wanted
from collab_layer.bench.candidates import Step, Trial
from collab_layer.bench.data import load
from collab_layer.bench.mem0_taste import Mem0Taste
from collab_layer.bench.report import Report, Row
from collab_layer.builtin.embedder import HashingEmbedder
from collab_layer.errors import DataSetError
from collab_layer.stages.rank import DEFAULT_WEIGHTS, OWN, SHARED
from collab_layer.types.interaction import Interaction
from collab_layer.types.lift import Gate
from collab_layer.types.ranking import Ranked, Ranking

from .conftest import write_sequences


class Ledger:
    """Stands in for a layer: keeps what it was told, and answers with counts of holders."""

    def __init__(self) -> None:
        self.told: list[Interaction] = []
        self.asked: list[tuple[str, tuple[str, ...], int]] = []
        self.drained = 0
        self.rebuilt = 0
        self.refitted = 0
        self.rules: object = None
        self.closed: set[str] = set()

    async def observe(self, actor: Sequence[Interaction], /) -> list[str]:
        self.told += actor
        return [str(at) for at in range(len(actor))]

    async def drain(self) -> int:
        self.drained = len(self.told)
        return 0

    async def rebuild(self) -> None:
        self.rebuilt += 1

    async def refit(self, owners: int = 0, /) -> Gate:
        self.refitted += 1
        return Gate(state="shut", weights={}, version="0")

    async def use_rules(self, which: object, /) -> None:
        self.rules = which

    async def opt_out(self, owner: str, /) -> None:
        self.closed.add(owner)

    async def rank(self, entity: str, candidates: Sequence[str], /) -> Ranking:
        assert self.drained == len(self.told), "asked before the work was done"
        if self.rules is None:
            self.asked.append((entity, tuple(candidates), len(self.told)))
        holders = [str(one.target) for one in self.told if one.verb == "liked"]
        items = tuple(
            Ranked(entity=name, score=0.0, features={"popularity": float(holders.count(name))}) for name in candidates
        )
        return Ranking(entity=entity, items=items)


def asked(folder: Path, seeds: int = 2, wanted: Wanted | None = None) -> tuple[Ledger, list[Answered]]:
    data = load(folder)
    ledger = Ledger()
    return ledger, asyncio.run(asking.ask(ledger, data, candidates.plan(data, seeds), wanted=wanted))


def synthetic(count: int, sharing_helps: bool) -> list[Answered]:
    """Trials whose target stands out by the own centroid, and by evidence if sharing helps."""
    random = np.random.default_rng(0)
    out: list[Answered] = []
    for user in range(count):
        rows = np.arange(10)[None, :].repeat(2, axis=0)
        table = random.normal(size=(10, len(scoring.FEATURES)))
        table[0, scoring.FEATURES.index("own_centroid")] += 1.0
        if sharing_helps:
            table[0, scoring.FEATURES.index("evidence")] += 2.0
        trial = Trial(user, 0, user % 2 == 0, {kind: rows for kind in candidates.KINDS})
        out.append(Answered(trial, dict(enumerate(table))))
    return out


def by_name(rows: Sequence[Row]) -> dict[str, Row]:
    return {row.name: row for row in rows}


@pytest.mark.parametrize("layout", ["sequences", "ratings"])
def test_one_question_per_trial_with_the_union_of_its_lists(layout, request):
    ledger, answered = asked(request.getfixturevalue(layout))
    assert len(ledger.asked) == len(answered)
    for (entity, names, _), one in zip(ledger.asked, answered, strict=True):
        assert entity == f"user:{one.trial.user}"
        assert list(names) == [f"item:{item}" for item in one.trial.union]
        assert set(one.raw) == set(one.trial.union)


@pytest.mark.parametrize("layout", ["sequences", "ratings"])
def test_a_layer_never_hears_of_a_target_before_it_is_asked(layout, request):
    ledger, answered = asked(request.getfixturevalue(layout))
    for (entity, _, told), one in zip(ledger.asked, answered, strict=True):
        target = f"item:{one.trial.target}"
        assert not any(str(e.actor) == entity and str(e.target) == target for e in ledger.told[:told])


def test_items_are_described_once_before_anybody_likes_them(sequences):
    ledger, _ = asked(sequences)
    described = [one for one in ledger.told if one.verb == "described"]
    assert len({one.actor for one in described}) == len(described)
    liked = {one.target for one in ledger.told if one.verb == "liked"}
    assert liked <= {one.actor for one in described}
    assert ledger.told[: len(described)] == described


def test_a_list_keeps_its_target_in_front():
    one = synthetic(1, sharing_helps=True)[0]
    case = one.case("pop", 1)
    assert case.chosen == 0
    assert case.columns["evidence"][0] == one.raw[one.trial.target][scoring.FEATURES.index("evidence")]


def test_sharing_that_helps_shows_as_lift_and_its_interval():
    rows = by_name(scoring.score("x", synthetic(400, sharing_helps=True), 2))
    assert rows["x.pop9.ours.h1"].value > rows["x.pop9.isolated.h1"].value + 0.2
    gain = rows["x.pop9.ours.lift"]
    assert gain.value == pytest.approx(rows["x.pop9.ours.h1"].value / rows["x.pop9.isolated.h1"].value - 1)
    assert 0 < gain.low < gain.value < gain.high
    assert 0 < rows["x.pop9.ours.harm"].value < rows["x.pop9.isolated.h1"].value
    assert rows["x.users"].value == 200


def test_sharing_that_does_not_help_is_kept_shut_and_harms_nobody():
    rows = by_name(scoring.score("x", synthetic(400, sharing_helps=False), 2))
    for kind in ("pop9", "uni9"):
        assert rows[f"x.{kind}.ours.h1"].value == rows[f"x.{kind}.isolated.h1"].value
        assert rows[f"x.{kind}.ours.harm"].value == rows[f"x.{kind}.ours.worse"].value == 0.0
        assert all(rows[f"x.{kind}.weight.{name}"].value == 0.0 for name in SHARED)


def test_isolated_memory_uses_own_features_only():
    weights = contestants.contestants(synthetic(100, sharing_helps=True)[::2], "pop", 2).weights
    assert set(weights["isolated"].much) == set(OWN)
    assert weights["isolated"].much["own_centroid"] > 0.3
    assert weights["default"].much == DEFAULT_WEIGHTS


def test_weights_do_not_depend_on_the_trials_that_are_scored():
    answered = synthetic(100, sharing_helps=True)
    one = by_name(scoring.score("x", answered, 2))
    scored = [
        Answered(a.trial, a.raw if a.trial.fitting else dict.fromkeys(a.raw, np.zeros(len(scoring.FEATURES))))
        for a in answered
    ]
    two = by_name(scoring.score("x", scored, 2))
    names = [name for name in one if ".weight." in name]
    assert [one[name].value for name in names] == [two[name].value for name in names]
    assert two["x.pop9.ours.h1"].value == 0.0  # all scores equal: ties are no hits


def test_bars_are_set_for_matched_candidates_only():
    rows = scoring.score("ml1m", synthetic(200, sharing_helps=True), 2)
    names = {"isolated.h1", "ours.lift", "ours.harm", "ours.minus_best"}
    assert {row.name for row in rows if row.bar} == {f"ml1m.pop9.{name}" for name in names}
    rows = scoring.score("mls", synthetic(200, sharing_helps=True), 2)
    assert {row.name for row in rows if row.bar} == {"mls.pop9.ours.harm", "mls.pop9.ours.minus_isolated"}
    assert not any(row.bar for row in scoring.score("x", synthetic(200, sharing_helps=True), 2))


def test_a_lower_end_under_its_bar_misses_it():
    assert Row("x", 0.5, 0.31, 0.7).against(">=", 0.45, low=0.3).ok is True
    assert Row("x", 0.5, 0.29, 0.7).against(">=", 0.45, low=0.3).ok is False


def test_edges_are_made_before_anybody_is_asked_and_not_for_every_trial(sequences, ratings):
    for folder in (sequences, ratings):
        ledger, answered = asked(folder)
        assert 1 <= ledger.rebuilt <= scoring_blocks(len(answered))


def scoring_blocks(trials: int) -> int:
    return -(-trials // max(1, trials // asking.BLOCKS)) + 2


def test_the_layer_fits_its_own_gate_before_the_first_scored_trial_and_never_for_the_others(sequences, ratings):
    for folder in (sequences, ratings):
        ledger, answered = asked(folder)
        assert 1 <= ledger.refitted <= ledger.rebuilt
        assert all((one.gate is None) == one.trial.fitting for one in answered)


@pytest.mark.parametrize("fitting", [True, False])
def test_a_guest_holds_only_the_newest_things_of_its_user_and_lets_nobody_read_it(sequences, fitting):
    ledger, answered = asked(sequences, wanted=Wanted(rules=(), cuts=(1, 3), guests=5))
    guests = [one for one in answered if one.cut and one.trial.fitting == fitting]
    assert len(guests) == 5
    for one in guests:
        held = [event.item for event in load(sequences).histories[one.trial.user]]
        before = held[: held.index(one.trial.target)]
        for cut in (1, 3):
            name = f"user:{one.trial.user}-last{cut}{'-fitting' * fitting}"
            told = [str(event.target) for event in ledger.told if str(event.actor) == name]
            assert told == [f"item:{item}" for item in before[-cut:]]
            assert name in ledger.closed
            assert set(one.cut[cut]) == set(one.trial.short().union)


def test_those_who_hold_little_are_ranked_by_what_helped_where_little_was_known():
    answered = [
        replace(one, held=50, cut={cut: dict(enumerate(table)) for cut in (1, 3)})
        for one, table in zip(synthetic(300, sharing_helps=False), tables(300, "evidence"), strict=True)
    ]
    rows = by_name(scoring.score("x", answered, 2))
    assert rows["x.pop9.gate"].value == 0.0
    assert rows["x.pop9.few.gate"].value == 1.0
    assert rows["x.last1.pop9.ours.lift"].low > 0.2
    assert rows["x.pop9.ours.h1"].value == pytest.approx(rows["x.pop9.isolated.h1"].value, abs=0.03)


def tables(count: int, helps: str) -> list[np.ndarray]:
    """Raw features of ten candidates in which the right one, the first, stands out by one feature."""
    random = np.random.default_rng(1)
    found = random.normal(size=(count, 10, len(scoring.FEATURES)))
    found[:, 0, scoring.FEATURES.index(helps)] += 2.0
    return list(found)


def test_other_rules_are_put_in_use_and_taken_back(sequences):
    ledger, answered = asked(sequences)
    assert ledger.rules is None
    assert all(len(row) == len(asking.COLUMNS) for one in answered for row in one.raw.values())


def test_longer_lists_begin_with_the_short_one_and_never_hold_what_the_user_holds(sequences):
    data = load(sequences)
    for step in candidates.plan(data, 2):
        for trial in step.trials:
            assert bool(trial.longer) == (not trial.fitting)
            held = {event.item for event in data.histories[trial.user]}
            for kind, items in trial.longer.items():
                assert items[:10].tolist() == trial.lists[kind][0].tolist()
                assert len(set(items.tolist())) == len(items)
                assert held.isdisjoint(items[1:].tolist())


def test_noise_changes_no_question_and_is_in_no_list(sequences):
    data, steps = lift.prepared(sequences, 2)
    noisy = slices.noisy(data, steps, 0.3)
    short = [Step(step.events, [trial.short() for trial in step.trials]) for step in steps]
    assert candidates.digest(noisy) == candidates.digest(short)
    added = sum(len(step.events) for step in noisy) - sum(len(step.events) for step in steps)
    assert 0.02 < added / sum(len(step.events) for step in steps) <= 0.35
    for at, step in enumerate(noisy):
        fakes = set(step_pairs(step)) - set(step_pairs(steps[at]))
        asked_for = {(trial.user, item) for trial in step.trials for item in trial.short().union}
        assert fakes.isdisjoint(asked_for)


def test_attackers_all_hold_what_they_push(sequences, ratings):
    for folder in (sequences, ratings):
        data, steps = lift.prepared(folder, 1)
        item = slices.pushed(data, steps)
        spoiled = slices.attackers(data, steps, item)
        fresh = {user for step in spoiled for user, _ in step.events} - set(data.histories)
        assert len(fresh) == max(1, round(slices.ATTACKERS * len(data.histories)))
        held = {user for step in spoiled for user, event in step.events if event.item == item}
        assert fresh <= held


def step_pairs(step: Step) -> list[tuple[int, int]]:
    return [(user, event.item) for user, event in step.events]


def test_as_many_are_asked_as_were_wanted(sequences):
    _, steps = lift.prepared(sequences, 1, 10)
    trials = [trial for step in steps for trial in step.trials]
    assert sum(trial.fitting for trial in trials) == 10
    assert sum(not trial.fitting for trial in trials) == 10
    again = lift.prepared(sequences, 1, 10)[1]
    assert candidates.digest(again) == candidates.digest(steps)


def test_a_lift_whose_interval_reaches_zero_misses_its_bar():
    assert Row("x.lift", 0.3, 0.1, 0.5).against(">=", 0.25, positive=True).ok is True
    assert Row("x.lift", 0.3, -0.1, 0.7).against(">=", 0.25, positive=True).ok is False
    assert Row("x.lift", 0.2, 0.1, 0.3).against(">=", 0.25, positive=True).ok is False


def test_a_report_is_plain_json_and_fails_with_its_worst_row():
    rows = [Row("a", 1.0), Row("b", float("inf")), Row("c", 0.1).against(">=", 0.2)]
    report = Report("collab demo --data x", "00", 0, "hashing", rows)
    assert not report.ok
    assert Report("", "", 0, "", rows[:2]).ok
    printed = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert list(printed) == ["command", "data_sha256", "seed", "embedder", "rows"]
    assert printed["rows"][1]["value"] is None
    assert set(printed["rows"][2]) == {"name", "value", "low", "high", "unit", "bar", "ok"}
    assert printed["rows"][2]["ok"] is False


def test_a_whole_run_over_a_real_layer(tmp_path):
    folder = write_sequences(tmp_path / "films", users=24, items=40, held=10)
    steps: list[tuple[str, int, int]] = []
    report = lift.run(folder, seeds=1, users=6, full=True, progress=lambda *step: steps.append(step))
    rows = by_name(report.rows)
    assert rows["ml1m.users"].value == 6
    for name in ("pop9.ours", "pop9.naive_pool", "uni19.ease", "last1.pop9.ours", "noise30.pop9.ours"):
        assert 0.0 <= rows[f"ml1m.{name}.h1"].value <= 1.0
    assert {f"ml1m.{name}.pop9.ours.pushed_first" for name in ("attack0", "attack5")} <= set(rows)
    assert rows["run.seconds"].value > 0
    for who in ("rank", "itemknn", "ease", "gfcf", "ials", "naive_pool", "naive_search"):
        assert rows[f"run.{who}.p95"].value >= rows[f"run.{who}.p50"].value > 0, "each contestant's time is told"
    assert rows["run.model_calls"].value == rows["run.model_tokens"].value == 0
    assert all(rows[f"run.cpu.{phase}"].value >= 0 for phase in ("describe", "observe", "rank", "cuts", "score"))
    assert report.frozen["candidates"] == candidates.digest(lift.prepared(folder, 1, 6)[1])
    assert report.embedder.startswith("hashing")
    assert report.data_sha256 == load(folder).sha256
    assert {what for what, _, _ in steps} == {"describing", "observing", "ranking"}
    assert all(0 < done <= total for _, done, total in steps)


def test_bad_data_is_refused_before_a_database_is_made(tmp_path):
    with pytest.raises(DataSetError):
        lift.run(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(600)  # Mem0 and Chroma are slow to import
def test_a_real_mem0_competes_with_its_own_search(tmp_path):
    folder = write_sequences(tmp_path / "films", users=12, items=40, held=8)
    report = lift.run(folder, seeds=1, users=2, mem0=True)
    rows = by_name(report.rows)
    assert 0.0 <= rows["ml1m.pop9.mem0.h1"].value <= 1.0
    assert "ml1m.pop9.ours.lift_over_mem0" in rows
    assert "ml1m.last1.uni9.mem0.h1" in rows
    assert rows["run.mem0.p50"].value > 0
    assert report.command.endswith("--store mem0")
    with Mem0Taste(
        {1: "storm harbour ship", 2: "robot planet laser", 3: "a ship in a storm"}, HashingEmbedder()
    ) as mem0:
        found = mem0.scores([1, 2], [3, 2])["mem0"]
        assert mem0.scores([1], [3, 2])["mem0"][0] > mem0.scores([2], [3, 2])["mem0"][0]
        assert mem0.scores([], [3])["mem0"].tolist() == [0.0]
        assert found.shape == (2,)
