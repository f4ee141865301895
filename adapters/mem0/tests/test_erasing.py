"""What is forgotten at its source is in no byte of Mem0's files, nor of ours."""

import asyncio
import contextlib
import sqlite3

import pytest
from collab_layer_mem0 import client
from collab_layer_mem0.backend import Mem0Backend
from collab_layer_mem0.testing import EchoModel, open_memory

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


def rows(memory, table):
    return f"{memory.db.connection.execute(f'SELECT * FROM {table}').fetchall()}"


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
    assert {"history.db"} | KEEPS[store] <= set(residue(tmp_path))  # and where Chroma saves what it never wrote


def test_what_is_delivered_is_in_no_row_of_the_history_then_or_later(bare):
    backend = Mem0Backend(bare, write=True)
    told = derived(Entity.parse("user:bob"), SECRET)
    assert asyncio.run(backend.write([told])) == asyncio.run(backend.write([told]))
    assert SECRET not in rows(bare, "history")
    assert asyncio.run(backend.retract([told.id])) == 1
    assert SECRET not in rows(bare, "history")
    assert asyncio.run(backend.retract([told.id])) == 0


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("at", range(1, 6))
def test_a_copy_whose_taking_back_was_broken_off_anywhere_leaves_no_row(chroma, monkeypatch, at):
    backend = Mem0Backend(chroma, write=True)
    told = derived(Entity.parse("user:bob"), SECRET)
    calls = 0

    def dying(work):
        def run(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == at:
                raise Killed
            return work(*args, **kwargs)

        return run

    with monkeypatch.context() as patched:
        for part in ("insert", "delete"):
            patched.setattr(chroma.vector_store, part, dying(getattr(chroma.vector_store, part)))
        patched.setattr(chroma.db, "add_history", dying(chroma.db.add_history))
        patched.setattr("collab_layer_mem0.client.scrub_history", dying(client.scrub_history))
        with contextlib.suppress(Killed):
            asyncio.run(backend.write([told]))
            asyncio.run(backend.retract([told.id]))
    assert calls >= min(at, 5)
    asyncio.run(backend.retract([told.id]))
    assert SECRET not in rows(chroma, "history")
    assert chroma.get_all(filters={"agent_id": "collab"})["results"] == []


class Deaf(EchoModel):
    """Finds nothing worth remembering."""

    def generate_response(self, messages, **kwargs):
        return '{"memory": []}'


CHAT = [
    {"role": "user", "content": f"The {SECRET} is mine"},
    {"role": "user", "name": "ben", "content": "Ben's words in Ann's chat"},
    {"role": "assistant", "content": "The bot's words"},
]


@pytest.fixture
def talked(chroma):
    """Conversations that gave no memory; Ben's own holds one of Ann's words."""
    chroma.llm = Deaf()
    chroma.add(CHAT, user_id="ann", agent_id="bot")
    chroma.add([*CHAT[1:], {**CHAT[0], "name": "ann"}], user_id="ben", run_id="standup")
    assert chroma.get_all(filters={"user_id": "ann"})["results"] == []
    return chroma


def test_a_conversation_that_gave_no_memory_is_erased_with_its_owner(talked, tmp_path):
    with CollabLayer.open(f"sqlite:///{tmp_path / 'collab.db'}", settings=Settings(worker=False)) as layer:
        layer.index(Mem0Backend(talked))
        receipt = layer.forget("user:ann", source=True)
        assert (receipt.status, receipt.stores) == ("complete", {"mem0": "erased"})
        assert residue(tmp_path) == []
        assert "Ben's words" in rows(talked, "messages"), "his own conversation stays"
        layer.forget("user:ben", source=True)
        assert rows(talked, "messages") == "[]"


@pytest.mark.parametrize(
    ("owner", "left"),
    [
        ("agent:bot", {"ann": 2, "ben": 3}),
        ("session:standup", {"ann": 3, "ben": 0}),
        ("user:an", {"ann": 3, "ben": 3}),
        ("app:bot", {"ann": 3, "ben": 3}),
    ],
)
def test_of_a_conversation_goes_what_its_owner_said(talked, owner, left):
    asyncio.run(Mem0Backend(talked).erase_owner(Entity.parse(owner)))
    kept = talked.db.connection.execute("SELECT session_scope FROM messages").fetchall()
    assert {who: sum(scope.endswith(f"user_id={who}") for (scope,) in kept) for who in ("ann", "ben")} == left


def test_a_conversation_that_could_not_be_cleared_is_cleared_by_a_later_worker(talked, tmp_path, monkeypatch):
    def locked(*args):
        raise sqlite3.OperationalError("database is locked")

    url = f"sqlite:///{tmp_path / 'collab.db'}"
    with monkeypatch.context() as patched, CollabLayer.open(url, settings=Settings(worker=False)) as layer:
        layer.attach(Mem0Backend(talked))
        patched.setattr("collab_layer_mem0.client.scrub_said", locked)
        receipt = layer.forget("user:ann", source=True)
        assert (receipt.status, receipt.stores) == ("pending", {"mem0": "pending"})
    with CollabLayer.open(url, settings=Settings(worker=False)) as layer:
        layer.attach(Mem0Backend(talked))
        layer.drain()
        assert layer.receipt(receipt.id).status == "complete"
    assert SECRET not in rows(talked, "messages")


def test_what_a_speaker_said_and_had_deleted_is_forgotten_by_the_history_too(chroma):
    said = [{"role": "user", "name": "ben", "content": f"{SECRET} again"}]
    [added] = chroma.add(said, user_id="ann", infer=False)["results"]
    chroma.delete(added["id"])
    assert SECRET in rows(chroma, "history")
    asyncio.run(Mem0Backend(chroma).erase_owner(Entity.parse("user:ben")))
    assert SECRET not in rows(chroma, "history")


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
