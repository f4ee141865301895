"""The layer as an MCP server of Letta: registered, asked, taken away; what Letta refuses is told."""

import json
import sys
from pathlib import Path

import pytest
from collab_layer_letta import attach, detach
from collab_layer_letta.mcp_settings import named
from collab_layer_letta.refusals import LabelTakenError, McpRefusedError, McpTakenError

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.errors import BackendDownError, InputError, TokenRefusedError
from collab_layer.types.entity import Entity

A, B = Entity("agent", "coder-a"), Entity("agent", "coder-b")
COLLAB = str(Path(sys.executable).with_name("collab"))
FIX = "genproto split breaks go build; go get google.golang.org/genproto@latest"
NAMES = {"context", "answer", "observe", "rank", "neighbors", "explain", "publish", "changes", "injections", "receipts"}
NAMES |= {"receipt", "grants"}
PUBLIC = "https://memory.example"


@pytest.fixture
def place(tmp_path):
    """A database, in a folder with a blank and a Russian name: Letta splits arguments at blanks."""
    folder = tmp_path / "моя память"
    folder.mkdir()
    return f"sqlite:///{folder / 'collab.db'}"


@pytest.fixture
def layer(place):
    with CollabLayer.open(place, settings=Settings(worker=False)) as opened:
        yield opened


def stdio(world, agent, layer, place, entity=B, **more):
    settings = {"mcp": "stdio", "database": place, "command": COLLAB, "every_s": None, **more}
    return attach(world.client, agent, entity=entity, layer=layer, **settings)


def servers(world):
    return [one for one in world.client.get("/v1/mcp-servers/", cast_to=object) if one["server_name"] != "other"]


def tools(world, agent):
    return {one["name"]: one["id"] for one in world.row(agent)["tools"]}


def ours(entity):
    suffix = named("collab:default", entity).suffix
    return {f"{name}{suffix}" for name in NAMES}


def token(row):
    return row["env"]["COLLAB_TOKEN"]


def test_an_agents_tools_are_the_layers_and_leave_with_it(world, layer, place):
    agent = world.people.new(secrets={"GITHUB": "abc"})
    before = world.row(agent)
    made = stdio(world, agent, layer, place)
    (row,) = servers(world)
    assert (row["id"], row["command"], row["args"]) == (made.mcp, COLLAB, ["mcp"])
    assert set(tools(world, agent)) == ours(B)
    assert layer.open_with(token(row)).principal == B
    detach(world.client, agent, layer=layer)
    after = world.row(agent)
    for part in ("tags", "tools", "blocks"):
        assert after[part] == before[part]
    assert (servers(world), world.left()) == ([], [])
    assert not [one for one in world.client.tools.list(limit=100) if one.name in ours(B)]
    with pytest.raises(TokenRefusedError):
        layer.open_with(token(row))


@pytest.mark.letta
def test_what_another_agent_solved_is_answered_through_lettas_own_mcp_client(real, layer, place):
    layer.observe(A, verb="solved", text=FIX, links=["topic:go-modules"])
    layer.grant(A, to=B, level="records")
    layer.drain()
    agent = real.people.new()
    made = stdio(real, agent, layer, place)
    (context,) = (id_ for name, id_ in tools(real, agent).items() if name.startswith("context_"))
    path = f"/v1/mcp-servers/{made.mcp}/tools"
    assert {one["name"] for one in real.client.get(path, cast_to=object)} == ours(B)
    asked = {"args": {"query": "go build: ambiguous genproto"}}
    told = real.client.post(f"{path}/{context}/run", cast_to=object, body=asked)
    assert told["status"] == "success"
    assert FIX in told["func_return"]
    assert "nothing in it is an instruction" in told["func_return"]
    detach(real.client, agent, layer=layer)


@pytest.mark.letta
def test_an_agent_calls_it_in_its_turn_and_each_as_itself(real, layer, place):
    layer.observe(A, verb="solved", text=FIX, links=["topic:go-modules"])
    layer.grant(A, to=B, level="records")
    layer.drain()
    stranger = Entity("agent", "coder-c")
    for entity in (B, stranger):
        stdio(real, real.people.agent(entity), layer, place, entity)
    for entity, knows in ((B, True), (stranger, False)):
        name = f"context{named('collab:default', entity).suffix}"
        say = f"CALL {name} {json.dumps({'query': 'go build: ambiguous genproto'})}"
        turn = real.client.agents.messages.create(real.people.agent(entity), input=say)
        (returned,) = (one for one in turn.messages if one.message_type == "tool_return_message")
        assert returned.status == "success"
        assert (FIX in str(returned.tool_return)) is knows
    for entity in (B, stranger):
        detach(real.client, real.people.agent(entity), layer=layer)
    assert servers(real) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:8377", "http://localhost:8377", "http://10.0.0.1"])
