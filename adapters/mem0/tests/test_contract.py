"""The whole store contract on a real Mem0 over each embedded vector store."""

from contextlib import contextmanager

import pytest
from collab_layer_mem0.backend import Mem0Backend, Mem0PlatformBackend
from collab_layer_mem0.mapping import native_scope
from collab_layer_mem0.tap import Tap
from collab_layer_mem0.testing import open_memory

from collab_layer.testing import BackendContract
from collab_layer.types.entity import MemoryRef


class OnRealMem0(BackendContract):
    store: str
    any_loop = True

    @pytest.fixture
    def backend(self, tmp_path):
        self.memory = open_memory(tmp_path / "mem0", self.store)
        tap = Tap("mem0")
        self.memory.vector_store = tap.store(self.memory.vector_store)
        yield Mem0Backend(self.memory, write=True, tap=tap)
        client = getattr(self.memory.vector_store, "client", None)
        if self.store == "qdrant":
            client.close()
        self.memory.close()

    def put(self, backend, owner, text):
        answer = self.memory.add(text, infer=False, **native_scope(owner))
        return MemoryRef(backend=backend.name, id=answer["results"][0]["id"])

    def edit(self, backend, ref, text):
        self.memory.update(ref.id, text)

    def remove(self, backend, ref):
        self.memory.delete(ref.id)


class TestOnChroma(OnRealMem0):
    store = "chroma"


class TestOnQdrant(OnRealMem0):
    store = "qdrant"


class TestOnFaiss(OnRealMem0):
    store = "faiss"


class TestOnTheService(BackendContract):
    any_loop = True

    @pytest.fixture(autouse=True)
    def _given(self, client, service):
        self.client, self.service = client, service

    @pytest.fixture
    def backend(self):
        return Mem0PlatformBackend(self.client)

    def put(self, backend, owner, text):
        answer = self.client.add(text, **native_scope(owner))
        return MemoryRef(backend=backend.name, id=answer["results"][0]["id"])

    def edit(self, backend, ref, text):
        self.client.update(ref.id, text=text)

    def remove(self, backend, ref):
        self.client.delete(ref.id)

    @contextmanager
    def outage(self, backend):
        self.service.down = True
        yield
        self.service.down = False


class TestOnTheServiceAwaited(TestOnTheService):
    any_loop = False

    @pytest.fixture
    def backend(self, async_client):
        made = async_client()
        yield Mem0PlatformBackend(made)
        self.run(made.async_client.aclose())


del OnRealMem0, BackendContract
