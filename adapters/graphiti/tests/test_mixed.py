"""One layer over three real kinds of store at once: Mem0 on chroma, Graphiti on FalkorDB, Letta's own client.

Letta's server is the one in memory that its adapter ships; a real one runs under the mark `letta` in its own tests.
"""

import asyncio
import time

import httpx
import pytest
from collab_layer_graphiti import Fact, GraphitiBackend
from collab_layer_graphiti.server import FalkorServer
from collab_layer_letta import LettaBackend
from collab_layer_letta.testing import FakeLetta, transport
from collab_layer_mem0 import Mem0Backend
from letta_client import Letta

from collab_layer import CollabLayer, Entity
from collab_layer.config import Settings

ANN, BOB = Entity("user", "ann"), Entity("user", "bob")
DEPLOY = "When the deploy hangs, restart the queue worker"
STORAGE = "The orders service stores its data in SQLite"
AGENT_NOTE = "The deploy runs from the release branch only"
SOON_S = 60.0


@pytest.fixture
def mem0(tmp_path):
    from collab_layer_mem0.testing import open_memory

    memory = open_memory(tmp_path / "mem0", "chroma")
    yield memory
    memory.vector_store.client.close()
    memory.close()


@pytest.fixture
def server():
    """A FalkorDB of its own, since it goes down; what it acknowledged is on the disk."""
    with FalkorServer(durable=True) as running:
        yield running


@pytest.fixture
def graph(server):
    opened = GraphitiBackend(server.url, timeout_s=5.0)
    yield opened
    asyncio.run(opened.aclose())


@pytest.fixture
def letta():
    with httpx.Client(transport=transport(FakeLetta())) as inner:
        yield Letta(base_url="http://letta.test", api_key="key", http_client=inner)


@pytest.fixture
def agent(letta):
    blocks = [{"label": "human", "value": AGENT_NOTE}]
    made = letta.agents.create(
        name="helper", memory_blocks=blocks, include_base_tools=False,
        model="openai/gpt-4o-mini", embedding="openai/text-embedding-3-small",
    )  # fmt: skip
    return Entity("agent", made.id)


@pytest.fixture
def layer(tmp_path, mem0, graph, letta, agent):
    """Ann remembers in Mem0 and in Graphiti, an agent in Letta; both share their records with Bob."""
    mem0.add(DEPLOY, user_id="ann", infer=False)
    asyncio.run(graph.remember(ANN, [Fact(text=STORAGE)]))
    settings = Settings(watch_every_s=1, sweep_every_s=1, consolidate_hour_utc=None)
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=settings) as opened:
        opened.index(Mem0Backend(mem0), owners=[ANN])
        opened.index(graph, owners=[ANN])
        opened.index(LettaBackend(letta), owners=[agent])
        for owner in (ANN, agent):
            opened.grant(owner, to=BOB, level="records")
        opened.observe(BOB, text="Where does the orders service store its data, and why does the deploy hang")
        until(lambda: {"mem0", "graphiti", "letta"} <= stores(opened))
        yield opened


def asked(layer, query="deploy hangs; where does the orders service store its data"):
    return layer.context(BOB, query=query)


def stores(layer):
    return {e.ref.backend for facet in asked(layer).facets for e in facet.evidence if e.ref is not None}


def said(layer):
    return " ".join(facet.text for facet in asked(layer).facets)


def until(holds):
    deadline = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.1)


def test_one_answer_rests_on_all_stores_and_its_neighbours_are_in_several(layer, agent):
    memory = asked(layer)
    assert memory.degraded == ()
    of_ann = {e.ref.backend for facet in memory.facets for e in facet.evidence if e.owner == ANN and e.ref is not None}
    assert of_ann == {"mem0", "graphiti"}
    assert {ANN, agent} <= {one.entity for one in layer.neighbors(BOB)}
    block = str(memory)
    assert all(word in block for word in ("queue worker", "SQLite", "release branch"))


def test_while_one_store_is_down_the_others_answer_and_it_comes_back_without_a_hand(layer, server, mem0, graph):
    server.kill()
    until(lambda: any("`graphiti`" in sentence for sentence in asked(layer).degraded))
    assert not any("`mem0`" in sentence for sentence in asked(layer).degraded)
    assert {"mem0", "letta"} <= stores(layer)
    assert "SQLite" in said(layer), "what is known of it is in the index"
    mem0.add("The deploy also hangs when the disk is full", user_id="ann", infer=False)
    until(lambda: "disk is full" in said(layer))

    server.start()
    (ref,) = asyncio.run(graph.remember(ANN, [Fact(text="The orders service also stores its data in Redis")]))
    assert ref.backend == "graphiti"
    until(lambda: "Redis" in said(layer))
    assert asked(layer).degraded == ()
