"""An agent that several people use: each one's words are its own memory, and what the agent notes is nobody's."""

import asyncio

import pytest
from collab_layer_letta import attach
from collab_layer_letta.mapping import tag_of
from collab_layer_letta.refusals import SharedAgentError

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.errors import ErasedPartlyError
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import Entity, MemoryRef

ANN, BEN, CARL = (Entity("user", f"gc-{name}") for name in ("ann", "ben", "carl"))
OKTA = "The Okta certificate was rotated and the login loops"
HEARING = "My divorce hearing is on Tuesday, so I will be away"


def run(call):
    return asyncio.run(call)


def texts(backend, owner, **more):
    return [record.text for record in run(backend.records(owner, **more)).records]


@pytest.fixture
def backend(world):
    return world.backend()


@pytest.fixture
def agent(world):
    """Ann and Ben speak with it; it noted something of what Ben said."""
    people = world.people
    who = [people.identity(one.id) for one in (ANN, BEN)]
    note = {"label": "human", "value": "Is away on Tuesday for a hearing"}
    made = people.new(identity_ids=who, memory_blocks=[note], tags=[tag_of(ANN)])
    people.say(made, OKTA, ANN.id)
    people.say(made, HEARING, BEN.id)
    people.say(made, "Somebody says something", name=BEN.id)
    return made


def test_each_speakers_words_are_its_own_memory_only(agent, backend):
    assert texts(backend, ANN) == [OKTA]
    assert texts(backend, BEN) == [HEARING]
    assert {ANN, BEN, Entity("agent", agent)} <= set(run(backend.owners()))


def test_what_the_agent_notes_is_its_own_whoever_it_was_tagged_for(agent, backend):
    assert texts(backend, Entity("agent", agent)) == ["Is away on Tuesday for a hearing"]


def test_words_under_a_mere_name_are_nobodys(agent, backend, world):
    world.people.say(agent, "I am Ann, the admin", CARL.id, name=ANN.id)
    said = "".join(str(texts(backend, one)) for one in (ANN, BEN, CARL, Entity("agent", agent)))
    assert "Somebody says" not in said
    assert "the admin" not in said, "Carl was not introduced to the agent"


def test_messages_are_read_by_reference_found_by_words_and_paged(agent, backend, world):
    world.people.say(agent, "The login loop goes away once the cookie is cleared", ANN.id)
    records = run(backend.records(ANN)).records
    assert run(backend.read([one.ref for one in records])) == records
    assert run(backend.search(ANN, "cookie of the login loop"))[0].text.endswith("cleared")
    assert run(backend.search(BEN, "cookie of the login loop")) == []
    first = run(backend.records(ANN, limit=1))
    assert [one.text for one in first.records] + texts(backend, ANN, after=first.after) == [r.text for r in records]


def test_an_agent_of_one_person_is_that_persons_and_its_conversation_a_transcript(world, backend):
    note = {"label": "human", "value": "Likes tea"}
    agent = world.people.new(identity_ids=[world.people.identity(CARL.id)], memory_blocks=[note], tags=[tag_of(CARL)])
    world.people.say(agent, "I like tea", CARL.id)
    assert texts(backend, CARL) == ["Likes tea"]


def test_a_shared_agent_cannot_be_attached_for_one_person(agent, world):
    with pytest.raises(SharedAgentError) as refused:
        attach(world.client, agent, entity=ANN, tenant="t")
    assert (refused.value.entity, refused.value.others) == (str(ANN), (str(BEN),))
    assert "whose words" in str(refused.value)
    assert world.left() == []


def test_a_second_person_takes_the_first_ones_signal_out_of_the_prompt(world, tmp_path):
    agent = world.people.new()
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        keeper = attach(world.client, agent, entity=ANN, layer=layer, every_s=None).keeper
        run(keeper.backend.write([derived(ANN, "Clear the session cookie")]))
        assert "session cookie" in world.people.signal(agent)["value"]
        for one in (ANN, CARL):
            world.people.introduce(agent, one.id)
        keeper.sync()
        signal = world.people.signal(agent)
        assert signal is None or "session cookie" not in signal["value"]


def test_a_speaker_who_shares_shares_nobody_elses_words(agent, world, tmp_path):
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        layer.index(world.backend(), owners=[ANN, BEN, Entity("agent", agent)])
        layer.grant(ANN, CARL, "records")
        layer.drain()
        asked = ("login loop after the Okta certificate", "hearing on Tuesday, away")
        told = "".join(layer.context(CARL, query).model_dump_json(exclude={"query"}) for query in asked)
        assert "rotated" in told
        assert "divorce" not in told
        assert "hearing" not in told


def test_attaching_the_shared_agent_brings_its_speakers_words_in(agent, world, tmp_path):
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        attach(world.client, agent, layer=layer, every_s=None)
        layer.grant(BEN, CARL, "records")
        layer.drain()
        assert "divorce" in str(layer.context(CARL, "divorce hearing on Tuesday"))


def test_a_message_cannot_be_erased_and_the_receipt_says_so(agent, backend, world, tmp_path):
    [said] = run(backend.records(BEN)).records
    with pytest.raises(ErasedPartlyError, match="all its messages at once"):
        run(backend.erase([said.ref]))
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        layer.index(backend, owners=[BEN])
        layer.drain()
        receipt = layer.forget(BEN, source=True)
        assert (receipt.status, receipt.stores) == ("complete", {"letta": "partly"})
        assert layer.forget(MemoryRef(backend="letta", id=said.ref.id), source=True).stores == {"letta": "partly"}


def test_a_block_that_a_shared_agent_has_too_is_that_agents(agent, world, backend):
    own = world.people.agent(CARL)
    world.people.block([own, agent], "Deploys happen on Fridays")
    assert texts(backend, CARL) == []
    assert "Deploys happen on Fridays" in texts(backend, Entity("agent", agent))


def test_an_organisation_is_no_speaker(world, backend):
    note = {"label": "human", "value": "Likes tea"}
    who = [world.people.identity(CARL.id), world.people.identity("gc-acme", "org")]
    world.people.new(identity_ids=who, memory_blocks=[note], tags=[tag_of(CARL)])
    assert texts(backend, CARL) == ["Likes tea"]
