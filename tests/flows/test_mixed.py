"""One layer over several stores: neighbours across them, and one of them down."""

from __future__ import annotations

import time

import pytest

from collab_layer.config import Settings
from collab_layer.errors import BackendDownError
from collab_layer.sync import CollabLayer
from collab_layer.testing.memory import InMemoryBackend

ASKED = "go modules conflict"


@pytest.fixture
def stores(clock) -> tuple[InMemoryBackend, InMemoryBackend]:
    return InMemoryBackend("mem", clock=clock), InMemoryBackend("graph", clock=clock)


@pytest.fixture
def both(layer, stores):
    """agent:a remembers in two stores, agent:b in one; agent:c reads both."""
    mem, graph = stores
    mem.add("agent:a", "Fixed the Go modules conflict by pinning version one", links=["tool:go"])
    graph.add("agent:a", "The Okta certificate broke the SSO login loop", links=["tool:okta"])
    graph.add("agent:b", "Go modules conflict again, the vendor folder was stale", links=["tool:go"])
    for store in stores:
        layer.index(store)
    for who in ("agent:a", "agent:b"):
        layer.grant(who, "agent:c", "records")
    layer.observe("agent:c", text="A go modules conflict", links=["tool:go", "tool:okta"])
    layer.drain()
    return layer


def said(layer, query=ASKED):
    return [facet.text for facet in layer.context("agent:c", query).facets]


def test_one_owners_memories_in_two_stores_are_one_owners(both):
    [first, second] = sorted(both.neighbors("agent:c"), key=lambda one: str(one.entity))[:2]
    assert {str(first.entity), str(second.entity)} == {"agent:a", "agent:b"}
    assert {"tool:go", "tool:okta"} <= {str(one) for one in first.shared}
    refs = {e.ref.backend for f in both.context("agent:c", "certificate").facets for e in f.evidence if e.ref}
    assert refs == {"graph"}
    assert both.changes("agent:c", both._layer._core.tools.clock().replace(year=2000))


def test_the_same_native_id_in_two_stores_is_two_memories(both):
    assert "pinning version one" in " ".join(said(both))
    assert "Okta" in " ".join(said(both, "Okta certificate"))
    ids = [(e.ref.backend, e.ref.id) for q in (ASKED, "Okta certificate") for f in both.context("agent:c", q).facets
           for e in f.evidence if e.ref]  # fmt: skip
    assert {("mem", "m1"), ("graph", "m1")} <= set(ids)


def test_a_store_that_is_down_is_named_and_the_others_answer(both, stores):
    _, graph = stores
    assert both.context("agent:c", ASKED).degraded == ()
    graph.down = True
    memory = told_soon(both, lambda said: any("`graph`" in sentence for sentence in said))
    assert memory.cached, "what is known is answered from the index"
    assert [sentence for sentence in memory.degraded if "`graph`" in sentence]
    assert not [sentence for sentence in memory.degraded if "`mem`" in sentence]
    assert any("pinning" in facet.text for facet in memory.facets)
    assert "Incomplete" in str(memory)
    assert [one for one in both.rank("agent:c", ["tool:go"]).degraded if "`graph`" in one]
    graph.down = False
    assert told_soon(both, lambda said: said == ()).degraded == ()


def told_soon(layer, good):
    """A context whose sentences are as they should be: a store that was slow to answer is not asked again at once."""
    until = time.monotonic() + 10
    while not good((memory := layer.context("agent:c", ASKED)).degraded) and time.monotonic() < until:
        time.sleep(0.05)
    return memory


def test_what_one_store_says_is_worked_off_while_the_other_is_down(both, stores, clock):
    mem, graph = stores
    graph.add("agent:a", "Go modules conflict: cleared the module cache")
    both.reconcile(graph)
    graph.down = True
    mem.add("agent:a", "Go modules conflict: deleted go.sum")
    both.reconcile(mem)
    both.drain()
    assert any("go.sum" in text for text in said(both))
    assert not any("cache" in text for text in said(both))
    assert both.health().counts["waiting"] == 1
    graph.down = False
    clock.advance(minutes=1)
    both.drain()
    assert any("cache" in text for text in said(both))
    assert both.health().counts["waiting"] == 0


def test_a_grant_given_while_a_store_is_down_opens_the_rest_at_once_and_that_store_later(both, stores, clock):
    _, graph = stores
    graph.down = True
    both.grant("agent:a", "agent:d", "records")
    both.grant("agent:b", "agent:d", "records")
    both.drain()

    def read(query):
        return " ".join(facet.text for facet in both.context("agent:d", query).facets)

    assert "pinning" in read(ASKED)
    graph.down = False
    clock.advance(minutes=1)
    both.drain()
    assert "Okta" in read("Okta certificate")
    assert both.health().counts["waiting"] == 0


def test_words_dropped_with_a_grant_come_back_from_both_stores_one_after_the_other(layer, stores, clock):
    mem, graph = stores
    for store, text in ((mem, "Go modules conflict: pinned"), (graph, "Go modules conflict: vendored")):
        layer.attach(store)
        store.add("agent:a", text)
        layer.reconcile(store)
    layer.drain()
    graph.down = True
    layer.grant("agent:a", "agent:c", "records")
    layer.drain()
    assert [text for text in said(layer) if "pinned" in text]
    assert not [text for text in said(layer) if "vendored" in text]
    mem.calls.clear()
    graph.down = False
    clock.advance(minutes=1)
    layer.drain()
    assert [text for text in said(layer) if "vendored" in text]
    assert mem.calls["read"] == 0, "what was read is not read again"


def test_a_layer_opens_while_a_store_is_down(database_url, stores, clock):
    mem, graph = stores
    graph.down = True
    settings = Settings(worker=False)
    with CollabLayer.open(database_url, backends=[mem, graph], settings=settings, clock=clock) as layer:
        mem.add("agent:a", "Fixed the Go modules conflict by pinning")
        layer.reconcile(mem)
        layer.grant("agent:a", "agent:c", "records")
        layer.drain()
        memory = layer.context("agent:c", ASKED)
        assert memory.facets
        assert any("`graph`" in sentence for sentence in memory.degraded)
        with pytest.raises(BackendDownError):
            layer.reconcile(graph)
        graph.down = False
        layer.reconcile(graph)
        graph.add("agent:b", "Go modules conflict: vendored")
        assert layer.reconcile(graph) == 1


def test_a_slow_store_keeps_no_reader_waiting(both, stores):
    _, graph = stores
    graph.delay_s = 30.0
    began = time.monotonic()
    assert both.context("agent:c", ASKED).facets
    assert time.monotonic() - began < 5.0
    graph.delay_s = 0.0
