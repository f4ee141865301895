"""The page on language models: its examples run, its tables name what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from collab_layer import errors
from collab_layer.config import RoleSettings
from collab_layer.flows.models import QUESTION
from collab_layer.flows.reason import SHOWN
from collab_layer.stages import recurrence
from collab_layer.stages.asked import answer, facets, ranking, rules, schema, updates
from collab_layer.types.asking import Stage

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_runs_and_sends_nothing(tmp_path: Path) -> None:
    program = "\n".join([*BLOCKS, "layer.close()"])
    own = {"COLLAB_WORKER": "false", "OPENAI_API_KEY": ""}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "memory set qwen2.5:7b" in done.stdout
    assert "reasoning set qwen2.5:32b" in done.stdout


def rows(heading: str) -> list[str]:
    """The first cells of the table under a heading, as code."""
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)


def test_every_setting_of_a_role_has_its_row_and_its_default() -> None:
    assert rows("Set one up") == list(RoleSettings.model_fields)
    assert "at most 50 | 30 |" in PAGE
    assert RoleSettings().timeout_s == 30
    assert "0 to 5 | 2 |" in PAGE
    assert RoleSettings().retries == 2


def test_every_stage_that_may_ask_has_its_row() -> None:
    assert sorted(rows("What is asked, and how much")) == sorted(get_args(Stage))


def test_the_sizes_are_those_of_the_code() -> None:
    cells = {row.split("`")[1]: row for row in PAGE.splitlines() if row.startswith("| `")}
    longest = schema.reply_tokens(facets.MAX_FACETS, facets.TEXT_CHARS, facets.SUPPORT, cyrillic=False)
    assert f"| {facets.BUDGET_TOKENS:,} | {longest} for seven facets |" in cells["synthesize"]
    assert f"| {updates.EVENTS} events, the actor and {updates.FANOUT} neighbours |" in cells["propagate"]
    assert f"| {ranking.BUDGET_TOKENS}, and 24 for each" in cells["rank"]
    assert f"| {answer.BUDGET_TOKENS:,} | {answer.MAX_CLAIMS} sentences |" in cells["answer"]
    assert f"| {rules.MAX_TOKENS:,} |" in cells["rules"]
    assert f"| {QUESTION.max_tokens} |" in cells["check"]
    assert f"at most {SHOWN['listwise']} (`listwise`) or {SHOWN['pointwise']};" in PAGE
    assert {3: "three", 4: "four", 5: "five"}[recurrence.COUNT] + " times" in PAGE


@pytest.mark.parametrize(
    "error", [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ModelError)]
)
def test_every_failure_of_a_model_is_on_the_page(error: type[errors.ModelError]) -> None:
    assert error is errors.ModelError or f"`{error.__name__}`" in PAGE
