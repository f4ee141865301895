"""Attach and detach: what an agent gets, what it keeps, and that nothing is left."""

import asyncio

import pytest
from collab_layer_letta import attach, detach
from collab_layer_letta.refusals import LabelTakenError, LettaGoneError, ToolTakenError
from collab_layer_letta.tool import SCHEMA, source

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.errors import BackendDownError, InputError, TokenRefusedError
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import Entity

ALICE = Entity("user", "alice")
URL = "http://127.0.0.1:9"
FOREIGN = "def collaborative_memory(query: str) -> str:\n    return 'mine'\n"


@pytest.fixture
def layer(tmp_path):
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as opened:
        yield opened


def secrets(world, agent):
    return {one["key"]: one["value"] for one in world.row(agent)["secrets"]}


def tools(world, agent):
    return [one["name"] for one in world.row(agent)["tools"]]


def test_the_tool_comes_with_address_and_token_and_the_agents_own_keys_stay(world):
    agent = world.people.new(secrets={"GITHUB": "abc"})
    made = attach(world.client, agent, entity=ALICE, url=f"{URL}/", token="collab_x")
    assert tools(world, agent) == ["collaborative_memory"]
    assert secrets(world, agent) == {"GITHUB": "abc", "COLLAB_SERVICE_URL": URL, "COLLAB_SERVICE_TOKEN": "collab_x"}
    (tool,) = world.client.tools.list(name="collaborative_memory")
    assert (tool.id, tool.json_schema, tool.source_code) == (made.tool, SCHEMA, source())


def test_detaching_leaves_an_agent_as_it_was(world):
    agent = world.people.new(secrets={"GITHUB": "abc"}, tags=["mine"])
    before = world.row(agent)
    attach(world.client, agent, entity=ALICE, url=URL, token="collab_x")
    asyncio.run(world.backend().write([derived(ALICE, "Pin the parser")]))
    assert "Pin the parser" in world.people.prompt(agent)
    gone = detach(world.client, agent)
    assert (gone.entity, gone.tool, gone.token) == (ALICE, True, "collab_x")
    after = world.row(agent)
    for part in ("tags", "tools", "blocks"):
        assert after[part] == before[part]
    assert secrets(world, agent) == {"GITHUB": "abc"}
    assert "Pin the parser" not in world.people.prompt(agent)
    assert world.left() == []


def test_a_tag_that_was_there_before_stays(world):
    agent = world.people.new(tags=["entity:user:alice"])
    assert attach(world.client, agent).entity == ALICE
    detach(world.client, agent)
    assert world.row(agent)["tags"] == ["entity:user:alice"]


def test_what_another_agent_still_uses_stays(world):
    first, second = world.people.new(), world.people.new()
    for agent in (first, second):
        attach(world.client, agent, entity=ALICE, url=URL, token="collab_x")
    detach(world.client, first)
    assert tools(world, second) == ["collaborative_memory"]
    assert world.people.signal(second) is not None
    assert world.people.signal(first) is None
    detach(world.client, second)
    assert world.left() == []


def test_a_foreign_tool_of_the_same_name_is_left_alone(world):
    agent = world.people.new()
    foreign = world.client.tools.create(source_code=FOREIGN, json_schema=SCHEMA, source_type="python", tags=["mine"])
    with pytest.raises(ToolTakenError, match=foreign.id):
        attach(world.client, agent, entity=ALICE, url=URL, token="collab_x")
    assert [one.source_code for one in world.client.tools.list(name="collaborative_memory")] == [FOREIGN]
    assert (world.row(agent)["tags"], world.people.signal(agent), secrets(world, agent)) == ([], None, {})
    attach(world.client, agent, entity=ALICE)  # without the tool it can be attached all the same
    detach(world.client, agent)
    assert [one.id for one in world.client.tools.list(name="collaborative_memory")] == [foreign.id]
    world.client.tools.delete(foreign.id)


