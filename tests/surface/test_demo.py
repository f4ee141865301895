"""The demo, played for real over Mem0 and Chroma, and measured on a tiny set."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collab_layer.surface.cli.demo_play import SCENES, scene_data
from collab_layer.surface.cli.main import main


def collab(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-c", "from collab_layer.surface.cli.main import run; run()", *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.fixture(scope="session")
def played() -> dict[str, Any]:
    done = collab("demo", "--json")
    assert done.returncode == 0, done.stderr
    return {scene["name"]: scene for scene in json.loads(done.stdout)}


def texts(told: list[dict[str, Any]]) -> str:
    return " ".join([line["text"] for line in told] + [quote for line in told for quote in line["evidence"]])


def test_every_scene_is_played(played) -> None:
    assert list(played) == list(SCENES)


def test_alone_nobody_learns_anything_from_anybody(played) -> None:
    for scene in played.values():
        assert all(line["support"] is None for asked in scene["asked"] for line in asked["alone"])


def test_own_results_come_first_and_unchanged(played) -> None:
    for scene in played.values():
        for asked in scene["asked"]:
            assert asked["together"][: len(asked["alone"])] == asked["alone"]


def test_the_fix_of_agent_a_reaches_agent_b_with_its_evidence(played) -> None:
    asked = played["agents"]["asked"][0]
    assert "genproto@latest" not in texts(asked["alone"])
    best = next(line for line in asked["together"] if line["support"] is not None)
    assert "genproto@latest" in best["text"]
    assert best["evidence"][0].startswith("agent:coder-a")


def test_what_happened_later_is_propagated(played) -> None:
    assert "checksum mismatch" in texts(played["agents"]["news"]["updates"])


def test_what_was_forgotten_is_gone(played) -> None:
    forgotten = played["agents"]["forgotten"]
    assert forgotten["rows"] > 0
    left = texts(forgotten["left"])
    assert "genproto" not in left
    assert "coder-a" not in left


def test_the_new_support_agent_gets_pitfalls_and_nobodys_words_or_name(played) -> None:
    data, scene = scene_data("support"), played["support"]
    assert len({record["owner"] for record in data["records"]}) >= 9
    facets = [line for asked in scene["asked"] for line in asked["together"] if line["support"] is not None]
    shown = texts(facets)
    assert all(line["contributors"] >= 3 for line in facets)
    assert not any(line["evidence"] for line in facets)
    assert not any(record["text"] in shown or record["owner"] in shown for record in data["records"])
    for asked in scene["asked"]:
        assert any(line["support"] is not None for line in asked["together"])
    assert "import-the-new-signing-key" in texts(scene["asked"][0]["together"])


def test_readers_bring_the_next_book_up(played) -> None:
    ranks = played["books"]["ranks"]
    alone, together = ([one["name"] for one in ranks[side]] for side in ("alone", "together"))
    assert sorted(alone) == sorted(together)
    assert together.index(ranks["taken"]) < alone.index(ranks["taken"])


def test_russian_records_are_part_of_every_scene() -> None:
    for name in SCENES:
        said = " ".join(record.get("text", "") for record in scene_data(name)["records"])
        assert any("а" <= letter <= "я" for letter in said)


def test_off_a_terminal_the_demo_is_plain_text_of_the_width_asked_for() -> None:
    done = collab("demo", "--scene", "agents", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert "with neighbours" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""


def test_without_the_adapter_one_sentence_says_what_to_install(capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "collab_layer_mem0", None)
    assert main(["demo"]) == 1
    said = capsys.readouterr().err
    assert "pip install collab-layer-mem0" in said
    assert said.count("\n") == 1


def test_an_unknown_scene_is_bad_input(capsys) -> None:
    assert main(["demo", "--scene", "opera"]) == 2
    assert "support, agents, books" in capsys.readouterr().err


# -- --data ------------------------------------------------------------------------------


def small_set(folder: Path, users: int = 40, items: int = 60) -> Path:
    """Two tastes, in the layout of the sequence sets: even users like even films."""
    random = np.random.default_rng(0)
    chance = np.array([[9.0 if item % 2 == half else 1.0 for item in range(items)] for half in (0, 1)])
    chance /= (1.0 + np.arange(items) // 2) * 1.0
    chance /= chance.sum(axis=1, keepdims=True)
    lists = [random.choice(items, 12, replace=False, p=chance[user % 2]).tolist() for user in range(users)]
    folder.mkdir()
    for name, part in (("train", slice(0, -4)), ("valid", slice(-4, -2)), ("test", slice(-2, None))):
        lines = [" ".join(map(str, [user, *held[part]])) for user, held in enumerate(lists)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / "movie_detail.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["movie_id", "title", "genres", "rating", "summary"])
        for item in range(items):
            out.writerow([item, f"Film {item} (1999)", "Drama", 3.5, "A ship." if item % 2 else "A robot."])
    return folder


def test_data_prints_one_row_per_figure_with_what_the_run_took(tmp_path, capsys) -> None:
    status = main(["demo", "--data", str(small_set(tmp_path / "films")), "--seeds", "1", "--json"])
    report = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in report["rows"]}
    assert {"command", "data_sha256", "seed", "embedder", "rows"} <= set(report)
    for metric in ("isolated.h1", "ours.h1", "ours.n5", "ours.harm", "ours.lift"):
        assert any(name.endswith(metric) for name in rows), metric
    assert rows["run.seconds"]["value"] > 0
    assert rows["run.peak_rss_mb"]["unit"] == "MB"
    assert status == (0 if all(row["ok"] is not False for row in report["rows"]) else 1)


def test_data_prints_a_table_per_kind_of_candidates(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    main(["demo", "--data", str(small_set(tmp_path / "films")), "--seeds", "1"])
    shown = capsys.readouterr().out
    assert "H@1" in shown
    assert "isolated" in shown
    assert "harm" in shown
    assert " MB;" in shown


def test_a_folder_without_data_is_bad_input(tmp_path, capsys) -> None:
    assert main(["demo", "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
