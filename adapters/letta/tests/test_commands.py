"""`collab letta` over a server in memory: what is printed, exit statuses, one line per error."""

import json
import sys
from pathlib import Path

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.surface.cli.main import main

A, B = "agent:coder-a", "agent:coder-b"
COLLAB = str(Path(sys.executable).with_name("collab"))


@pytest.fixture
def collab(memory, loopback, tmp_path, capsys, monkeypatch):
    """`collab` over one file and one server."""
    url = f"sqlite:///{tmp_path / 'cli.db'}"
    with loopback(memory.fake) as server:
        monkeypatch.setenv("LETTA_BASE_URL", server)
        monkeypatch.delenv("LETTA_API_KEY", raising=False)

        def call(*arguments, status=0):
            found = main(["--url", url, *arguments])
            streams = capsys.readouterr()
            assert found == status, streams.err
            assert "Traceback" not in streams.err
            return streams.err if status else streams.out

        call.url = url
        yield call


def two_agents(memory):
    a, b = (memory.people.new() for _ in "ab")
    memory.client.agents.passages.create(a, text="Go modules conflict: go mod tidy fixed it", tags=["topic:go"])
    memory.client.agents.passages.create(b, text="A Go modules conflict, unsolved", tags=["topic:go"])
    return a, b


def test_attach_sync_and_detach_from_the_shell(collab, memory):
    a, b = two_agents(memory)
    collab("grant", A, "--to", B, "--level", "records")
    for agent, entity in ((a, A), (b, B)):
        said = collab("letta", "attach", "--agent", agent, "--entity", entity)
        assert f"{agent} stands for {entity}." in said
    told = json.loads(collab("letta", "sync", "--json"))
    assert told["failed"] == []
    assert {one["entity"] for one in told["signals"]} == {A, B}
    assert "go mod tidy" in memory.people.prompt(b)
    assert "unchanged" in collab("letta", "sync")
    for agent in (a, b):
        assert "no more" in collab("letta", "detach", "--agent", agent)
    assert memory.left() == []


def test_attaching_with_an_address_issues_a_token_for_that_entity_alone(collab, memory):
    agent = memory.people.new()
    address = ("--url", "http://127.0.0.1:9", "--json")
    told = json.loads(collab("letta", "attach", "--agent", agent, "--entity", "user:anna", *address))
    assert told["tool"].startswith("tool-")
    token = next(one["value"] for one in memory.row(agent)["secrets"] if one["key"] == "COLLAB_SERVICE_TOKEN")
    with CollabLayer.open(collab.url, settings=Settings(worker=False)) as layer:
        assert str(layer.open_with(token).principal) == "user:anna"


def test_an_mcp_server_from_the_shell_is_asked_over_this_database_and_leaves_with_its_agent(collab, memory):
    agent = memory.people.new()
    call = ("letta", "attach", "--agent", agent, "--entity", "user:anna", "--mcp", "stdio", "--mcp-command", COLLAB)
    told = json.loads(collab(*call, "--json"))
    (row,) = memory.fake.mcp.values()
    assert (told["mcp"], told["tool"]) == (row["id"], None)
    assert row["env"]["COLLAB_URL"] == collab.url
    with CollabLayer.open(collab.url, settings=Settings(worker=False)) as layer:
        assert str(layer.open_with(row["env"]["COLLAB_TOKEN"]).principal) == "user:anna"
    assert f"MCP server {row['id']}" in collab(*call)
    collab("letta", "detach", "--agent", agent)
    assert memory.fake.mcp == {}


def test_an_address_that_letta_does_not_call_is_one_line_and_status_1(collab, memory):
    address = ("--mcp", "http", "--url", "http://127.0.0.1:8377")
    told = collab("letta", "attach", "--agent", memory.people.new(), *address, status=1)
    assert "no loopback or private address" in told
    assert len(told.splitlines()) == 1


def test_what_cannot_be_used_is_one_line_and_status_2(collab):
    assert "no id of a Letta agent" in collab("letta", "attach", "--agent", "x", status=2)


def test_an_agent_that_is_not_there_is_one_line_and_status_1(collab):
    gone = "agent-3b241101-e2bb-4255-8caf-4136c566a962"
    assert "does not exist" in collab("letta", "attach", "--agent", gone, status=1)
    assert "was not attached" in collab("letta", "detach", "--agent", gone)


def test_a_round_that_was_not_whole_has_status_1(collab, memory):
    memory.people.new(
        tags=["collab:default", "entity:user:anna"], memory_blocks=[{"label": "collab_signal", "value": "mine"}]
    )
    assert "collab_signal" in collab("letta", "sync", status=1)


def test_a_server_that_is_down_is_told(collab, memory):
    memory.fake.failing = [503] * 3  # the SDK tries twice more
    assert "the Letta server failed" in collab("letta", "sync", status=1)
