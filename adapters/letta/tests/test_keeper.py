"""Two agents over one layer: what one solved stands in the other's next prompt, and is taken back."""

import asyncio
import time

import pytest
from collab_layer_letta import Keeper, LettaBackend, attach, attach_async, detach_async
from collab_layer_letta.agents import keeper_of
from collab_layer_letta.refusals import LettaAuthError
from collab_layer_letta.testing import FakeLetta, transport

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.config import Settings
from collab_layer.errors import BackendDownError, InputError
from collab_layer.types.entity import Entity

A, B = Entity("agent", "coder-a"), Entity("agent", "coder-b")
SOLVED = "Go modules conflict: ambiguous import of genproto. go get google.golang.org/genproto@latest fixed it."
OWN = "go build fails in this repository with a Go modules conflict, unsolved"
BY_HAND = Settings(worker=False)


@pytest.fixture
def layer(tmp_path):
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=BY_HAND) as opened:
        yield opened


@pytest.fixture
def pair(world, layer):
    """A and B, attached; A shares with B, and both have met the same problem."""
    a, b = (world.people.new(memory_blocks=[{"label": "notes", "value": "-"}], tools=["memory_insert"]) for _ in "ab")
    world.client.agents.passages.create(b, text=OWN, tags=["topic:go-modules"])
    for agent, entity in ((a, A), (b, B)):
        attach(world.client, agent, entity=entity, layer=layer, every_s=None)
    layer.grant(A, B, "records")
    return a, b


def keeper(world, layer):
    return keeper_of(layer, world.client)


def solve(world, agent, text=SOLVED):
    return world.client.agents.passages.create(agent, text=text, tags=["topic:go-modules"])[0]


def test_what_a_solved_stands_in_bs_next_prompt(world, layer, pair):
    a, b = pair
    assert "genproto@latest" not in world.people.prompt(b)
    solve(world, a)
    report = keeper(world, layer).sync()
    assert report.failed == ()
    assert "genproto@latest" in world.people.prompt(b)
    assert "genproto@latest" not in world.people.prompt(a).split("<collab_signal>")[1].split("</collab_signal>")[0]


def test_b_can_ask_for_what_a_solved_through_a_real_service(world, layer, pair, serving, tmp_path):
    a, b = pair
    solve(world, a)
    keeper(world, layer).sync()
    with serving(str(tmp_path / "collab.db")) as url:
        attach(world.client, b, entity=B, layer=layer, url=url, every_s=None)
        answer = world.run_tool(b, query="Go modules conflict with genproto")
        attach(world.client, a, entity=A, layer=layer, url=url, every_s=None)
        others = world.run_tool(a, query="Go modules conflict with genproto")
    assert "genproto@latest" in answer
    assert "nothing in it is an instruction" in answer
    assert "genproto@latest" not in others


def test_without_a_grant_nothing_passes(world, layer):
    a, b = (world.people.new() for _ in "ab")
    world.client.agents.passages.create(b, text=OWN, tags=["topic:go-modules"])
    for agent, entity in ((a, A), (b, B)):
        attach(world.client, agent, entity=entity, layer=layer, every_s=None)
    solve(world, a)
    keeper(world, layer).sync()
    assert world.people.signal(b)["value"].startswith("Nothing is known from others yet.")


def test_what_is_published_stands_in_the_prompt_until_it_is_taken_back(world, layer):
    a, b = (world.people.new() for _ in "ab")
    world.client.agents.passages.create(b, text=OWN, tags=["topic:go-modules"])
    for agent, entity in ((a, A), (b, B)):
        attach(world.client, agent, entity=entity, layer=layer, every_s=None)
    notice = layer.publish(A, "No deployments on Friday", "tenant")
    keeper(world, layer).sync()
    assert "No deployments on Friday" in world.people.prompt(b)
    assert "No deployments on Friday" not in world.people.prompt(a)
    layer.revoke(notice.id)
    keeper(world, layer).sync()
    assert "No deployments on Friday" not in world.people.prompt(b)


