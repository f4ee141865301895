"""What is forgotten at its source is in no byte of Mem0's files, nor of ours."""

import pytest
from collab_layer_mem0.backend import Mem0Backend

from collab_layer import CollabLayer
from collab_layer.config import Settings

SECRET = "zanzibarpassphrase"


def residue(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if SECRET.encode() in path.read_bytes().lower()]


@pytest.fixture
def told(chroma):
    """Ann said it, had it noted, changed it; Bob said something else."""
    added = chroma.add(f"My {SECRET} is hidden in the lighthouse", user_id="ann", infer=False)
    chroma.add([{"role": "user", "content": f"I told {SECRET} to nobody"}], user_id="ann")
    chroma.update(added["results"][0]["id"], f"My {SECRET} moved to the tower")
    chroma.add("Bob likes worms", user_id="bob", infer=False)
    return chroma


def test_forgetting_an_owner_at_the_source_leaves_no_byte_in_any_file(told, tmp_path):
    url = f"sqlite:///{tmp_path / 'collab.db'}"
    with CollabLayer.open(url, settings=Settings(worker=False)) as layer:
        layer.index(Mem0Backend(told))
        layer.drain()
        assert {"history.db", "chroma.sqlite3"} <= set(residue(tmp_path))
        receipt = layer.forget("user:ann", source=True)
        assert (receipt.status, receipt.stores) == ("complete", {"mem0": "erased"})
        assert residue(tmp_path) == []
        assert [one["memory"] for one in told.get_all(filters={"user_id": "bob"})["results"]] == ["Bob likes worms"]


def test_a_plain_deletion_leaves_words_behind_so_that_the_test_above_shows_something(told, tmp_path):
    for one in told.get_all(filters={"user_id": "ann"})["results"]:
        told.delete(one["id"])
    assert {"history.db", "chroma.sqlite3"} <= set(residue(tmp_path))
