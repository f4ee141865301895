"""Random erasures, and processes killed in their midst: no forgotten word in any byte of the files."""

from __future__ import annotations

import json

import pytest

from collab_layer.bench import residue
from collab_layer.graph.engine import Database
from collab_layer.surface.cli.main import main

BARS = ("residue", "complete_too_early", "lineage_dangling", "receipts_not_verified")


@pytest.fixture
def told(capsys):
    def run(*options):
        status = main(["bench", "erase", "--seed", "1", *options, "--json"])
        report = json.loads(capsys.readouterr().out)
        return status, report["command"], {row["name"].removeprefix("erase."): row["value"] for row in report["rows"]}

    return run


def test_no_forgotten_word_is_left_whoever_was_killed(told):
    status, command, rows = told("--operations", "20", "--kills", "0.5")
    assert command == "collab bench erase --operations 20 --kills 0.5 --seed 1"
    assert status == 0
    assert [rows[name] for name in BARS] == [0, 0, 0, 0]
    assert rows["erasures"] >= 20
    assert rows["words_forgotten"] > 10


def test_without_writing_the_file_anew_copies_of_moved_rows_would_be_found(told, monkeypatch):
    monkeypatch.setattr(Database, "rebuild", lambda database: None)
    status, _, rows = told("--operations", "100", "--kills", "0")
    assert status == 1
    assert rows["complete_too_early"] > 0


def test_a_word_is_found_in_any_file_and_only_if_it_was_forgotten(tmp_path):
    (tmp_path / "a.db-wal").write_bytes(b"\0ZQabcdefghijklmnopqr\0zqaaaaaaaaaaaaaaaaaa")
    assert residue.left(tmp_path, [b"zqabcdefghijklmnopqr", b"zqbbbbbbbbbbbbbbbbbb"]) == {b"zqabcdefghijklmnopqr"}