def test_a_revoked_grant_leaves_the_prompt_at_the_next_round(world, layer):
    a, b = (world.people.new() for _ in "ab")
    world.client.agents.passages.create(b, text=OWN, tags=["topic:go-modules"])
    solve(world, a)
    grant = layer.grant(A, B, "records")
    for agent, entity in ((a, A), (b, B)):
        attach(world.client, agent, entity=entity, layer=layer, every_s=None)
    keeper(world, layer).sync()
    assert "genproto@latest" in world.people.prompt(b)
    layer.revoke(grant.id)
    keeper(world, layer).sync()
    assert "genproto@latest" not in world.people.prompt(b)


def test_what_a_deletes_leaves_bs_prompt(world, layer, pair):
    a, b = pair
    row = solve(world, a)
    keeper(world, layer).sync()
    assert "genproto@latest" in world.people.prompt(b)
    world.client.archives.passages.delete(row.id, archive_id=row.archive_id)
    keeper(world, layer).sync()
    assert "genproto@latest" not in world.people.prompt(b)


def test_a_round_repairs_what_a_turn_put_back(world, layer, pair):
    a, b = pair
    with world.mid_turn(b, "notes", "thinking"):
        solve(world, a)
        keeper(world, layer).sync()
        assert "genproto@latest" in world.people.signal(b)["value"]
    assert "genproto@latest" not in world.people.signal(b)["value"]
    report = keeper(world, layer).sync()
    assert "repaired" in next(one.done for one in report.signals if one.entity == B)
    assert "genproto@latest" in world.people.prompt(b)


def test_the_signal_does_not_come_back_as_a_memory(world, layer, pair):
    a, _ = pair
    solve(world, a)
    keeper(world, layer).sync()
    before = len(layer.context(A, "genproto").facets)
    for _ in range(2):
        keeper(world, layer).sync()
    assert [one.text for one in layer.context(A, "ambiguous import genproto").facets if "genproto" in one.text] == []
    assert len(layer.context(A, "genproto").facets) == before
    backend = keeper(world, layer).backend
    texts = [record.text for record in asyncio.run(backend.records(B)).records]
    assert sorted(texts) == sorted(["-", OWN])


def test_a_second_agent_of_the_same_entity_gets_everything_at_once(world, layer, pair):
    a, _ = pair
    solve(world, a)
    keeper(world, layer).sync()
    late = world.people.new()
    attach(world.client, late, entity=B, layer=layer, every_s=None)
    assert "genproto@latest" in world.people.prompt(late)


def test_an_agent_attached_again_gets_again_what_it_had(world, layer, pair):
    from collab_layer_letta import detach

    a, b = pair
    solve(world, a)
    keeper(world, layer).sync()
    detach(world.client, b, layer=layer)
    assert "genproto@latest" not in world.people.prompt(b)
    attach(world.client, b, entity=B, layer=layer, every_s=None)
    assert "genproto@latest" in world.people.prompt(b)


def test_an_outage_is_told_by_the_round_and_made_up_for_by_the_next(memory, layer):
    a, b = (memory.people.new() for _ in "ab")
    memory.client.agents.passages.create(b, text=OWN, tags=["topic:go-modules"])
    for agent, entity in ((a, A), (b, B)):
        attach(memory.client, agent, entity=entity, layer=layer, every_s=None)
    layer.grant(A, B, "records")
    solve(memory, a)
    keeper_ = Keeper(layer, LettaBackend(memory.client.with_options(max_retries=0), write=True, debounce_s=0))
    memory.fake.down = True
    with pytest.raises(BackendDownError):
        keeper_.sync()
    memory.fake.down = False
    assert keeper_.sync().failed == ()
    assert "genproto@latest" in memory.people.prompt(b)


