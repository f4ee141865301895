"""The benchmark that a user runs with a model of their own, end to end over the small one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from collab_layer.surface.cli.main import main

from .conftest import NAME

pytestmark = [pytest.mark.llm, pytest.mark.timeout(600)]


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """Twenty users with ten films each, in the layout of the 1,000-user selection of MovieLens-1M."""
    held = {user: [(user * 3 + step * (2 + user % 3)) % 40 for step in range(10)] for user in range(20)}
    held = {user: list(dict.fromkeys(items)) for user, items in held.items()}
    for name, part in (("train", slice(0, -4)), ("valid", slice(-4, -2)), ("test", slice(-2, None))):
        lines = [" ".join(map(str, [user, *items[part]])) for user, items in held.items()]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (tmp_path / "movie_detail.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["movie_id", "title", "genres", "rating", "summary"])
        out.writerows([item, f"Film {item} (1999)", "Drama", 3.5, "A ship, a storm."] for item in range(40))
    return tmp_path


def test_the_ablation_runs_over_a_real_model_and_counts_what_it_cost(small_model, films, monkeypatch, capsys):
    monkeypatch.setenv("COLLAB_REASONING_BASE_URL", small_model)
    monkeypatch.setenv("COLLAB_REASONING_TIMEOUT_S", "6")
    arguments = ["bench", "lift", "--data", str(films), "--reasoning-model", NAME, "--users", "2", "--json"]
    assert main(arguments) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    for variant in ("real", "shuffled", "lorem", "empty"):
        assert 0 <= rows[f"ml1m.pop9.{variant}.h1"] <= 1
        assert rows[f"ml1m.pop9.{variant}.calls_per_user"] >= 1
        assert rows[f"ml1m.pop9.{variant}.tokens_in_per_user"] > 100
