"""A thread in which others than its user speak: each one's words are its own memory, and nobody else's."""

import asyncio

import pytest
from collab_layer_zep import ZepBackend, backend_of, collaborative
from zep_cloud import AddMessage, AsyncZep

from collab_layer import AsyncCollabLayer, Entity
from collab_layer.config import Settings
from collab_layer.errors import BackendError

ANN, BEN, CARL = (Entity("user", name) for name in ("ann", "ben", "carl"))
OKTA = "The Okta certificate was rotated and the login loops"
HEARING = "My divorce hearing is on Tuesday, so I will be away"
PEOPLE = {"Ben B.": "user:ben"}
CHAT = [
    AddMessage(role="user", name="Ann", content=OKTA),
    AddMessage(role="user", name="Ben B.", content=HEARING),
    AddMessage(role="user", name="Dora", content="I am the admin of all of you"),
    AddMessage(role="user", content="The cookie has to be cleared"),
    AddMessage(role="assistant", name="helper", content="Noted"),
]


@pytest.fixture
def thread(zep):
    zep.user.create(user_id="ben")
    user = zep.user.create(user_id="ann", first_name="Ann")
    return zep.thread.create(user_uuid=user.uuid_).uuid_


def extracted(server, zep, thread, messages):
    """A fact for each message, as Zep draws it: in the graph of the thread's user, resting on the message."""
    graph = zep.thread.get(thread).graph_uuid
    for one in messages:
        edge = {"fact": one.content, "fact_name": "SAID", "source_node": {"name": "a"}, "target_node": {"name": "b"}}
        added = zep.graph.edge.add(graph, edges=[edge]).edges[0]
        server.state.edges[added.uuid_]["episode_uuids"] = [one.uuid_]


@pytest.fixture
def told(server, zep, thread):
    extracted(server, zep, thread, zep.thread.add_messages(thread, messages=CHAT).messages)
    return thread


def texts(store, owner):
    return {record.text for record in asyncio.run(store.records(owner)).records}


OWN = {OKTA, "The cookie has to be cleared", "Noted"}


def test_what_others_said_in_a_users_thread_is_no_memory_of_the_user(told, store):
    made = store()
    assert texts(made, ANN) == OWN
    assert {one.text for one in asyncio.run(made.search(ANN, "divorce hearing admin cookie", k=50))} <= OWN
    assert asyncio.run(made.owners()) == [ANN]


def test_nor_by_reference_or_as_of_a_time(told, server, store):
    made = store()
    edge = next(row for row in server.state.edges.values() if row["fact"] == HEARING)
    [own] = [row for row in server.state.edges.values() if row["fact"] == OKTA]
    refs = [made_ref(made, row) for row in (edge, own)]
    assert [one.text for one in asyncio.run(made.read(refs))] == [OKTA]
    assert {one.text for one in asyncio.run(made.records_as_of(ANN, made._clock()))} == OWN


def made_ref(store, row):
    from collab_layer.types.entity import MemoryRef

    return MemoryRef(backend=store.name, id=f"{row['graph_uuid']}/{row['uuid']}")


def test_health_says_how_many_facts_are_left_out_and_no_name(told, store):
    made = store()
    assert "rest on words" not in asyncio.run(made.health()).detail
    texts(made, ANN)
    detail = asyncio.run(made.health()).detail
    assert "2 facts in graphs of `user:ann` rest on words of others" in detail
    assert "Dora" not in detail


def test_a_name_of_the_user_can_be_told(told, store):
    assert texts(store(speakers={"DORA": "user:ann"}), ANN) == OWN | {"I am the admin of all of you"}


def test_a_fact_that_rests_on_two_speakers_is_left_out(told, server, store):
    mine = next(row for row in server.state.edges.values() if row["fact"] == OKTA)
    his = next(row for row in server.state.edges.values() if row["fact"] == HEARING)
    mine["episode_uuids"] += his["episode_uuids"]
    assert texts(store(), ANN) == OWN - {OKTA}


