"""Chroma's vector files lose what no vector uses, and nothing else."""

import json
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing

import chromadb
import pytest
from collab_layer_mem0.hnsw import blank_unused

SECRET = b"zanzibarpassphrase"
SAVED_FROM = 1_000
"""Additions after which Chroma saves an index."""


@pytest.fixture(params=["l2", "ip", "cosine"])
def space(request):
    return request.param


@pytest.fixture
def opened(tmp_path, space):
    return filled(tmp_path, space, 0)


def filled(folder, space, many):
    """A folder with one collection, and the folder of its index."""
    kept = collection(folder, space)
    for start in range(0, max(many, 1), 100):
        numbers = range(start, min(start + 100, max(many, 1)))
        kept.add(ids=[f"{n}" for n in numbers], embeddings=[vector(n) for n in numbers])
    (header,) = folder.glob("*/header.bin")
    return header.parent


def collection(folder, space):
    return chromadb.PersistentClient(folder).get_or_create_collection(
        "notes", configuration={"hnsw": {"space": space}}, embedding_function=None
    )


def vector(number):
    return [3.0 + number, 4.0, 1.0]


def by_chance(file, start):
    """Words where Chroma wrote nothing."""
    said = bytearray(file.read_bytes())
    assert len(said) > start + len(SECRET)
    said[-len(SECRET) :] = SECRET
    said[start : start + len(SECRET)] = SECRET
    file.write_bytes(said)


READ = """
import chromadb, sys
kept = chromadb.PersistentClient(sys.argv[1]).get_collection("notes", None)
print(kept.query([[13.0, 4.0, 1.0]], n_results=5), kept.get(["7"], include=["embeddings"]), kept.count())
"""


def read_anew(folder):
    """What a new process finds there."""
    done = subprocess.run([sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout


def test_room_that_no_vector_uses_is_blank_afterwards(tmp_path, opened):
    for name in ("data_level0.bin", "length.bin"):
        by_chance(opened / name, 0)
        long = (opened / name).stat().st_size
        blank_unused(tmp_path)
        assert (opened / name).read_bytes() == bytes(long)


def test_lengths_that_an_index_does_not_know_are_blank(tmp_path, space):
    index = filled(tmp_path, space, 2 * SAVED_FROM)
    lengths = (index / "length.bin").read_bytes()
    assert len(lengths) >= 4 * SAVED_FROM
    blank_unused(tmp_path)
    if space == "cosine":
        assert (index / "length.bin").read_bytes() == lengths
    else:
        assert not any((index / "length.bin").read_bytes())


def test_a_collection_of_a_chroma_before_schemas_is_understood(tmp_path, space):
    index = filled(tmp_path, space, 2 * SAVED_FROM)
    by_chance(index / "length.bin", 0)
    lengths = (index / "length.bin").read_bytes()
    with closing(sqlite3.connect(tmp_path / "chroma.sqlite3")) as database, database:
        told = json.dumps({"vector_index": {"hnsw": {"space": space}}})  # as Chroma 1.0 writes it
        database.execute("UPDATE collections SET config_json_str = ?", (told,))
        database.execute("ALTER TABLE collections DROP COLUMN schema_str")
    blank_unused(tmp_path)
    assert (index / "length.bin").read_bytes() == (lengths if space == "cosine" else bytes(len(lengths)))


def test_vectors_are_found_and_read_as_before_by_a_process_that_opens_them_anew(tmp_path, space):
    index = filled(tmp_path, space, 2 * SAVED_FROM)
    used = struct.unpack_from("<iQQQQ", (index / "header.bin").read_bytes())[3]
    assert used >= SAVED_FROM
    before = read_anew(tmp_path)
    assert "10." in before  # the seventh's first value
    blank_unused(tmp_path)
    assert read_anew(tmp_path) == before


def test_a_layout_that_is_not_known_is_no_silent_success(tmp_path, opened):
    header = opened / "header.bin"
    header.write_bytes(struct.pack("<i", 2) + header.read_bytes()[4:])
    with pytest.raises(OSError, match="version 2"):
        blank_unused(tmp_path)
