import importlib.util
import os
import tempfile
from pathlib import Path

# Both are read when Mem0 is imported, so they come before any other import.
os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")

import pytest

STORES = ("chroma", "qdrant", "faiss")


@pytest.fixture(params=STORES)
def store(request):
    return request.param


@pytest.fixture
def bare(tmp_path, store):
    from collab_layer_mem0.testing import open_memory

    memory = open_memory(tmp_path / "mem0", store)
    yield memory
    close(memory)


@pytest.fixture
def chroma(tmp_path):
    from collab_layer_mem0.testing import open_memory

    memory = open_memory(tmp_path / "mem0", "chroma")
    yield memory
    close(memory)


def close(memory):
    client = getattr(memory.vector_store, "client", None)
    if client is not None and hasattr(client, "close"):
        client.close()
    memory.close()


def _sibling(name):
    # Test modules are imported by path, so a sibling is no package member.
    spec = importlib.util.spec_from_file_location(f"mem0_tests_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def service():
    return _sibling("service").Service()


@pytest.fixture(scope="session")
def ping_host():
    with _sibling("service").ping_server() as host:
        yield host


@pytest.fixture
def client(service):
    import httpx
    import mem0

    made = mem0.MemoryClient("key", "http://mem0.test", httpx.Client(transport=service.transport()))
    service.requests.clear()
    yield made
    made.client.close()


@pytest.fixture
def async_client(service, ping_host):
    """A factory, since the client belongs to the loop it is used on."""
    import httpx
    import mem0

    def make():
        return mem0.AsyncMemoryClient("key", ping_host, httpx.AsyncClient(transport=service.transport()))

    return make


@pytest.fixture
def layer(tmp_path):
    from collab_layer import CollabLayer

    opened = CollabLayer.open(str(tmp_path / "collab.db"))
    yield opened
    opened.close()
