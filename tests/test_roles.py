"""Who answers in which role: what `open` is given, what the settings say, what plugins bring."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.config import RoleSettings, Settings
from collab_layer.errors import InputError, ModelSetupError
from collab_layer.testing import FakeOpenAI, ScriptedModel
from collab_layer.testing.openai_server import HttpAnswer, completion

HERE = json.dumps({"here": True})


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        server.will(completion(HERE))
        yield server


def at(server: FakeOpenAI, **more) -> Settings:
    memory = RoleSettings(base_url=server.url, **more)
    return Settings(worker=False, memory=memory)


def names(layer: CollabLayer) -> dict[str, str | None]:
    return {row.role: row.model for row in layer.models()}


class Closing(ScriptedModel):
    """Counts how often it was closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


def test_a_name_is_opened_as_the_settings_of_its_role_say(sqlite_url, server):
    with CollabLayer.open(sqlite_url, memory_model="openai:small", settings=at(server, api_key="sk-own")) as layer:
        assert names(layer) == {"memory": "openai:small", "reasoning": None}
        assert layer.models(ask=True)[0].condition == "ok"
    assert server.requests[0]["model"] == "small"
    assert server.keys == ["Bearer sk-own"]


def test_a_name_in_the_settings_is_used_where_none_is_given(sqlite_url, server):
    with CollabLayer.open(sqlite_url, settings=at(server, model="openai:from-settings")) as layer:
        assert names(layer)["memory"] == "openai:from-settings"
    with CollabLayer.open(sqlite_url, memory_model="openai:given", settings=at(server, model="openai:other")) as layer:
        assert names(layer)["memory"] == "openai:given"


def test_the_environment_sets_both_roles_apart(sqlite_url, server, monkeypatch):
    for name, value in {
        "MEMORY_MODEL": "openai:light",
        "MEMORY_BASE_URL": server.url,
        "MEMORY_API_KEY": "sk-light",
        "MEMORY_CALLS_PER_DAY": "1",
        "REASONING_MODEL": "openai:heavy",
        "REASONING_BASE_URL": server.url,
        "REASONING_API_KEY": "sk-heavy",
        "WORKER": "false",
    }.items():
        monkeypatch.setenv(f"COLLAB_{name}", value)
    with CollabLayer.open(sqlite_url) as layer:
        assert [row.condition for row in layer.models(ask=True)] == ["ok", "ok"]
        assert [row.condition for row in layer.models(ask=True)] == ["down", "ok"]
    assert [sent["model"] for sent in server.requests] == ["light", "heavy", "heavy"]
    assert server.keys == ["Bearer sk-light", "Bearer sk-heavy", "Bearer sk-heavy"]


def test_an_object_is_used_as_it_is(sqlite_url):
    model = ScriptedModel([{"here": True}], name="mine")
    with CollabLayer.open(sqlite_url, reasoning_model=model, settings=Settings(worker=False)) as layer:
        assert names(layer) == {"memory": None, "reasoning": "mine"}
        assert layer.models(ask=True)[1].condition == "ok"
    assert len(model.prompts) == 1


def test_what_is_no_model_is_refused(sqlite_url):
    with pytest.raises(InputError, match="the reasoning model must be a name or have"):
        CollabLayer.open(sqlite_url, reasoning_model=object(), settings=Settings(worker=False))


def test_opening_sends_nothing_and_closing_closes_the_connections(sqlite_url, server):
    async def story() -> int:
        async with await AsyncCollabLayer.open(sqlite_url, memory_model="openai:small", settings=at(server)) as layer:
            assert server.requests == []
            await layer.models(ask=True)
        return len(server.requests)

    assert asyncio.run(story(), debug=True) == 1  # an open connection would be a ResourceWarning, hence an error


def test_a_client_in_both_roles_is_closed_once(sqlite_url):
    model = Closing([])
    alone = Settings(worker=False)
    with CollabLayer.open(sqlite_url, memory_model=model, reasoning_model=model, settings=alone) as layer:
        assert model.closed == 0
        assert names(layer) == {"memory": "scripted", "reasoning": "scripted"}
    assert model.closed == 1


def test_a_question_in_the_air_does_not_keep_a_layer_from_closing(sqlite_url, server):
    server.will(HttpAnswer(stall=True))

    async def story() -> None:
        layer = await AsyncCollabLayer.open(sqlite_url, memory_model="openai:small", settings=at(server))
        asking = asyncio.ensure_future(layer.models(ask=True))
        await asyncio.to_thread(server.came.wait, 30)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await asyncio.wait_for(layer.aclose(), 10)

    asyncio.run(story())


def test_a_setup_that_cannot_work_is_told_at_opening_and_makes_no_database(tmp_path):
    path = tmp_path / "collab.db"
    with pytest.raises(ModelSetupError, match="there is no provider"):
        CollabLayer.open(str(path), memory_model="nobody:gpt", settings=Settings(worker=False))
    assert not path.exists()


def test_the_key_is_in_no_repr(sqlite_url, server):
    settings = at(server, api_key="sk-canary", model="openai:small")
    with CollabLayer.open(sqlite_url, settings=settings) as layer:
        core = layer._layer._core  # where a careless log line would find it
        told = repr(settings) + repr(core.tools.models) + repr(layer.models())
    assert "sk-canary" not in told


OPEN = """
import sys
from collab_layer import CollabLayer
from collab_layer.config import Settings
with CollabLayer.open({url!r}, settings=Settings(worker=False)) as layer:
    layer.observe("user:ann", "item:dune")
    layer.models(ask=True)
assert not {{"pydantic_ai", "openai"}} & set(sys.modules)
"""


def test_a_layer_without_models_imports_no_model_client(sqlite_url):
    subprocess.run([sys.executable, "-c", OPEN.format(url=sqlite_url)], check=True, capture_output=True)