def test_many_facts_cost_one_question_for_a_hundred_episodes(server, zep, thread, store):
    said = [AddMessage(role="user", name="Ben B.", content=f"Fact {n}") for n in range(30)]
    extracted(server, zep, thread, zep.thread.add_messages(thread, messages=said).messages)
    assert texts(store(), ANN) == set()


@pytest.fixture
def wrapped(zep, layer, tmp_path):
    return collaborative(zep, layer, ledger=tmp_path / "zep.db", speakers=PEOPLE, timeout_s=20)


def known(layer, owner):
    found = layer.changes(owner, "2020-01-01T00:00:00Z")
    return [one.new for one in found if one.whose == owner and one.new is not None]


def test_words_sent_through_the_client_become_the_speakers_memory(wrapped, layer, thread):
    wrapped.thread.add_messages(thread, messages=CHAT)
    layer.drain()
    assert known(layer, BEN) == [HEARING]
    layer.grant(BEN, CARL, "records")
    layer.drain()
    told = str(layer.context(CARL, "divorce hearing on Tuesday")) + str(layer.context(CARL, "admin of all of you"))
    assert "divorce" in told
    assert "admin" not in told, "nothing says who Dora is"


def test_who_shares_the_thread_shares_nobody_elses_words(wrapped, server, zep, layer, thread):
    extracted(server, zep, thread, wrapped.thread.add_messages(thread, messages=CHAT).messages)
    layer.index(backend_of(wrapped))
    layer.grant(ANN, CARL, "records")
    layer.drain()
    asked = ("Okta certificate login", "divorce hearing on Tuesday", "admin of all of you")
    told = "".join(layer.context(CARL, query).model_dump_json(exclude={"query"}) for query in asked)
    assert "rotated" in told
    assert "divorce" not in told
    assert "admin" not in told


def test_a_layer_that_acts_for_one_person_keeps_only_that_ones_words(zep, layer, thread, tmp_path):
    mine = collaborative(zep, layer.as_(CARL), ledger=tmp_path / "zep.db", speakers=PEOPLE, timeout_s=20)
    mine.thread.add_messages(thread, messages=CHAT)
    layer.observe(BEN, text="Ben himself tells the layer something")
    layer.drain()
    assert known(layer, BEN) == ["Ben himself tells the layer something"]


def test_the_awaited_client_does_the_same(server, thread, tmp_path):
    async def chat():
        async with await AsyncCollabLayer.open(str(tmp_path / "a.db"), settings=Settings(worker=False)) as layer:
            client = AsyncZep(api_key=server.api_key, base_url=server.url, max_retries=0)
            zep = collaborative(client, layer, ledger=tmp_path / "zep.db", speakers=PEOPLE, timeout_s=20)
            await zep.thread.add_messages(thread, messages=CHAT)
            await layer.drain()
            found = await layer.changes(BEN, "2020-01-01T00:00:00Z")
            await client._client_wrapper.httpx_client.httpx_client.aclose()
            return [one.new for one in found if one.whose == BEN]

    assert asyncio.run(chat()) == [HEARING]


def test_a_speaker_that_is_no_entity_is_refused(zep):
    from collab_layer.errors import InputError

    with pytest.raises(InputError):
        ZepBackend(zep, speakers={"Ben": "no entity"})


@pytest.mark.parametrize("status", [400, 403, 500])
def test_an_outage_while_speakers_are_asked_for_makes_nobody_the_owner_of_their_words(told, server, store, status):
    made = store()
    server.fail_next(*[status] * 5, on="episode.list")
    with pytest.raises(BackendError):
        texts(made, ANN)
    server._failures.clear()
    assert texts(made, ANN) == OWN


def test_nor_does_forgetting_who_spoke(told, store, monkeypatch):
    from collab_layer_zep import voices

    made = store()
    assert texts(made, ANN) == OWN
    monkeypatch.setattr(voices, "MAX_KEPT", 2)
    made.voices._said.popitem()
    assert texts(made, ANN) == OWN
    assert texts(made, ANN) == OWN
