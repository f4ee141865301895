from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from collab_layer.bench import candidates, lift, scoring
from collab_layer.bench.candidates import Trial
from collab_layer.bench.data import load
from collab_layer.bench.report import Report, Row
from collab_layer.bench.scoring import Answered
from collab_layer.errors import DataSetError
from collab_layer.stages.rank import DEFAULT_WEIGHTS, OWN, SHARED
from collab_layer.types.interaction import Interaction
from collab_layer.types.ranking import Ranked, Ranking


class Ledger:
    """Stands in for a layer: keeps what it was told, and answers with counts of holders."""

    def __init__(self) -> None:
        self.told: list[Interaction] = []
        self.asked: list[tuple[str, tuple[str, ...], int]] = []
        self.drained = 0
        self.rebuilt = 0

    async def observe(self, actor: Sequence[Interaction], /) -> list[str]:
        self.told += actor
        return [str(at) for at in range(len(actor))]

    async def drain(self) -> int:
        self.drained = len(self.told)
        return 0

    async def rebuild(self) -> None:
        self.rebuilt += 1

    async def rank(self, entity: str, candidates: Sequence[str], /) -> Ranking:
        assert self.drained == len(self.told), "asked before the work was done"
        self.asked.append((entity, tuple(candidates), len(self.told)))
        holders = [str(one.target) for one in self.told if one.verb == "liked"]
        items = tuple(
            Ranked(entity=name, score=0.0, features={"popularity": float(holders.count(name))}) for name in candidates
        )
        return Ranking(entity=entity, items=items)


def asked(folder: Path, seeds: int = 2) -> tuple[Ledger, list[Answered]]:
    data = load(folder)
    ledger = Ledger()
    return ledger, asyncio.run(lift.ask(ledger, data, candidates.plan(data, seeds)))


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
    weights = scoring.contestants(synthetic(100, sharing_helps=True)[::2], "pop", 2).weights
    assert set(weights["isolated"]) == set(OWN)
    assert weights["isolated"]["own_centroid"] > 0.3
    assert weights["default"] == dict(DEFAULT_WEIGHTS)


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
    return -(-trials // max(1, trials // lift.BLOCKS)) + 1


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


def test_a_whole_run_over_a_real_layer(sequences):
    steps: list[tuple[str, int, int]] = []
    report = lift.run(sequences, seeds=2, progress=lambda *step: steps.append(step))
    rows = by_name(report.rows)
    assert rows["ml1m.users"].value == 40
    assert rows["ml1m.pop9.ours.h1"].value > 0.1
    assert rows["run.seconds"].value > 0
    assert report.embedder.startswith("hashing")
    assert report.data_sha256 == load(sequences).sha256
    assert {what for what, _, _ in steps} == {"describing", "observing", "ranking"}
    assert all(0 < done <= total for _, done, total in steps)


def test_bad_data_is_refused_before_a_database_is_made(tmp_path):
    with pytest.raises(DataSetError):
        lift.run(tmp_path)
    assert list(tmp_path.iterdir()) == []
