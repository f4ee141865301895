"""What is forgotten at its source is in no byte of Mem0's files, nor of ours."""

import asyncio

import pytest
from collab_layer_mem0.backend import Mem0Backend
from collab_layer_mem0.testing import open_memory

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.ports.backend import Can
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import Entity

SECRET = "zanzibarpassphrase"


def residue(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if SECRET.encode() in path.read_bytes().lower()]


KEEPS = {"chroma": {"chroma.sqlite3"}, "qdrant": {"storage.sqlite"}, "faiss": set()}
"""Files of vector stores that keep words of what Mem0 deletes. Those of FAISS are written anew as a whole."""


def tell(memory):
    """Ann said it, had it noted, changed it; Bob said something else."""
    added = memory.add(f"My {SECRET} is hidden in the lighthouse", user_id="ann", infer=False)
    memory.add([{"role": "user", "content": f"I told {SECRET} to nobody"}], user_id="ann")
    memory.update(added["results"][0]["id"], f"My {SECRET} moved to the tower")
    memory.add("Bob likes worms", user_id="bob", infer=False)
    return memory


@pytest.fixture
def told(bare, store):
    if store == "qdrant":  # as SQLite is built on most systems
        kept = bare.vector_store.client._client.collections["memories"].storage.storage
        kept.execute("PRAGMA secure_delete=OFF")
    return tell(bare)


def of(memory, owner):
    return [one["memory"] for one in memory.get_all(filters={"user_id": owner})["results"]]


def forgotten(memory, tmp_path):
    """The receipt of forgetting Ann, here and in the store."""
    with CollabLayer.open(f"sqlite:///{tmp_path / 'collab.db'}", settings=Settings(worker=False)) as layer:
        layer.index(Mem0Backend(memory))
        layer.drain()
        return layer.forget("user:ann", source=True)


def test_forgetting_an_owner_at_the_source_leaves_no_byte_in_any_file(told, store, tmp_path):
    assert {"history.db"} | KEEPS[store] <= set(residue(tmp_path))
    receipt = forgotten(told, tmp_path)
    assert (receipt.status, receipt.stores) == ("complete", {"mem0": "erased"})
    assert residue(tmp_path) == []
    assert (of(told, "ann"), of(told, "bob")) == ([], ["Bob likes worms"])


def test_a_plain_deletion_leaves_words_behind_so_that_the_test_above_shows_something(told, store, tmp_path):
    for one in told.get_all(filters={"user_id": "ann"})["results"]:
        told.delete(one["id"])
    assert {"history.db"} | KEEPS[store] == set(residue(tmp_path))


def test_what_was_delivered_and_taken_back_is_in_no_row_of_the_history(bare):
    backend = Mem0Backend(bare, write=True)
    told = derived(Entity.parse("user:bob"), SECRET)

    def rows():
        return f"{bare.db.connection.execute('SELECT * FROM history').fetchall()}"

    asyncio.run(backend.write([told]))
    assert SECRET in rows()
    assert asyncio.run(backend.retract([told.id])) == 1
    assert SECRET not in rows()
    assert asyncio.run(backend.retract([told.id])) == 0


def test_a_file_that_faiss_could_not_write_keeps_the_receipt_pending(tmp_path):
    memory = tell(open_memory(tmp_path / "mem0", "faiss"))
    kept = tmp_path / "mem0" / "faiss" / "memories.json"
    words = kept.read_bytes()
    kept.unlink()
    kept.mkdir()  # now nothing can be written there, which Mem0 only logs
    with CollabLayer.open(f"sqlite:///{tmp_path / 'collab.db'}", settings=Settings(worker=False)) as layer:
        layer.index(Mem0Backend(memory))
        layer.drain()
        receipt = layer.forget("user:ann", source=True)
        assert (receipt.status, receipt.stores) == ("pending", {"mem0": "pending"})
        kept.rmdir()
        kept.write_bytes(words)
        layer.drain()
        assert layer.receipt(receipt.id).status == "pending"
        memory.add("Bob likes dunes", user_id="bob", infer=False)
        layer.drain()
        assert layer.receipt(receipt.id).status == "complete"
        assert residue(tmp_path) == []
    memory.close()


def test_over_a_vector_store_elsewhere_nothing_is_promised(tmp_path):
    memory = open_memory(tmp_path / "mem0", "qdrant")
    memory.config.vector_store.config.host = "qdrant.example"
    assert Can.ERASE not in Mem0Backend(memory).can
    memory.vector_store.client.close()
    memory.close()
