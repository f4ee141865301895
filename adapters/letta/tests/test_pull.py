"""The pull tool as the Letta server runs it: alone, from its source."""

import ast
import sys

import pytest
from collab_layer_letta import attach
from collab_layer_letta.tool import SCHEMA, source

from collab_layer.types.entity import Entity

ALICE = Entity("user", "alice")


def attached(world, url, token="collab_token"):
    agent = world.people.new()
    attach(world.client, agent, entity=ALICE, url=url, token=token)
    return agent


def test_it_asks_the_service_and_hands_on_its_text(world, service):
    with service({"text": 'Collaborative memory: "Парсер лечится экранированием"'}) as (url, asked):
        answer = world.run_tool(attached(world, url), query="парсер падает на кавычках")
    assert answer == 'Collaborative memory: "Парсер лечится экранированием"'
    ((path, headers, body),) = asked
    assert (path, headers["Authorization"]) == ("/v1/context", "Bearer collab_token")
    assert body == {"query": "парсер падает на кавычках", "budget_tokens": 400}


def test_it_asks_nothing_longer_and_answers_nothing_longer_than_is_good(memory, service):
    with service({"text": "y" * 100_000}) as (url, asked):
        answer = memory.run_tool(attached(memory, url), query="x" * 100_000)
    assert len(answer) == 6000
    assert len(asked[0][2]["query"]) == 2000


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ({"detail": "no"}, 401, "refused this agent's token"),
        ({"detail": "no"}, 403, "refused this agent's token"),
        ({"detail": "busy"}, 503, "answered with status 503"),
        (b"<html>", 200, "did not answer"),
        ({"other": 1}, 200, "did not answer (KeyError)"),
        ([1], 200, "did not answer (TypeError)"),
    ],
)
def test_a_failure_is_one_clear_sentence(memory, service, answer, status, said):
    with service(answer, status) as (url, _):
        told = memory.run_tool(attached(memory, url), query="x")
    assert told.startswith("Collaborative memory ")
    assert said in told
    assert told.endswith("go on without it.")


def test_a_service_that_is_not_there_is_told(world):
    assert "did not answer (URLError)" in world.run_tool(attached(world, "http://127.0.0.1:9"), query="x")


def test_a_token_is_never_sent_to_another_address(memory, service):
    with (
        service({"text": "stolen"}) as (elsewhere, asked_there),
        service({}, 302, {"location": f"{elsewhere}/v1/context"}) as (url, _),
    ):
        told = memory.run_tool(attached(memory, url), query="x")
    assert "status 302" in told
    assert asked_there == []


def test_without_its_environment_it_says_that_it_is_not_set_up(memory):
    agent = attached(memory, "http://127.0.0.1:9")
    memory.client.agents.update(agent, secrets={})
    assert "not set up" in memory.run_tool(agent, query="x")


def test_it_needs_nothing_but_the_standard_library():
    tree = ast.parse(source())
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    assert function.name == SCHEMA["name"]
    imported = {
        name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert imported <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [argument.arg for argument in function.args.args] == SCHEMA["parameters"]["required"]
    assert len(source().splitlines()) <= 45


def test_its_schema_describes_every_argument():
    parameters = SCHEMA["parameters"]
    assert parameters["properties"].keys() == set(parameters["required"])
    assert all(one["type"] and one["description"] for one in parameters["properties"].values())
