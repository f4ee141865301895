"""`collab export`, `collab import`, `collab alias`, and `collab explain` as a tree; over a real layer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings

from .test_governing import Cli


@pytest.fixture
def collab(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "200")
    url = f"sqlite:///{tmp_path / 'cli.db'}"
    with CollabLayer.open(url, settings=Settings(worker=False)) as layer:
        for n in range(3):
            for book in ("dune", "hyperion"):
                layer.observe(f"user:p{n}", f"item:{book}", verb="liked", text=f"[red]canary{n}[/red] {book}")
            layer.grant(f"user:p{n}", "federation:all", "facets")
            layer.grant(f"user:p{n}", "user:zoe", "records")
        layer.observe("user:zoe", "item:dune", verb="liked")
        layer.drain()
        layer.for_tenant("theirs").observe("user:zoe", "item:dune", verb="liked")
        layer.for_tenant("theirs").drain()
    return Cli(url, capsys)


def test_a_bundle_goes_from_one_tenant_to_another_and_is_taken_back(collab: Cli, tmp_path: Path) -> None:
    path, listed = tmp_path / "bundle.json", tmp_path / "revoked.json"
    assert "3 facets for federation:all" in collab("export", str(path))
    bundle = json.loads(path.read_text())
    assert "canary" not in path.read_text()
    collab("--tenant", "theirs", "import", str(path), status=1)
    assert bundle["key"] in collab.err
    trust = f"{bundle['key']}=0.3"
    assert collab.json("--tenant", "theirs", "import", str(path), "--trust", trust)["taken"] == 3
    assert "Elsewhere, unverified" in collab("--tenant", "theirs", "context", "user:zoe")
    assert collab.json("export")[0]["state"] == "issued"
    assert bundle["id"] in collab("export", str(listed), "--revoke", bundle["id"])
    assert "dropped" in collab("--tenant", "theirs", "import", str(listed))
    assert "Elsewhere" not in collab("--tenant", "theirs", "context", "user:zoe")
    assert "revoked" in collab("export")


def test_bad_words_of_the_command_are_one_line(collab: Cli, tmp_path: Path) -> None:
    for arguments in (
        ("export", "--revoke", "b0"),
        ("export", str(tmp_path / "no" / "such" / "folder.json")),
        ("import", str(tmp_path / "missing.json")),
        ("import", str(tmp_path), "--trust", "KEY"),
        ("alias", "agent:a"),
        ("alias", "agent:a", "--remove"),
        ("alias", "--remove"),
    ):
        collab(*arguments, status=2)
        assert collab.err.count("\n") == 1
    assert not list(tmp_path.glob(".*.part"))


def test_aliases_are_said_listed_and_taken_back(collab: Cli) -> None:
    assert "counts by itself" in collab("alias")
    assert "user:p0" in collab("alias", "user:p1", "user:p0")
    assert [one["principal"] for one in collab.json("alias")] == ["user:p0"]
    assert collab.json("alias", "user:p1", "--remove") == []


def test_explain_draws_a_tree_and_takes_texts_literally(collab: Cli) -> None:
    facet = collab.json("context", "user:zoe")["facets"][0]
    drawn = collab("explain", facet["id"])
    assert "└── " in drawn
    assert "user:p0" in drawn
    assert "[red]" in drawn
    cut = collab("explain", facet["id"], "--width", "2")
    assert "more" in cut
    whole = collab.json("explain", facet["id"])
    assert whole["nodes"] == len(whole["sources"]) > 2
    assert whole["sources"][0]["kind"] in ("record", "holding")
