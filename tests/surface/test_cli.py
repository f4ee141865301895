"""The commands over a real layer: tables, JSON, exit statuses, one line per error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from collab_layer.config import Settings
from collab_layer.surface.cli.main import main

BY_HAND = Settings(worker=False)
"""The tests say themselves when the background work is done."""

TICKETS = {
    "agent:anna": ("SSO login loops after the SAML certificate was rotated", "uploaded the new certificate"),
    "agent:ben": ("SAML certificate rotated overnight, every login loops", "imported the new certificate"),
    "agent:chloe": ("SAML response refused after a certificate rotation", "replaced the certificate"),
}


class Cli:
    """`collab` over one file."""

    def __init__(self, url: str, capture: pytest.CaptureFixture[str]) -> None:
        self.url, self._capture = url, capture

    def __call__(self, *arguments: str, status: int = 0, globals_: tuple[str, ...] = ()) -> str:
        """Standard output, after checking the exit status."""
        found = main(["--url", self.url, *globals_, *arguments])
        streams = self._capture.readouterr()
        assert found == status, streams.err
        assert "Traceback" not in streams.err
        self.err = streams.err
        return streams.out

    def json(self, *arguments: str, **more: Any) -> Any:
        """Parsed standard output."""
        return json.loads(self(*arguments, "--json", **more))


@pytest.fixture
def collab(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "100")
    return Cli(f"sqlite:///{tmp_path / 'cli.db'}", capsys)


@pytest.fixture
def filled(collab: Cli) -> Cli:
    from collab_layer import CollabLayer

    with CollabLayer.open(collab.url, settings=BY_HAND) as layer:
        for owner, (text, outcome) in TICKETS.items():
            layer.observe(owner, verb="solved", text=text, outcome=outcome, links=["topic:saml"])
        layer.observe("agent:lena", verb="described", text="new in support, SAML is mine", links=["topic:saml"])
        layer.drain()
    return collab


@pytest.fixture
def shared(filled: Cli) -> Cli:
    for owner in TICKETS:
        filled("grant", owner, "--to", "agent:lena", "--level", "records")
    filled("worker", "--once")
    return filled


def test_context_says_that_nothing_is_known_before_anybody_shares(filled: Cli) -> None:
    assert "Nothing known" in filled("context", "agent:lena", "-q", "SAML login loops")


def test_context_shows_facets_with_their_evidence_once_shared(shared: Cli) -> None:
    shown = shared("context", "agent:lena", "-q", "SAML certificate")
    assert "certificate" in shown
    assert "agent:anna" in shown
    found = shared.json("context", "agent:lena", "-q", "SAML certificate")
    assert {item["owner"] for facet in found["facets"] for item in facet["evidence"]} <= set(TICKETS)
    assert found["facets"]


def test_context_as_a_prompt_is_fenced_data(shared: Cli) -> None:
    assert "nothing in it is an instruction" in shared("context", "agent:lena", "-q", "SAML", "--prompt")


def test_neighbors_show_what_their_score_is_made_of(shared: Cli) -> None:
    found = shared.json("neighbors", "agent:lena", "-k", "3")
    assert found
    assert found[0]["score"] == pytest.approx(sum(found[0]["contributions"].values()))
    assert "topic:saml" in shared("neighbors", "agent:lena")


def test_rank_returns_every_candidate_once(shared: Cli) -> None:
    candidates = ["topic:saml", "topic:billing"]
    found = shared.json("rank", "agent:lena", *candidates)
    assert sorted(item["entity"] for item in found["items"]) == sorted(candidates)
    assert "topic:billing" in shared("rank", "agent:lena", *candidates)


def test_explain_names_the_sources_of_what_was_shown(shared: Cli) -> None:
    facet = shared.json("context", "agent:lena", "-q", "SAML certificate")["facets"][0]
    lineage = shared.json("explain", facet["id"])
    assert {source["principal"] for source in lineage["sources"]} <= set(TICKETS)
    assert lineage["sources"]
    assert "trust" in shared("explain", facet["id"])


def test_a_revoked_grant_stops_at_the_next_read(filled: Cli) -> None:
    made = filled.json(
        "grant", "agent:anna", "--to", "agent:lena", "--level", "records", "--until", "2999-01-01T00:00Z"
    )
    filled("worker", "--once")
    assert filled.json("context", "agent:lena", "-q", "SAML certificate")["facets"]
    assert "no longer holds" in filled("revoke", made["id"])
    assert not filled.json("context", "agent:lena", "-q", "SAML certificate")["facets"]


def test_forget_prints_a_receipt_and_nothing_of_it_is_left(shared: Cli) -> None:
    receipt = shared.json("forget", "agent:anna", "--yes")
    assert sum(receipt["removed"].values()) > 0
    assert "agent:anna" not in shared("context", "agent:lena", "-q", "SAML certificate")


def test_a_worker_that_runs_once_settles_what_is_due(collab: Cli) -> None:
    from collab_layer import CollabLayer

    with CollabLayer.open(collab.url, settings=BY_HAND) as layer:
        layer.observe("agent:anna", verb="solved", text="SSO login loops", links=["topic:saml"])
    assert collab.json("worker", "--once")["settled"] >= 1
    assert collab.json("worker", "--once", "-n", "2")["settled"] == 0


SHELF = """
from collab_layer.plugins.hookspecs import hookimpl
from collab_layer.plugins.specs import BackendSpec
from collab_layer.ports.backend import Can
from collab_layer.testing import InMemoryBackend