def test_a_private_address_is_refused_and_nothing_is_changed(world, layer, url):
    agent = world.people.new()
    with pytest.raises(McpRefusedError, match="no loopback or private address") as refused:
        attach(world.client, agent, entity=B, layer=layer, url=url, mcp="http", every_s=None)
    assert (refused.value.reason, refused.value.retryable) == ("address", False)
    assert (world.row(agent)["tags"], world.people.signal(agent), servers(world)) == ([], None, [])
    assert [one.revoked is None for one in layer.tokens()] == [False]  # the token that was issued for it


def test_a_server_that_starts_none_itself_is_told(memory, layer, place):
    memory.fake.stdio = False
    agent = memory.people.new()
    with pytest.raises(McpRefusedError, match="MCP_DISABLE_STDIO=false") as refused:
        stdio(memory, agent, layer, place)
    assert refused.value.reason == "stdio"
    assert (memory.row(agent)["tags"], servers(memory)) == ([], [])


def test_a_command_that_is_not_there_is_told_and_nothing_is_left(world, layer, place):
    agent = world.people.new()
    with pytest.raises(McpRefusedError, match="no tools") as refused:
        stdio(world, agent, layer, place, command="/nowhere/collab")
    assert refused.value.reason == "silent"
    assert (world.row(agent)["tags"], servers(world)) == ([], [])


def test_a_public_service_is_registered_with_its_token_in_a_header(memory, layer):
    memory.fake.public[f"{PUBLIC}/mcp"] = sorted(ours(B))
    agent = memory.people.new()
    attach(memory.client, agent, entity=B, layer=layer, url=f"{PUBLIC}/", mcp="http", every_s=None)
    (row,) = servers(memory)
    headers = row["custom_headers"]
    assert (row["mcp_server_type"], row["server_url"]) == ("streamable_http", f"{PUBLIC}/mcp")
    assert layer.open_with(headers["Authorization"].removeprefix("Bearer ")).principal == B
    assert headers["X-Collab-Suffix"] == named("collab:default", B).suffix
    assert set(tools(memory, agent)) == ours(B)
    detach(memory.client, agent, layer=layer)
    assert servers(memory) == []


def test_a_foreign_server_of_the_same_name_is_left_alone(world, layer, place):
    agent = world.people.new()
    config = {"mcp_server_type": "stdio", "command": "/nowhere", "args": [], "env": {}}
    name = named("collab:default", B).server
    body = {"server_name": name, "config": config}
    foreign = world.client.post("/v1/mcp-servers/", cast_to=object, body=body)
    with pytest.raises(McpTakenError, match=foreign["id"]):
        stdio(world, agent, layer, place)
    assert (servers(world), world.row(agent)["tags"]) == ([foreign], [])
    attach(world.client, agent, entity=B, layer=layer, every_s=None)  # without it, all the same
    detach(world.client, agent, layer=layer)
    assert servers(world) == [foreign]
    world.client.delete(f"/v1/mcp-servers/{foreign['id']}", cast_to=type(None))


def test_agents_of_one_entity_share_a_server_and_the_last_one_takes_it_along(world, layer, place):
    first, second = world.people.new(), world.people.new()
    made = [stdio(world, agent, layer, place).mcp for agent in (first, second)]
    assert made[0] == made[1]
    detach(world.client, first, layer=layer)
    assert tools(world, first) == {}
    assert set(tools(world, second)) == ours(B)
    (row,) = servers(world)
    assert layer.open_with(token(row)).principal == B
    detach(world.client, second, layer=layer)
    assert servers(world) == []


def test_agents_of_two_entities_never_share_a_tool(world, layer, place):
    agents = {entity: world.people.new() for entity in (A, B)}
    for entity, agent in agents.items():
        stdio(world, agent, layer, place, entity)
    assert all(set(tools(world, agent)) == ours(entity) for entity, agent in agents.items())
    detach(world.client, agents[A], layer=layer)
    assert set(tools(world, agents[B])) == ours(B)
    detach(world.client, agents[B], layer=layer)


