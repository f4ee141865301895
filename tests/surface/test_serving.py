"""`collab token`: a secret is shown once, to the operator alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.errors import TokenRefusedError
from collab_layer.surface.cli.main import main


class Cli:
    """`collab` over one file."""

    def __init__(self, url: str, capture: pytest.CaptureFixture[str]) -> None:
        self.url, self._capture = url, capture
        self.err = ""

    def __call__(self, *arguments: str, status: int = 0, globals_: tuple[str, ...] = ()) -> str:
        found = main(["--url", self.url, *globals_, *arguments])
        streams = self._capture.readouterr()
        self.err = streams.err
        assert found == status, streams.err
        return streams.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))

    def opens(self, token: str) -> str:
        """As whom a token opens the layer."""
        with CollabLayer.open(self.url, settings=Settings(worker=False)) as layer:
            view = layer.open_with(token)
            return f"{view.tenant}/{view.principal}"


@pytest.fixture
def collab(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "120")
    return Cli(f"sqlite:///{tmp_path / 'cli.db'}", capsys)


def test_a_token_goes_to_stdout_alone_and_everything_about_it_to_stderr(collab: Cli) -> None:
    printed = collab("token", "issue", "agent:b", "--for", "support")
    token = printed.strip()
    assert printed == f"{token}\n"
    assert "agent:b for `support`" in collab.err
    assert token not in collab.err
    assert collab.opens(token) == "default/agent:b"


def test_a_token_is_of_the_tenant_that_was_named(collab: Cli) -> None:
    token = collab("token", "issue", "agent:b", globals_=("--tenant", "фирма")).strip()
    assert collab.opens(token) == "фирма/agent:b"
    assert collab.json("token", "list") == []


def test_tokens_are_listed_without_their_text(collab: Cli) -> None:
    made = collab.json("token", "issue", "agent:b", "--days", "7")
    assert timedelta(days=6) < datetime.fromisoformat(made["until"]) - datetime.now(UTC) <= timedelta(days=7)
    listed = collab("token", "list", "--json")
    assert made["id"] in listed
    assert made["text"].rpartition(".")[2] not in listed
    shown = collab("token", "list")
    assert made["id"] in shown
    assert "holds until" in shown
    assert made["text"].rpartition(".")[2] not in shown


def test_a_revoked_token_no_longer_holds(collab: Cli) -> None:
    made = collab.json("token", "issue", "agent:b", "--until", "2999-01-01T00:00Z")
    assert "no longer holds" in collab("token", "revoke", made["id"])
    assert "revoked" in collab("token", "list")
    with pytest.raises(TokenRefusedError):
        collab.opens(made["text"])
    collab("token", "revoke", made["id"], status=2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("issue", "agent"),
        ("issue", "kind:agent"),
        ("issue", "agent:b", "--days", "0"),
        ("issue", "agent:b", "--days", "1", "--until", "2999-01-01T00:00Z"),
        ("issue", "agent:b", "--until", "2020-01-01T00:00Z"),
        ("issue", "agent:b", "--until", "tomorrow"),
        ("revoke", "t0123456789abcdef"),
    ],
    ids=" ".join,
)
def test_bad_input_ends_with_status_2(collab: Cli, arguments: tuple[str, ...]) -> None:
    collab("token", *arguments, status=2)
    assert collab.err
    assert collab.json("token", "list") == []


@pytest.mark.parametrize("arguments", [("issue", "agent:b"), ("list",), ("revoke", "t0123456789abcdef")], ids=" ".join)
def test_tokens_are_the_operators(collab: Cli, arguments: tuple[str, ...]) -> None:
    collab("token", *arguments, status=1, globals_=("--as", "agent:b"))
    assert "agent:b" in collab.err