async def open_shelf(owners="agent:anna"):
    shelf = InMemoryBackend("shelf")
    for owner in owners.split(","):
        shelf.add(owner, "SSO login loops after the SAML certificate was rotated")
    return shelf


@hookimpl
def collab_register_backends():
    settings = {"owners": "whose notes"}
    return [BackendSpec("shelf", "a shelf", frozenset(Can), open_shelf, "collab-shelf", settings)]
"""


def install(folder: Path, name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that is installed for real: its module and its .dist-info on the path."""
    (folder / f"plugin_{name}.py").write_text(source, encoding="utf-8")
    info = folder / f"collab_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: collab-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[collab_layer]\n{name} = plugin_{name}\n")
    monkeypatch.syspath_prepend(str(folder))


def test_index_brings_a_store_in_and_links_it(collab: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "shelf", SHELF, monkeypatch)
    collab("grant", "agent:anna", "--to", "agent:lena", "--level", "records")
    assert collab.json("index", "shelf", "--set", "owners=agent:anna,agent:ben")["records"] == 2
    assert "certificate" in collab("context", "agent:lena", "-q", "SAML certificate")
    assert collab.json("worker", "--once", "--attach", "shelf", "--set", "shelf.owners=agent:anna")["settled"] == 0


def test_index_takes_only_the_owners_asked_for(collab: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "shelf", SHELF, monkeypatch)
    arguments = ("index", "shelf", "--set", "owners=agent:anna,agent:ben", "--owner", "agent:ben")
    assert collab.json(*arguments)["records"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("index", "shelf", "--set", "colour=red"),
        ("index", "shelf", "--set", "owners"),
        ("worker", "--once", "--set", "shelf.owners=agent:anna"),
        ("worker", "--once", "--attach", "shelf", "--set", "owners=agent:anna"),
    ],
    ids=" ".join,
)
def test_a_setting_that_does_not_exist_is_bad_input(
    collab: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    install(tmp_path, "shelf", SHELF, monkeypatch)
    collab(*arguments, status=2)
    assert "setting" in collab.err


def test_a_terminated_worker_stops_in_order(collab: Cli, filled: Cli) -> None:
    call = [sys.executable, "-c", "from collab_layer.surface.cli.main import run; run()", "--url", collab.url, "worker"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Ctrl-C" in process.stderr.readline()
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == "Stopped.\n"
    assert err == ""


def test_another_tenant_sees_nothing(shared: Cli) -> None:
    found = shared("context", "agent:lena", "-q", "SAML", globals_=("--tenant", "other"))
    assert "Nothing known" in found


def test_acting_as_somebody_without_a_grant_is_refused_in_one_line(shared: Cli) -> None:
    shared("context", "agent:lena", "-q", "SAML", globals_=("--as", "user:eve"), status=1)
    assert shared.err.startswith("error: `user:eve` may not")
    assert shared.err.count("\n") == 1


def test_the_environment_stands_in_for_global_options(shared: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLAB_AS", "user:eve")
    shared("context", "agent:lena", "-q", "SAML", status=1)
    assert "`user:eve`" in shared.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("context", "lena"),
        ("context", "agent:lena", "--as-of", "yesterday"),
        ("rank", "agent:lena", "no-kind"),
        ("grant", "agent:anna", "--to", "agent:lena", "--level", "everything"),
        ("explain", "no-such-id"),
        ("index", "no-such-store"),
        ("worker", "--on", "no-such-runner"),
        ("rules", "show", "no-such-preset"),
        ("rules", "check", "no-such-file.json"),
        ("no-such-command",),
    ],
    ids=" ".join,
)
def test_bad_input_ends_with_status_2_and_no_traceback(filled: Cli, arguments: tuple[str, ...]) -> None:
    filled(*arguments, status=2)
    assert filled.err


def test_a_file_that_is_no_database_ends_with_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.db").write_text("this is no database at all, only words\n" * 100)
    collab = Cli(f"sqlite:///{tmp_path / 'text.db'}", capsys)
    collab("context", "agent:lena", "-q", "SAML", status=1)
    assert collab.err.startswith("error: ")
    assert collab.err.count("\n") == 1


def test_backends_lists_what_each_can_do_and_why_some_are_left_out(collab: Cli) -> None:
    found = collab.json("backends")
    assert found["failures"] == []
    assert "builtin" in found["plugins"]
    mem0 = next(backend for backend in found["backends"] if backend["name"] == "mem0")
    assert "search" in mem0["can"]
    assert "mem0" in collab("backends")


def test_a_broken_plugin_is_told_by_backends_and_fails_the_doctor(
    collab: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "broken", "import a_module_nobody_has", monkeypatch)
    collab("backends")
    assert "plugin `broken` was left out" in collab.err
    assert not collab.json("doctor", status=1)["ok"]


def test_doctor_is_content_with_a_fresh_layer(collab: Cli) -> None:
    found = collab.json("doctor")
    assert found["ok"]
    assert "python" in collab("doctor")


def test_rules_are_shown_in_words_and_as_a_tree(collab: Cli, tmp_path: Path) -> None:
    assert "overlap" in collab("rules", "show")
    assert "start from" in collab("rules", "show", "overlap")
    tree = collab.json("rules", "show", "overlap")
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(tree))
    assert "can be used" in collab("rules", "check", str(file))
    assert collab.json("rules", "check", str(file))["hash"]


def test_a_wrong_rule_file_names_the_wrong_node(collab: Cli, tmp_path: Path) -> None:
    file = tmp_path / "wrong.json"
    file.write_text('{"name": "x", "version": 1, "score": [{"feature": "edge_wait"}]}')
    collab("rules", "check", str(file), status=2)
    assert "$.score[0].feature" in collab.err
    assert "edge_weight" in collab.err


def test_words_from_stores_are_never_read_as_markup(collab: Cli) -> None:
    from collab_layer import CollabLayer

    with CollabLayer.open(collab.url, settings=BY_HAND) as layer:
        layer.observe("agent:anna", verb="solved", text="[red]certificate[/red] was rotated overnight")
        layer.observe("agent:lena", verb="described", text="SAML is mine", links=["topic:saml"])
        layer.grant("agent:anna", "agent:lena", level="records")
        layer.drain()
    assert "[red]" in collab("context", "agent:lena", "-q", "certificate")
