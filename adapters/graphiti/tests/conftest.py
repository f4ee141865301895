import asyncio
import os
import uuid
import warnings
from contextlib import asynccontextmanager

# Read when Graphiti is imported, so they come before any other import.
os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
os.environ["EMBEDDING_DIM"] = "384"

import pytest


def pytest_ignore_collect(config):
    """Where these tests are deselected, Graphiti is not imported either."""
    if "not graphiti" in (config.option.markexpr or ""):
        return True
    with warnings.catch_warnings():  # Graphiti still has a pydantic class of the old kind
        warnings.simplefilter("ignore")
        import graphiti_core  # noqa: F401
    return None


def pytest_collection_modifyitems(items):
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.graphiti)


@pytest.fixture(scope="session")
def falkor():
    """One server per test process. Without its wheel this fails."""
    from collab_layer_graphiti.server import FalkorServer

    with FalkorServer() as server:
        yield server


@pytest.fixture
def graph(falkor):
    """The name of a graph that does not exist yet, removed afterwards with the server's log of it."""
    import redis

    name = f"g{uuid.uuid4().hex[:12]}"
    yield name
    with redis.Redis(port=falkor.port) as client:
        client.delete(name, f"telemetry{{{name}}}")


@pytest.fixture
def graphs(falkor):
    """The graphs that a server has now, sorted."""
    import redis

    def listed(server=falkor, **options):
        with redis.Redis(port=server.port, decode_responses=True, **options) as client:
            return sorted(client.execute_command("GRAPH.LIST"))

    return listed


@pytest.fixture
def store(falkor, graph):
    """A factory of stores over the test's graph, which are closed afterwards."""
    from collab_layer_graphiti import GraphitiBackend

    opened = []

    def make(where=None, **settings):
        settings = {"graph": graph, "write": True, **settings}
        opened.append(GraphitiBackend(where or falkor.url, **settings))
        return opened[-1]

    yield make
    for one in opened:
        asyncio.run(one.aclose())


@pytest.fixture
def graphiti(falkor, graph):
    """A context manager: a Graphiti over the test's graph, on the loop that enters it."""
    from collab_layer_graphiti import SharedFalkorDriver
    from collab_layer_graphiti.testing import open_graphiti
    from graphiti_core.driver.falkordb_driver import FalkorDriver

    @asynccontextmanager
    async def opened(*, stock=False, model=None):
        driver = (FalkorDriver if stock else SharedFalkorDriver)(host="127.0.0.1", port=falkor.port, database=graph)
        await driver._init_task
        made = open_graphiti(driver, model)
        before = asyncio.all_tasks()
        try:
            yield made
        finally:
            # Its clones build indices in tasks that nobody awaits, on the connection closed below.
            await asyncio.gather(*(asyncio.all_tasks() - before), return_exceptions=True)
            await made.close()

    return opened


@pytest.fixture
def leftovers(falkor, graph):
    """A function: what the server can be asked for about the test's graph, its logs included, that has a text."""
    import redis

    def found(text):
        with redis.Redis(port=falkor.port, decode_responses=True) as client:
            said = [str(entry) for entry in client.execute_command("SLOWLOG", "GET", 1000) if graph in str(entry)]
            for key in client.keys(f"*{graph}*"):
                if client.type(key) == "stream":
                    said.append(str(client.xrange(key)))
                    continue
                said.append(str(client.execute_command("GRAPH.SLOWLOG", key)))
                for query in ("MATCH (n) RETURN properties(n)", "MATCH ()-[e]->() RETURN properties(e)"):
                    said += map(str, client.execute_command("GRAPH.RO_QUERY", key, query)[1])
        return [one[:200] for one in said if text in one]

    return found
