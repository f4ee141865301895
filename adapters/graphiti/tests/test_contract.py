"""The whole store contract on a real FalkorDB; an owner's facts are put by Graphiti itself."""

from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from collab_layer_graphiti import GraphitiBackend, SharedFalkorDriver, group_of
from collab_layer_graphiti.server import FalkorServer
from collab_layer_graphiti.testing import HashEmbedder
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode

from collab_layer.testing import BackendContract
from collab_layer.types.entity import MemoryRef


@pytest.fixture(scope="module")
def own_server():
    with FalkorServer(durable=True) as running:
        yield running


class OnRealFalkorDB(BackendContract):
    any_loop = True
    embedder: type | None = None

    @pytest.fixture
    def server(self, falkor):
        return falkor

    @pytest.fixture
    def backend(self, server, graph, leftovers):
        self.server, self.graph, self.leftovers = server, graph, leftovers
        embedder = None if self.embedder is None else self.embedder()
        made = GraphitiBackend(server.url, graph=graph, write=True, embedder=embedder)
        yield made
        self.run(made.aclose())

    @contextmanager
    def driver(self):
        """One of Graphiti's own on the running loop; a connection belongs to a loop."""
        yield SharedFalkorDriver(host="127.0.0.1", port=self.server.port, database=self.graph)

    async def put(self, backend, owner, text):
        group, now = group_of(owner), datetime.now(UTC)
        with self.driver() as driver:
            await driver.ready()
            nodes = [EntityNode(name=name, group_id=group) for name in (owner.id, "topic")]
            for node in nodes:
                node.name_embedding = await HashEmbedder().create(node.name)
                await node.save(driver)
            edge = EntityEdge(
                group_id=group, source_node_uuid=nodes[0].uuid, target_node_uuid=nodes[1].uuid,
                name="NOTED", fact=text, created_at=now, valid_at=now,
            )  # fmt: skip
            await edge.generate_embedding(HashEmbedder())
            await edge.save(driver)
            await driver.close()
        return MemoryRef(backend=backend.name, id=edge.uuid)

    async def edit(self, backend, ref, text):
        await self.told("MATCH ()-[e {uuid: $id}]->() SET e.fact = $text", id=ref.id, text=text)

    async def remove(self, backend, ref):
        with self.driver() as driver:
            edge = await EntityEdge.get_by_uuid(driver, ref.id)
            await edge.delete(driver)
            await driver.close()

    async def told(self, query, **values):
        with self.driver() as driver:
            await driver.execute_query(query, **values)
            await driver.close()

    def traces(self, backend, text):
        return self.leftovers(text)


class TestOnWordsAlone(OnRealFalkorDB):
    pass


class TestWithAnEmbedder(OnRealFalkorDB):
    embedder = HashEmbedder


class TestThroughAnOutage(BackendContract):
    """The server is another one, since it is stopped and started again."""

    starts_empty = True
    put, remove, driver = OnRealFalkorDB.put, OnRealFalkorDB.remove, OnRealFalkorDB.driver

    @pytest.fixture
    def backend(self, own_server, graph):
        self.server, self.graph = own_server, graph
        made = GraphitiBackend(own_server.url, graph=graph)
        yield made
        self.run(made.aclose())

    @contextmanager
    def outage(self, backend):
        self.server.stop()
        yield
        self.server.start()


del BackendContract, OnRealFalkorDB
