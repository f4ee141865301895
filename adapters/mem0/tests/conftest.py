import os
import tempfile

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
