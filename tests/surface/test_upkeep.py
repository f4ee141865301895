"""`collab consolidate`: what it says, and that it changes nothing where it is not to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.surface.cli import upkeep
from collab_layer.surface.cli.main import main
from collab_layer.types.upkeep import CHANGES, Consolidation

BY_HAND = Settings(worker=False)


class Cli:
    """`collab` over one file."""

    def __init__(self, url: str, capture: pytest.CaptureFixture[str]) -> None:
        self.url, self._capture = url, capture

    def __call__(self, *arguments: str, status: int = 0) -> str:
        found = main(["--url", self.url, *arguments])
        streams = self._capture.readouterr()
        assert found == status, streams.err
        self.err = streams.err
        return streams.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def collab(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "100")
    url = f"sqlite:///{tmp_path / 'cli.db'}"
    with CollabLayer.open(url, settings=BY_HAND) as layer:
        for who in ("user:a", "user:b", "user:c"):
            for n in range(4):
                layer.observe(who, f"item:{n}", verb="held")
        for teller in ("user:a", "user:c"):
            layer.grant(teller, "user:b", "records")
        layer.drain()
        for teller in ("user:a", "user:c"):
            layer.observe(teller, text="Dune is the best desert book", links=["item:1"])
        layer.drain()
    return Cli(url, capsys)


def test_a_dry_run_says_what_would_change_and_the_real_one_what_did(collab: Cli) -> None:
    dry = collab.json("consolidate", "--dry-run")
    assert (dry["dry_run"], dry["merged"], dry["parts"]) == (True, 1, 2)
    assert collab.json("consolidate", "--dry-run")["merged"] == 1
    shown = collab("consolidate")
    assert upkeep.MEANING["merged"] in shown
    assert "changed" in shown
    assert "Nothing changed." in collab("consolidate")
    assert collab.json("consolidate")["merged"] == 0


def test_a_principal_may_not_tidy(collab: Cli) -> None:
    assert collab("--as", "user:a", "consolidate", status=1) == ""
    assert collab.err.startswith("error: `user:a` may not")


def test_every_kind_of_change_has_words_for_people_and_a_field_in_the_report() -> None:
    assert tuple(upkeep.MEANING) == CHANGES
    assert set(CHANGES) <= set(Consolidation.model_fields)
    whole = Consolidation(**dict.fromkeys(CHANGES, 1), owners=9)
    assert whole.changes == dict.fromkeys(CHANGES, 1)


def test_edges_between_things_are_made_by_a_command(collab: Cli) -> None:
    assert collab.json("rebuild") == {
        "edges": 0,
        "things": 0,
        "owners": 0,
        "method": "none",
        "seconds": pytest.approx(0, abs=60),
    }
    assert "everybody may read" in collab("rebuild")


def test_the_gate_and_what_neighbours_changed_are_told_by_commands(collab: Cli) -> None:
    assert collab.json("refit")["state"] == "untested"
    assert "The gate is untested" in collab("refit")
    assert collab.json("lift")["replay"]["together_cases"] == 0
    assert "Experiment: nothing yet" in collab("lift")
    names = [row["name"] for row in collab.json("bench", "live")["rows"]]
    assert "live.all.replay.change" in names
    assert "live.gate" in names
