"""The same on a real PostgreSQL with pgvector: the store contract, and a lesson that comes across."""

import json

import pytest
from collab_layer_mem0 import collaborative
from collab_layer_mem0.backend import Mem0Backend
from collab_layer_mem0.mapping import native_scope
from collab_layer_mem0.tap import Tap
from collab_layer_mem0.testing import DIM, open_configured

from collab_layer.testing import BackendContract, PostgresServer
from collab_layer.types.entity import MemoryRef

LESSON = "Sign-in loops after the upgrade: clear the old cookie domain."


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg_pool")
    with PostgresServer() as running:
        yield running


@pytest.fixture
def memory(server, tmp_path):
    place = {
        "connection_string": server.create_database(extensions=("vector",)),
        "collection_name": "memories",
        "embedding_model_dims": DIM,
    }
    made = open_configured({"provider": "pgvector", "config": place}, tmp_path / "history.db")
    store = made.vector_store
    yield made
    store.connection_pool.close()
    made.close()


class TestOnPgvector(BackendContract):
    any_loop = True

    @pytest.fixture
    def backend(self, memory):
        self.memory = memory
        tap = Tap("mem0")
        memory.vector_store = tap.store(memory.vector_store)
        return Mem0Backend(memory, write=True, tap=tap)

    def put(self, backend, owner, text):
        answer = self.memory.add(text, infer=False, **native_scope(owner))
        return MemoryRef(backend=backend.name, id=answer["results"][0]["id"])

    def edit(self, backend, ref, text):
        self.memory.update(ref.id, text)

    def remove(self, backend, ref):
        self.memory.delete(ref.id)


def test_without_a_grant_nothing_changes_and_with_one_the_lesson_comes(memory, layer):
    for owner in ("ann", "bob"):
        memory.add(f"{LESSON} Noted by {owner}.", user_id=owner, infer=False)

    def search(one):
        return one.search("sign-in loops after the upgrade", filters={"user_id": "ann"})

    plain = json.dumps(search(memory))
    wrapped = collaborative(memory, layer)
    assert json.dumps(search(wrapped)) == plain
    wrapped.add("Sign-in loops after the upgrade: restart the gateway.", user_id="bob", infer=False)
    layer.grant("user:bob", to="user:ann", level="records")
    layer.drain()
    answer = search(wrapped)
    assert json.dumps({"results": answer["results"][:1]}) == plain
    assert any("restart the gateway" in one["memory"] for one in answer["results"][1:])


del BackendContract


def test_forgetting_an_owner_at_the_source_leaves_nothing_that_mem0_or_its_tables_would_give(memory, tmp_path, layer):
    secret = "zanzibarpassphrase"
    added = memory.add(f"My {secret} is hidden in the lighthouse", user_id="ann", infer=False)["results"][0]["id"]
    memory.add([{"role": "user", "content": f"I told {secret} to nobody"}], user_id="ann")
    memory.update(added, f"My {secret} moved to the tower")
    memory.add("Bob likes worms", user_id="bob", infer=False)
    layer.index(Mem0Backend(memory))
    layer.drain()
    receipt = layer.forget("user:ann", source=True)
    assert (receipt.status, receipt.stores) == ("complete", {"mem0": "erased"})
    rows = [row.payload["data"] for row in memory.vector_store.list(top_k=100)[0]]
    assert rows == ["Bob likes worms"]
    assert secret.encode() not in (tmp_path / "history.db").read_bytes()
