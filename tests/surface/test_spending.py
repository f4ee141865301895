"""`collab usage`, and what `collab doctor` says of language models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.surface.cli.main import main
from collab_layer.testing import FakeOpenAI, ScriptedModel
from collab_layer.testing.openai_server import completion, problem


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'cli.db'}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    """A model in the environment, as a user sets it."""
    with FakeOpenAI() as server:
        server.will(completion('{"here": true}'))
        monkeypatch.setenv("COLLAB_MEMORY_MODEL", "openai:small")
        monkeypatch.setenv("COLLAB_MEMORY_BASE_URL", server.url)
        monkeypatch.setenv("COLLAB_MEMORY_API_KEY", "sk-canary")
        monkeypatch.setenv("COLLAB_MEMORY_RETRIES", "0")
        yield server


@pytest.fixture
def collab(url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "140")

    def run(*arguments: str, status: int = 0) -> str:
        found = main(["--url", url, *arguments])
        streams = capsys.readouterr()
        assert found == status, streams.err
        assert "sk-canary" not in streams.out + streams.err
        return streams.out

    return run


def conditions(printed: str) -> dict[str, str]:
    return {part["name"]: part["condition"] for part in json.loads(printed)["parts"] if "model" in part["name"]}


def test_doctor_says_that_the_rules_do_the_work_where_no_model_is_set(collab):
    assert conditions(collab("doctor", "--json")) == {"memory model": "rules", "reasoning model": "rules"}


def test_doctor_names_the_model_and_asks_nobody(collab, server):
    printed = collab("doctor")
    assert "openai:small" in printed
    assert conditions(collab("doctor", "--json")) == {"memory model": "set", "reasoning model": "rules"}
    assert server.requests == []


def test_doctor_asks_where_it_is_told_to_and_the_question_is_counted(collab, server):
    assert conditions(collab("doctor", "--ask-models", "--json")) == {"memory model": "ok", "reasoning model": "rules"}
    (row,) = json.loads(collab("usage", "--json"))
    assert (row["role"], row["stage"], row["calls"], row["input_tokens"]) == ("memory", "check", 1, 11)


def test_a_model_that_does_not_answer_is_down_and_so_is_the_exit_status(collab, server):
    server.will(problem(401))
    printed = collab("doctor", "--ask-models", "--json", status=1)
    assert conditions(printed)["memory model"] == "down"
    assert "does not accept the key" in printed


def test_a_model_that_cannot_be_opened_is_one_row_beside_all_others(collab, monkeypatch):
    monkeypatch.setenv("COLLAB_REASONING_MODEL", "nobody:gpt")
    printed = collab("doctor", "--json", status=1)
    assert conditions(printed) == {"models": "down"}
    assert "there is no provider `nobody`" in printed
    assert {part["name"]: part["condition"] for part in json.loads(printed)["parts"]}["graph"] == "empty"


def test_doctor_for_one_principal_is_silent_about_models(collab):
    assert conditions(collab("--as", "user:bob", "doctor", "--json")) == {}


def test_usage_sums_up_in_a_table(collab, url):
    model = ScriptedModel([{"here": True}] * 2, name="scripted:one")
    with CollabLayer.open(url, memory_model=model, settings=Settings(worker=False)) as layer:
        for _ in range(2):
            layer.models(ask=True)
    printed = collab("usage", "--days", "7")
    assert "scripted:one" in printed
    assert "2 calls" in printed
    assert "No language model was asked" in collab("--tenant", "other", "usage")


@pytest.mark.parametrize("days", ["0", "401", "many"])
def test_usage_looks_back_1_to_400_days(collab, days):
    collab("usage", "--days", days, status=2)


def test_usage_is_the_operators_to_see(collab):
    collab("--as", "user:bob", "usage", status=1)