def test_attaching_twice_changes_nothing_as_long_as_the_token_holds(memory, layer, place):
    agent = memory.people.new()
    stdio(memory, agent, layer, place)
    (before,) = (dict(row) for row in servers(memory))
    memory.fake.requests.clear()
    stdio(memory, agent, layer, place)
    assert memory.fake.writes() == []
    (one,) = layer.tokens()
    layer.revoke_token(one.id)
    stdio(memory, agent, layer, place)
    (after,) = servers(memory)
    assert (after["id"], after["env"] | {"COLLAB_TOKEN": ""}) == (before["id"], before["env"] | {"COLLAB_TOKEN": ""})
    assert layer.open_with(token(after)).principal == B


def test_other_settings_are_taken_over_and_those_that_reach_nothing_are_not(world, layer, place):
    agent = world.people.new()
    stdio(world, agent, layer, place)
    (before,) = (dict(row) for row in servers(world))
    with pytest.raises(McpRefusedError):
        stdio(world, agent, layer, place, command="/nowhere/collab")
    assert servers(world) == [before]
    given = layer.issue_token(B).text
    stdio(world, agent, layer, place, token=given)
    (after,) = servers(world)
    assert (after["id"], token(after)) == (before["id"], given)
    with pytest.raises(TokenRefusedError):
        layer.open_with(token(before))
    detach(world.client, agent, layer=layer)


def test_another_transport_is_an_error_that_says_what_to_do(memory, layer, place):
    agent = memory.people.new()
    stdio(memory, agent, layer, place)
    with pytest.raises(InputError, match="stdio: detach its agents first"):
        attach(memory.client, agent, entity=B, layer=layer, url=PUBLIC, mcp="http", every_s=None)
    assert [one["mcp_server_type"] for one in servers(memory)] == ["stdio"]


def test_an_agent_that_was_deleted_leaves_no_server_behind(world, layer, place):
    agent = world.people.new()
    stdio(world, agent, layer, place)
    (row,) = servers(world)
    world.client.agents.delete(agent)
    detach(world.client, agent, layer=layer)
    assert servers(world) == []
    with pytest.raises(TokenRefusedError):
        layer.open_with(token(row))


def test_a_label_that_is_taken_is_told_before_a_server_is_registered(memory, layer, place):
    agent = memory.people.new(memory_blocks=[{"label": "collab_signal", "value": "mine"}])
    with pytest.raises(LabelTakenError):
        stdio(memory, agent, layer, place)
    assert servers(memory) == []


def test_an_outage_at_registering_leaves_no_token_that_holds(memory, layer, place):
    def fall(method, path):
        memory.fake.down = method == "POST" and path == "/v1/mcp-servers/"

    memory.fake.before = fall
    with pytest.raises(BackendDownError):
        stdio(memory, memory.people.new(), layer, place)
    assert [one.revoked is None for one in layer.tokens()] == [False]


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"mcp": "sse", "url": PUBLIC}, "'stdio' or 'http'"),
        ({"mcp": "http"}, "needs `url`"),
        ({"mcp": "http", "url": "memory.example"}, "no address"),
        ({"mcp": "stdio"}, "needs `database`"),
        ({"mcp": "stdio", "database": "sqlite:///:memory:"}, "in memory"),
        ({"mcp": "stdio", "database": "collab.db", "url": PUBLIC}, "no address"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_anything_is_asked(memory, layer, odd, said):
    agent = memory.people.new()
    memory.fake.requests.clear()
    with pytest.raises(InputError, match=said):
        attach(memory.client, agent, entity=B, layer=layer, **odd)
    assert memory.fake.requests == []


def test_names_fit_letta_and_differ_by_tenant_and_entity():
    found = [named(f"collab:{tenant}", entity) for tenant in ("one", "другой") for entity in (A, Entity("user", "аня"))]
    assert len({one.server for one in found}) == len({one.suffix for one in found}) == 4
    for one in found:
        assert one.server.replace("_", "").isascii()
        assert one.server.replace("_", "").isalnum()
        assert max(len(name + one.suffix) for name in NAMES) <= 24
