"""What agents remember: whose it is, what is shared, how it is found again."""

import asyncio

import pytest
from collab_layer_letta import attach
from collab_layer_letta.mapping import passage_id, tag_of

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.types.entity import Entity, MemoryRef

ALICE, BOB, CAROL = Entity("user", "alice"), Entity("user", "bob"), Entity("user", "carol")


def run(call):
    return asyncio.run(call)


@pytest.fixture
def backend(world):
    return world.backend()


def texts(backend, owner, **more):
    return [record.text for record in run(backend.records(owner, **more)).records]


def test_an_agent_without_a_tag_is_an_owner_itself(world, backend):
    agent = world.people.new(memory_blocks=[{"label": "human", "value": "Likes tea"}])
    assert texts(backend, Entity("agent", agent)) == ["Likes tea"]
    assert Entity("agent", agent) in run(backend.owners())


def test_a_tag_makes_the_agent_somebodys_and_nobody_elses(world, backend):
    agent = world.people.agent(ALICE, memory_blocks=[{"label": "human", "value": "Likes tea"}])
    assert texts(backend, ALICE) == ["Likes tea"]
    assert texts(backend, Entity("agent", agent)) == []


def test_the_agents_of_one_entity_are_read_together(world, backend):
    for n in range(2):
        agent = world.people.new(tags=[tag_of(ALICE)], memory_blocks=[{"label": "human", "value": f"Fact {n}"}])
        world.client.agents.passages.create(agent, text=f"Passage {n}")
    assert sorted(texts(backend, ALICE)) == ["Fact 0", "Fact 1", "Passage 0", "Passage 1"]


def test_blank_blocks_and_our_own_are_no_memories(world, backend):
    agent = world.people.agent(ALICE, memory_blocks=[{"label": "human", "value": "  "}])
    own = world.people.block([agent], "What others noted", label="collab_signal")
    assert texts(backend, ALICE) == []
    assert run(backend.read([MemoryRef(backend="letta", id=own)])) == []
    assert run(backend.owners()) == []


def test_a_shared_block_is_the_oldest_agents_and_links_to_the_others(world, backend):
    first, second = world.people.agent(ALICE), world.people.agent(BOB)
    block = world.people.block([second, first], "Deploys happen on Fridays")
    (record,) = run(backend.records(ALICE)).records
    assert (record.ref.id, record.owner, record.links) == (block, ALICE, (BOB,))
    assert texts(backend, BOB) == []
    (read,) = run(backend.read([record.ref]))
    assert (read.owner, read.links) == (ALICE, (BOB,))
    assert run(backend.owners()) == [ALICE]


def test_a_shared_archive_is_told_once_with_links(world, backend):
    first, second = world.people.agent(ALICE), world.people.agent(BOB)
    row = world.client.agents.passages.create(first, text="The cache needs Redis 7", tags=["tool:redis", "loud"])[0]
    world.client.patch(f"/v1/agents/{second}/archives/attach/{row.archive_id}", cast_to=type(None))
    (record,) = run(backend.records(ALICE)).records
    assert record.ref.id == passage_id(row.archive_id, row.id)
    assert record.links == (Entity("tool", "redis"), BOB)
    assert texts(backend, BOB) == []
    assert [one.owner for one in run(backend.search(ALICE, "redis cache"))] == [ALICE]
    assert run(backend.search(BOB, "redis cache")) == []


def test_a_shared_block_makes_its_agents_neighbours(world, tmp_path):
    agents = [world.people.new() for _ in range(2)]
    world.people.block(agents, "Deploys happen on Fridays", label="команда / team")
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        for agent, entity in zip(agents, (ALICE, BOB), strict=True):
            attach(world.client, agent, entity=entity, layer=layer, every_s=None)
        layer.grant(ALICE, "tenant", "records")
        layer.grant(BOB, "tenant", "records")
        layer.drain()
        assert [one.entity for one in layer.neighbors(BOB) if one.entity.kind == "user"] == [ALICE]
        assert [one.entity for one in layer.neighbors(ALICE) if one.entity.kind == "user"] == [BOB]


def test_a_passage_behind_the_newest_page_is_found(world, backend, monkeypatch):
    monkeypatch.setattr("collab_layer_letta.records.PASSAGES", 3)
    monkeypatch.setattr("collab_layer_letta.client.PASSAGES", 3)
    refs = [world.people.archive(ALICE, f"Passage {n}") for n in range(8)]
    found = run(backend.read([MemoryRef(backend="letta", id=refs[0]), MemoryRef(backend="letta", id=refs[7])]))
    assert {one.text for one in found} == {"Passage 0", "Passage 7"}
    assert len(texts(backend, ALICE)) == 8


def test_paging_goes_on_when_the_record_it_stands_on_was_deleted(world, backend):
    refs = [world.people.archive(ALICE, f"Passage {n}") for n in range(6)]
    page = run(backend.records(ALICE, limit=2))
    world.people.unarchive(refs[1])
    assert texts(backend, ALICE, after=page.after, limit=10) == [f"Passage {n}" for n in range(2, 6)]


def test_what_changed_since_is_found_by_comparing_hashes(world, tmp_path):
    backend = world.backend()
    block = world.people.block([world.people.agent(ALICE)], "Bread needs salt")
    gone = world.people.archive(ALICE, "Trains leave at noon")
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        assert layer.index(backend, owners=[ALICE]) == 2
        layer.drain()
        assert layer.reconcile(backend) == 0
        world.client.blocks.update(block, value="Bread needs salt and time")
        world.people.unarchive(gone)
        world.people.archive(ALICE, "The parser fails on quotes")
        assert layer.reconcile(backend) == 3
        layer.drain()
        assert layer.reconcile(backend) == 0


def test_an_erased_block_leaves_the_prompt(world, backend):
    agent = world.people.agent(ALICE)
    block = world.people.block([agent], "My secret is seven")
    world.client.post(f"/v1/agents/{agent}/recompile", cast_to=object)
    assert "My secret" in world.people.prompt(agent)
    assert run(backend.erase([MemoryRef(backend="letta", id=block)])) == 1
    assert "My secret" not in world.people.prompt(agent)
    assert world.row(agent)["blocks"] == []


def test_our_own_blocks_cannot_be_erased_as_memories(world, backend):
    own = world.people.block([world.people.agent(ALICE)], "What others noted", label="collab_signal")
    assert run(backend.erase([MemoryRef(backend="letta", id=own)])) == 0
    assert world.left() == ["collab_signal"]