def test_attaching_twice_changes_nothing(memory):
    agent = memory.people.new()
    attach(memory.client, agent, entity=ALICE)
    memory.fake.requests.clear()
    attach(memory.client, agent, entity=ALICE)
    assert memory.fake.writes() == []


@pytest.mark.parametrize("tags", [["entity:user:bob"], []])
def test_an_agent_stands_for_one_entity(world, tags):
    agent = world.people.new(tags=tags)
    if not tags:
        attach(world.client, agent, entity="user:bob")
    with pytest.raises(InputError, match="user:bob"):
        attach(world.client, agent, entity=ALICE)


def test_an_agent_that_was_deleted_is_told_and_tidied_up_after(world):
    agent = world.people.new()
    attach(world.client, agent, entity=ALICE)
    world.client.agents.delete(agent)
    with pytest.raises(LettaGoneError, match=agent):
        attach(world.client, agent, entity=ALICE)
    assert detach(world.client, agent).entity is None
    assert "collab_signal" not in world.left()


def test_detaching_what_was_never_attached_changes_nothing(memory):
    agent = memory.people.new()
    memory.fake.requests.clear()
    assert detach(memory.client, agent).entity is None
    assert memory.fake.writes() == []


@pytest.mark.parametrize("odd", ["", "unknown", "agent-1", "a/b", "block-3b241101-e2bb-4255-8caf-4136c566a962"])
def test_what_is_no_agent_id_is_refused_before_anything_is_asked(memory, odd):
    with pytest.raises(InputError):
        attach(memory.client, odd)
    with pytest.raises(InputError):
        detach(memory.client, odd)
    assert memory.fake.requests == []


@pytest.mark.parametrize("odd", [{"url": "ftp://x", "token": "t"}, {"url": URL}, {"limit": 0}])
def test_settings_that_cannot_be_used_are_refused_before_anything_is_changed(memory, odd):
    agent = memory.people.new()
    memory.fake.requests.clear()
    with pytest.raises(InputError):
        attach(memory.client, agent, entity=ALICE, **odd)
    assert memory.fake.writes() == []


def test_an_attachment_that_broke_off_is_completed_by_calling_again(memory):
    agent = memory.people.new()

    def fall(method, path):
        memory.fake.down = method == "POST" and path == "/v1/blocks/"

    memory.fake.before = fall
    with pytest.raises(BackendDownError):
        attach(memory.client.with_options(max_retries=0), agent, entity=ALICE, url=URL, token="t")
    memory.fake.before, memory.fake.down = None, False
    attach(memory.client, agent, entity=ALICE, url=URL, token="t")
    assert memory.people.signal(agent) is not None
    detach(memory.client, agent)
    assert (memory.left(), memory.row(agent)["tags"]) == ([], [])


def test_the_layer_issues_a_token_and_takes_it_back(world, layer):
    agent = world.people.new()
    attach(world.client, agent, entity=ALICE, layer=layer, url=URL, every_s=None)
    first = secrets(world, agent)["COLLAB_SERVICE_TOKEN"]
    assert layer.open_with(first).principal == ALICE
    attach(world.client, agent, entity=ALICE, layer=layer, url=URL, every_s=None)
    second = secrets(world, agent)["COLLAB_SERVICE_TOKEN"]
    with pytest.raises(TokenRefusedError):
        layer.open_with(first)
    detach(world.client, agent, layer=layer)
    with pytest.raises(TokenRefusedError):
        layer.open_with(second)


def test_inside_an_event_loop_the_blocking_call_says_what_to_do(memory):
    async def story():
        attach(memory.client, memory.people.new())

    with pytest.raises(InputError, match="attach_async"):
        asyncio.run(story())


def test_a_foreign_signal_block_is_named_with_its_agent(memory):
    agent = memory.people.new(memory_blocks=[{"label": "collab_signal", "value": "mine"}])
    with pytest.raises(LabelTakenError, match=agent):
        attach(memory.client, agent, entity=ALICE)
