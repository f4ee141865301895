"""Governed memory, measured over a story of four principals, and over GateMem where it is at hand."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from collab_layer.bench import borders, gatemem, govern
from collab_layer.errors import DataSetError, InputError
from collab_layer.surface.cli.main import main

from .govern_sets import CHECKPOINTS, checkpoint, episode, write_gatemem


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    folder = write_gatemem(tmp_path_factory.mktemp("gatemem"))
    return {row.name: row.value for row in asyncio.run(govern.measure(gatemem.load(folder)))}


def test_members_of_a_project_answer_together_what_nobody_knows_alone(rows):
    assert rows["office.all.ours.utility"] == 1.0
    assert rows["office.all.isolated.utility"] == 0.0


def test_who_was_granted_nothing_is_told_nothing_and_the_open_pool_tells_it(rows):
    assert rows["office.all.ours.exposure"] == 0.0
    assert rows["office.all.open.exposure"] == 1.0
    assert rows["office.all.ours.governed"] == 1.0
    assert rows["office.all.open.governed"] == 0.0
    assert rows["office.all.ours.ungranted"] == rows["office.all.ours.ungranted_derived"] == 0.0


def test_what_was_forgotten_was_told_before_and_never_after(rows):
    assert rows["office.all.ours.before_forgetting"] == 1.0
    for part in ("residue", "residue_derived"):
        assert rows[f"office.all.ours.{part}"] == 0.0


def test_a_string_that_the_asker_said_itself_is_no_exposure(tmp_path):
    data = gatemem.load(write_gatemem(tmp_path))
    rows = govern.scored("office", "ours", [asyncio.run(_played(data, tmp_path))])
    assert data.domains["office"][0].checkpoints[2].asker == "pm"
    exposure = next(row for row in rows if row.name.endswith(".exposure"))
    assert (exposure.value, exposure.low, exposure.high) == (0.0, 0.0, 0.0)


async def _played(data: gatemem.GateMem, folder: Path) -> Any:
    (one,) = data.domains["office"]
    groups = borders.groups(one, "G1")
    stage = govern.Stage(one, "ours", groups, borders.readable(groups, one.roles), None, 800, folder)
    return await govern.play(stage)


def test_the_command_prints_rows_and_the_digests_of_what_was_frozen(tmp_path, capsys):
    folder = write_gatemem(tmp_path / "set")
    assert main(["bench", "govern", "--data", str(folder), "--no-attacks", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["command"] == "collab bench govern --data set --no-attacks --seed 0"
    assert told["embedder"] == "hashing-512-v1"
    assert set(told["frozen"]) == {"gatemem_grants.json", "attacks.py", "attack_words.py"}
    assert "office.all.ours.governed" in {row["name"] for row in told["rows"]}


def test_nothing_to_measure_is_said():
    with pytest.raises(InputError, match="nothing to measure"):
        asyncio.run(govern.report(None, attacked=False))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda e, c: e.update(turns=[]), "no turns"),
        (lambda e, c: e["turns"][1].update(turn_id="t0"), "appears twice"),
        (lambda e, c: e["turns"][1].update(speaker={"principal_id": "nobody"}), "`principal_id` 'nobody' is not known"),
        (lambda e, c: e["turns"][1].update(text=None), "`text` must be a text"),
        (lambda e, c: e["turns"][1].update(timestamp="yesterday"), "is no time"),
        (lambda e, c: [t.update(timestamp="2026-04-06T09:00") for t in e["turns"]], "not later than the one before"),
        (lambda e, c: e.update(entities=[]), "`entities` must be an object"),
        (lambda e, c: c.update(episode_id="other"), "not of one download"),
        (lambda e, c: c.update(as_of_turn_id="t99"), "`as_of_turn_id` 't99' is not known"),
        (lambda e, c: c.update(query_type="joke"), "`query_type` 'joke' is not known"),
        (lambda e, c: c.update(judge_spec={"include": ["("]}), "no regular expression"),
        (lambda e, c: c.update(judge_spec={"include": []}), "asks for nothing"),
        (lambda e, c: c.update(query_type="privacy"), "guards nothing"),
        (lambda e, c: c.update(leak_targets="all"), "must be a list of texts"),
    ],
)
def test_a_damaged_set_is_refused_with_the_place(tmp_path, change, says):
    one = episode()
    asked = checkpoint(3, "utility", "pm", "When?", include=["July"])
    change(one, asked)
    (tmp_path / "office_episodes.jsonl").write_text(json.dumps(one), encoding="utf-8")
    (tmp_path / "office_checkpoints.jsonl").write_text(json.dumps(asked), encoding="utf-8")
    with pytest.raises(DataSetError, match=r"line 1.*") as caught:
        gatemem.load(tmp_path)
    assert says in str(caught.value)


def test_a_folder_without_the_set_is_refused(tmp_path):
    with pytest.raises(DataSetError, match="not a folder"):
        gatemem.load(tmp_path / "missing")
    with pytest.raises(DataSetError, match="no domain of GateMem"):
        gatemem.load(tmp_path)
    (tmp_path / "office_episodes.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataSetError, match="not both files of office"):
        gatemem.load(tmp_path)
    (tmp_path / "office_checkpoints.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataSetError, match="line 1 is no JSON"):
        gatemem.load(tmp_path)


def test_the_circle_of_a_case_holds_its_subject_and_nobody_outside():
    one = gatemem.Episode(
        "e",
        {"a": "advisor", "r": "registrar", "s": "student", "other": "student", "p": "parent_guardian"},
        (
            gatemem.Relation("a", "advisor_for", {"for_principal_id": "s"}),
            gatemem.Relation("p", "parent_of", {"for_principal_id": "s"}),
        ),
        (),
        (),
    )
    (circle,) = borders.groups(one, "G2")
    assert circle.members == {"a", "r", "s"}
    assert borders.readable([circle], one.roles)["p"] == {"p"}


@pytest.mark.skipif("SHARED_DATA" not in os.environ, reason="SHARED_DATA names no folder of evaluation sets")
def test_the_published_set_loads_with_the_counts_of_its_card():
    data = gatemem.load(Path(os.environ["SHARED_DATA"]) / "gatemem")
    assert {name: len(episodes) for name, episodes in data.domains.items()} == {"office": 17, "education": 30}
    asked = [one.kind for episode in data.domains["office"] for one in episode.checkpoints]
    assert (asked.count("utility"), asked.count("privacy"), asked.count("safety")) == (154, 171, 222)
    for name, mapping in borders.MAPPING.items():
        assert all(borders.groups(episode, mapping) for episode in data.domains[name])
    assert len(CHECKPOINTS) == 4
