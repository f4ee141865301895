"""Random erasures, and processes killed in their midst: no forgotten word in any byte of the files."""

from __future__ import annotations

import json
import random

import pytest

from collab_layer import CollabLayer
from collab_layer.bench import residue
from collab_layer.bench.residue_worker import perform
from collab_layer.bench.residue_world import World
from collab_layer.config import Settings
from collab_layer.graph.engine import Database
from collab_layer.surface.cli.main import main
from collab_layer.testing.memory import InMemoryBackend

BARS = ("residue", "residue_in_store", "complete_too_early", "lineage_dangling", "receipts_not_verified")


@pytest.fixture
def told(capsys):
    def run(*options):
        status = main(["bench", "erase", "--seed", "1", *options, "--json"])
        report = json.loads(capsys.readouterr().out)
        return status, report["command"], {row["name"].removeprefix("erase."): row["value"] for row in report["rows"]}

    return run


@pytest.mark.parametrize("store", ["none", "memory"])
def test_no_forgotten_word_is_left_whoever_was_killed(told, store):
    status, command, rows = told("--operations", "20", "--kills", "1", "--store", store)
    assert command == f"collab bench erase --operations 20 --kills 1 --store {store} --seed 1"
    assert status == 0
    assert [rows[name] for name in BARS] == [0, 0, 0, 0, 0]
    assert rows["erasures"] >= 20
    assert rows["words_forgotten"] > 10


@pytest.mark.slow
def test_nor_in_a_real_mem0(told):
    status, _, rows = told("--operations", "10", "--kills", "1", "--store", "mem0")
    assert status == 0
    assert [rows[name] for name in BARS] == [0, 0, 0, 0, 0]


def test_another_store_is_refused(capsys):
    assert main(["bench", "erase", "--store", "nowhere"]) != 0
    assert "none, memory, mem0" in capsys.readouterr().err


def test_without_writing_the_file_anew_copies_of_moved_rows_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setattr(Database, "rebuild", lambda database: None)
    world, found = World(random.Random(2)), set()
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        for _ in range(8):
            for op in world.batch():
                world.note(op, perform(layer, None, op))
                found |= residue.left(tmp_path, world.gone) if op["verb"] == "forget" else set()
    assert found


def test_words_that_a_store_would_still_give_are_found(told, monkeypatch):
    async def erase(store, refs, /):
        return len(refs)

    monkeypatch.setattr(InMemoryBackend, "erase", erase)
    status, _, rows = told("--operations", "10", "--kills", "0", "--store", "memory")
    assert status == 1
    assert rows["residue_in_store"] > 0


def test_a_word_is_found_in_any_file_of_ours_and_only_if_it_was_forgotten(tmp_path):
    (tmp_path / "collab.db-wal").write_bytes(b"\0ZQabcdefghijklmnopqr\0zqaaaaaaaaaaaaaaaaaa")
    assert residue.left(tmp_path, [b"zqabcdefghijklmnopqr", b"zqbbbbbbbbbbbbbbbbbb"]) == {b"zqabcdefghijklmnopqr"}
