from collections.abc import Iterator

import pytest

from collab_layer.graph.names import ensure
from collab_layer.graph.store import GraphStore


@pytest.fixture
def store(database_url) -> Iterator[GraphStore]:
    store = GraphStore.open(database_url, embedder="test", dim=8)
    for tenant in ("acme", "other"):
        with store.database.write() as connection:
            ensure(connection, tenant)
    yield store
    store.close()