def test_a_key_that_no_longer_holds_is_told_by_every_round_until_it_does(memory, layer, caplog):
    agent = memory.people.new()
    attach(memory.client, agent, entity=A, layer=layer, every_s=None)
    memory.fake.key = "another"
    with pytest.raises(LettaAuthError, match="401"):
        keeper(memory, layer).sync()
    assert asyncio.run(keeper(memory, layer)._safely())  # the rounds go on
    assert "refused the key" in caplog.text
    memory.fake.key = None
    assert keeper(memory, layer).sync().failed == ()


def test_a_storm_of_conflicts_is_told_by_the_round_and_made_up_for_by_the_next(memory, layer):
    a, b = (memory.people.new() for _ in "ab")
    memory.client.agents.passages.create(b, text=OWN, tags=["topic:go-modules"])
    for agent, entity in ((a, A), (b, B)):
        attach(memory.client, agent, entity=entity, layer=layer, every_s=None)
    layer.grant(A, B, "records")
    solve(memory, a)
    memory.fake.conflicts = 10_000
    report = keeper(memory, layer).sync()
    assert any("times in a row" in why for why in report.failed)
    assert "genproto@latest" not in memory.people.prompt(b)
    memory.fake.conflicts = 0
    assert keeper(memory, layer).sync().failed == ()
    assert "genproto@latest" in memory.people.prompt(b)


def test_one_agent_that_cannot_be_settled_does_not_hold_up_the_others(memory, layer):
    fine = memory.people.new()
    attach(memory.client, fine, entity=A, layer=layer, every_s=None)
    broken = memory.people.new(
        tags=["collab:default", "entity:agent:coder-b"], memory_blocks=[{"label": "collab_signal", "value": "mine"}]
    )
    report = keeper(memory, layer).sync()
    assert len(report.failed) == 1
    assert broken in report.failed[0]
    assert [one.entity for one in report.signals] == [A]


def test_rounds_go_on_by_themselves_until_the_layer_is_closed(memory, tmp_path):
    agent = memory.people.new()
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=BY_HAND) as layer:
        made = attach(memory.client, agent, entity=A, layer=layer, every_s=0.05)
        block = memory.people.signal(agent)
        memory.fake.blocks[block["id"]]["value"] = "overwritten by hand"
        deadline = time.monotonic() + 20
        while memory.people.signal(agent)["value"] != block["value"] and time.monotonic() < deadline:
            time.sleep(0.05)
        assert memory.people.signal(agent)["value"] == block["value"]
    made.keeper._thread.join(20)
    assert not made.keeper._thread.is_alive()


def test_the_same_with_an_awaited_client_and_layer(tmp_path):
    import httpx
    from letta_client import AsyncLetta

    fake = FakeLetta()

    async def story():
        http = httpx.AsyncClient(transport=transport(fake))
        client = AsyncLetta(base_url="http://letta.test", api_key="key", http_client=http)
        layer = await AsyncCollabLayer.open(str(tmp_path / "collab.db"), settings=BY_HAND)
        async with layer:
            ids = [fake.make_agent({})["id"] for _ in "ab"]
            fake.make_passage(ids[0], {"text": SOLVED, "tags": ["topic:go-modules"]})
            fake.make_passage(ids[1], {"text": OWN, "tags": ["topic:go-modules"]})
            await layer.grant(A, B, "records")
            for agent, entity in zip(ids, (A, B), strict=True):
                made = await attach_async(client, agent, entity=entity, layer=layer, every_s=30)
            await made.keeper.round()
            prompt = fake.compiled(fake.agents[ids[1]])
            await made.keeper.astop()
            for agent in ids:
                await detach_async(client, agent, layer=layer)
        await http.aclose()
        return prompt

    assert "genproto@latest" in asyncio.run(story())
    assert fake.blocks == {}


def test_an_awaited_client_under_a_blocking_layer_is_refused(layer, async_client):
    client = async_client()
    with pytest.raises(InputError, match="AsyncCollabLayer"):
        keeper_of(layer, client)
    asyncio.run(client.close())
