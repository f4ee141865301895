"""The whole store contract on the contract server, by the blocking client and by the awaited one."""

import uuid
from contextlib import contextmanager

import pytest
from zep_cloud import AsyncZep, EdgeInput, EdgeNodeRef

from collab_layer.testing import BackendContract
from collab_layer.types.entity import MemoryRef


class OnContractServer(BackendContract):
    """An owner's facts are put by Zep's own client, as its program would."""

    @pytest.fixture(autouse=True)
    def _owner_client(self, server, zep):
        self.server, self.zep = server, zep

    def graph_of(self, owner):
        made = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.server.url} {owner}"))
        if owner.kind == "user":
            for user in self.server.state.users.values():
                if user.get("user_id") == owner.id:
                    return user["graph_uuid"]
            return self.zep.user.create(user_id=owner.id, idempotency_key=made).graph_uuid
        for graph in self.server.state.graphs.values():
            if graph.get("name") == str(owner):
                return graph["uuid"]
        return self.zep.graph.create(name=str(owner), idempotency_key=made).uuid_

    def put(self, backend, owner, text):
        graph = self.graph_of(owner)
        node = EdgeNodeRef(name="topic")
        edge = EdgeInput(fact=text, fact_name="NOTED", source_node=node, target_node=node)
        added = self.zep.graph.edge.add(graph, edges=[edge], deduplicate=False)
        return MemoryRef(backend=backend.name, id=f"{graph}/{added.edges[0].uuid_}")

    def edit(self, backend, ref, text):
        self.zep.graph.edge.update(*ref.id.split("/"), fact=text)

    def remove(self, backend, ref):
        self.zep.graph.edge.delete(*ref.id.split("/"))

    @contextmanager
    def outage(self, backend):
        with self.server.down():
            yield

    def traces(self, backend, text):
        return self.server.state.traces(text)


class TestBlocking(OnContractServer):
    any_loop = True

    @pytest.fixture
    def backend(self, store):
        return store()


class TestAwaited(OnContractServer):
    @pytest.fixture
    def backend(self, server, store):
        client = AsyncZep(api_key=server.api_key, base_url=server.url, max_retries=0)
        yield store(client)
        self.run(client._client_wrapper.httpx_client.httpx_client.aclose())


del BackendContract, OnContractServer
