"""What two people keep in a real Mem0 reaches a Letta agent's prompt, and explains itself all the way back."""

from __future__ import annotations

import json
import os

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.surface.cli.main import main
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.facet import FacetKind

os.environ.setdefault("MEM0_TELEMETRY", "False")  # both are read when Mem0 is imported
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
READER, TELLERS = "user:bob", ("user:ann", "user:cid")
SAID = "Dune is the best desert book"


@pytest.fixture
def mem0(tmp_path, monkeypatch):
    pytest.importorskip("mem0")
    pytest.importorskip("chromadb")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0-home"))
    from collab_layer_mem0.testing import open_memory

    memory = open_memory(tmp_path / "mem0", "chroma")
    for teller in TELLERS:
        memory.add(SAID, user_id=teller.partition(":")[2], infer=False, metadata={"collab_links": "item:1"})
    yield memory
    memory.close()


@pytest.fixture
def letta():
    httpx, client = pytest.importorskip("httpx"), pytest.importorskip("letta_client")
    testing = pytest.importorskip("collab_layer_letta.testing")
    fake = testing.FakeLetta()
    with httpx.Client(transport=testing.transport(fake)) as http:
        yield client.Letta(base_url="http://letta.test", api_key="key", http_client=http)


def signal(letta, agent):
    row = letta.get(f"/v1/agents/{agent}", cast_to=object, options={"params": {"include": ["agent.blocks"]}})
    return next(block["value"] for block in row["blocks"] if block["label"] == "collab_signal")


@pytest.fixture
def told(tmp_path, mem0, letta):
    """The layer; the merged update that Bob was told; his agent; another store that took it."""
    from collab_layer_letta import attach
    from collab_layer_mem0.backend import Mem0Backend

    url = f"sqlite:///{tmp_path / 'collab.db'}"
    with CollabLayer.open(url, settings=Settings(worker=False)) as layer:
        layer.url = url
        for who in (READER, *TELLERS):
            for number in range(4):
                layer.observe(who, f"item:{number}", "held")
        layer.grants = [layer.grant(teller, READER, "records") for teller in TELLERS]
        layer.drain()
        agent = letta.agents.create(model="m", embedding="e", memory_blocks=[]).id
        other = InMemoryBackend("graph")
        layer.attach(other, deliver=True)
        layer.index(Mem0Backend(mem0))
        layer.drain()
        assert layer.consolidate().merged == 1
        attach(letta, agent, entity=READER, layer=layer, every_s=None)
        layer.deliver(READER)
        facets = layer.context(READER, budget_tokens=8000).facets
        [merged] = [one for one in facets if one.kind is FacetKind.UPDATE and one.contributors == 2]
        yield layer, merged, agent, other


def nodes(sources):
    for node in sources:
        yield node
        yield from nodes(node.sources)


def test_what_stands_in_the_prompt_explains_itself_down_to_the_memories_in_mem0(told, mem0, letta):
    layer, merged, agent, other = told
    assert SAID in signal(letta, agent)
    assert merged.id in {one.id for one in other.derived(READER)}
    lineage = layer.as_(READER).explain(merged.id)
    every = list(nodes(lineage.sources))
    assert lineage.depth >= 2, "the merged item, what it was merged of, and what that rests on"
    assert "update" in {node.kind for node in lineage.sources}
    records = {node.principal: node for node in every if node.ref is not None}
    assert set(records) == set(TELLERS)
    held = {one["id"]: one["memory"] for one in mem0.get_all(filters={"user_id": "*"})["results"]}
    for node in records.values():
        assert (node.ref.backend, held[node.ref.id], node.state) == ("mem0", SAID, "live")
    assert all(node.maker is not None for node in every if node.kind == "update")


def test_the_log_says_who_received_it_and_through_what(told):
    layer, merged, _, _ = told
    layer.context(READER, "best desert book")
    uses = {one.use for one in layer.explain(merged.id).received}
    assert {"context", "delivery"} <= uses
    assert {str(one.entity) for one in layer.explain(merged.id).received} == {READER}
    assert all(one.entity is None for one in layer.as_(READER).explain(merged.id).received)
    carried = [one for one in layer.injections(READER) if merged.id in one.items]
    assert {one.use for one in carried} >= {"context", "delivery"}
    [record] = {
        node.id: node for node in nodes(layer.explain(merged.id).sources) if node.principal == TELLERS[0] and node.ref
    }.values()
    assert {str(one.entity) for one in layer.explain(record.id).received} == {READER}, "by way of what rests on it"


def test_it_is_drawn_as_text_and_printed_as_json(told, capsys):
    layer, merged, _, _ = told
    assert layer.injections(READER), "what waits to be logged is written before it is looked at"
    assert main(["--url", layer.url, "explain", merged.id]) == 0
    drawn = " ".join(capsys.readouterr().out.split())
    assert all(f"({teller}," in drawn for teller in TELLERS)
    assert "in mem0 as" in drawn
    assert f"received by {READER}" in drawn
    assert main(["--url", layer.url, "explain", merged.id, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(layer.explain(merged.id).model_dump_json())


def test_forgetting_one_teller_at_its_source_takes_it_out_of_the_prompt_and_of_every_store(told, mem0, letta):
    layer, merged, agent, other = told
    receipt = layer.forget(TELLERS[0], source=True)
    layer.drain()
    layer.deliver(READER)
    assert layer.receipt(receipt.id).status == "complete"
    assert merged.id not in {one.id for one in other.derived(READER)}
    left = [one for one in other.derived(READER)]
    assert TELLERS[0] not in json.dumps([one.model_dump(mode="json") for one in left])
    assert mem0.get_all(filters={"user_id": "ann"})["results"] == []
    assert [one["memory"] for one in mem0.get_all(filters={"user_id": "cid"})["results"]] == [SAID]
    assert merged.id not in signal(letta, agent)


def test_who_may_not_know_is_told_neither_words_nor_names(told):
    layer, merged, _, _ = told
    from collab_layer.errors import UnknownIdError

    with pytest.raises(UnknownIdError):
        layer.as_("user:stranger").explain(merged.id)
    layer.revoke(layer.grants[0].id)
    with pytest.raises(UnknownIdError):
        layer.as_(READER).explain(merged.id)
