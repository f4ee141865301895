"""A group chat of three speakers in a real Mem0: each one's words are its own memory, and nobody else's."""

import asyncio

import pytest
from collab_layer_mem0 import backend_of, collaborative, mapping
from collab_layer_mem0.testing import open_memory
from mem0 import AsyncMemory

from collab_layer.types.entity import Entity

CHAT = [
    {"role": "user", "name": "ann", "content": "The Okta certificate was rotated and the login loops"},
    {"role": "user", "name": "ben", "content": "My divorce hearing is on Tuesday, so I will be away"},
    {"role": "user", "name": "carl", "content": "The login loop goes away once the session cookie is cleared"},
    {"role": "assistant", "name": "helper", "content": "Noted: clear the session cookie after a rotation"},
]
WHERE = {"user_id": "ann", "run_id": "standup"}


@pytest.fixture
def memory(bare, layer):
    made = collaborative(bare, layer)
    yield made
    made.close()


def owned(layer, owner):
    found = layer.changes(owner, "2020-01-01T00:00:00Z")
    return [one.new for one in found if str(one.whose) == owner and one.new is not None]


def test_each_speakers_words_are_its_own_memory_only(memory, layer):
    memory.add(CHAT, infer=False, **WHERE)
    layer.drain()
    for message in CHAT:
        kind = "agent" if message["role"] == "assistant" else "user"
        assert owned(layer, f"{kind}:{message['name']}") == [message["content"]]


def test_a_speaker_who_shares_shares_nobody_elses_words(memory, layer):
    memory.add(CHAT, infer=False, **WHERE)
    layer.grant("user:ann", "user:dora", "records")
    layer.drain()
    asked = ("login loop after the Okta certificate", "session cookie cleared", "hearing on Tuesday, away")
    told = "".join(layer.context("user:dora", query).model_dump_json(exclude={"query"}) for query in asked)
    assert "rotated" in told
    assert "divorce" not in told
    assert "cookie" not in told
    layer.grant("user:carl", "user:dora", "records")
    layer.drain()
    told = "".join(layer.context("user:dora", query).model_dump_json(exclude={"query"}) for query in asked)
    assert "cookie" in told
    assert "divorce" not in told


def test_a_chat_that_is_brought_in_afterwards_gives_the_same_owners(bare, layer):
    bare.add(CHAT, infer=False, **WHERE)
    memory = collaborative(bare, layer)
    people = ["user:ann", "user:ben", "user:carl", "agent:helper"]
    assert layer.index(backend_of(memory), owners=people) == 4
    layer.drain()
    assert [len(owned(layer, one)) for one in people] == [1, 1, 1, 1]
    assert owned(layer, "user:ben") == [CHAT[1]["content"]]
    memory.close()


def test_forgetting_the_host_of_a_chat_leaves_the_words_of_its_guests(memory, layer):
    memory.add(CHAT, infer=False, **WHERE)
    layer.drain()
    layer.forget("user:ann")
    assert owned(layer, "user:ben") == [CHAT[1]["content"]]
    layer.forget("user:ben")
    assert "divorce" not in str(owned(layer, "user:carl"))


def test_what_mem0_extracts_from_several_people_is_nobodys_but_the_chats(memory, layer):
    memory.add(CHAT, **WHERE)
    memory.add([{"role": "user", "name": "ann", "content": "I moved to Kazan"}], user_id="ann")
    layer.drain()
    assert all("divorce" not in text for text in owned(layer, "user:ann"))
    assert any("Kazan" in text for text in owned(layer, "user:ann"))


def test_the_awaited_class_does_the_same(tmp_path, layer):
    async def chat():
        memory = collaborative(open_memory(tmp_path / "mem0", "chroma", cls=AsyncMemory), layer)
        await memory.add(CHAT, infer=False, **WHERE)
        await memory.add(CHAT, **WHERE)

    asyncio.run(chat())
    layer.drain()
    assert owned(layer, "user:ben") == [CHAT[1]["content"]]
    assert owned(layer, "user:ann") == [CHAT[0]["content"]]


@pytest.mark.parametrize(
    ("payload", "owner"),
    [
        ({"user_id": "ann", "actor_id": "ben", "role": "user"}, "user:ben"),
        ({"user_id": "ann", "actor_id": "bot", "role": "assistant"}, "agent:bot"),
        ({"user_id": "ann", "actor_id": "Боря Петров"}, "user:Боря%20Петров"),
        ({"user_id": "ann", "actor_id": ""}, "user:ann"),
        ({"user_id": "ann", "actor_id": "n" * 300}, None),
    ],
)
def test_a_speaker_that_cannot_be_named_gives_its_words_to_nobody_else(payload, owner):
    found = mapping.owner_of(payload)
    assert (None if found is None else str(found)) == owner


def test_an_owner_is_looked_for_under_its_id_and_where_it_spoke():
    assert mapping.native_scopes(Entity("user", "ben")) == [{"user_id": "ben"}, {"actor_id": "ben"}]
    assert mapping.native_scopes(Entity("session", "s")) == [{"run_id": "s"}]
    assert mapping.native_scopes(Entity("item", "dune")) == []
