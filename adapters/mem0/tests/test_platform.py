"""Mem0's own client classes, over an HTTP mock transport: answers as before, signal on top."""

import asyncio
import inspect
import json
from contextlib import asynccontextmanager

import mem0
import pytest
from collab_layer_mem0 import DerivedReadOnlyError, WildcardIdError, backend_of, collaborative
from mem0.client.types import SearchMemoryOptions
from mem0.exceptions import MemoryNotFoundError

from collab_layer import AsyncCollabLayer
from collab_layer.errors import InputError

LESSON = "Sign-in loops after the upgrade: clear the old cookie domain."
QUERY = "sign-in loops after the upgrade"


def ask(client, owner="ann", **more):
    return client.search(QUERY, filters={"user_id": owner}, **more)


def derived_in(answer):
    return [one for one in answer["results"] if one["id"].startswith("collab:")]


def wrap(client, layer, **settings):
    return collaborative(client, layer, **{"timeout_s": 20, **settings})


def shared(layer, client):
    client.add("The sign-in page is blue", user_id="ann")
    made = client.add(LESSON, user_id="bob")["results"][0]["id"]
    layer.grant("user:bob", to="user:ann", level="records")
    layer.drain()
    return made


def test_without_a_grant_answers_and_requests_are_the_bare_ones(client, layer, service):
    for owner in ("ann", "bob"):
        client.add(f"{LESSON} {owner}", user_id=owner)
    options = SearchMemoryOptions(filters={"user_id": "ann"}, top_k=1)
    calls = [
        ask,
        lambda one: one.search(QUERY, options),
        lambda one: one.search(QUERY, filters={"AND": [{"user_id": "ann"}, {"category": "x"}]}),
        lambda one: one.get_all(filters={"user_id": "ann"}, page=1, page_size=5),
        lambda one: one.users(),
    ]
    wrapped = wrap(client, layer)
    for call in calls:
        service.requests.clear()
        plain = json.dumps(call(client))
        asked, service.requests[:] = list(service.requests), []
        assert json.dumps(call(wrapped)) == plain
        assert service.requests[: len(asked)] == asked  # the layer's own reads come after


def test_wrapping_sends_no_request_and_keeps_the_class(client, layer, service):
    wrapped = wrap(client, layer)
    assert service.requests == []
    assert isinstance(wrapped, mem0.MemoryClient)
    assert type(wrapped).__name__ == "MemoryClient"
    assert wrapped.client is client.client
    for name in ("add", "search", "get_all", "update", "delete", "delete_all", "batch_delete", "delete_users"):
        assert inspect.signature(getattr(wrapped, name)) == inspect.signature(getattr(client, name))


def test_errors_of_the_service_are_unchanged(client, layer):
    wrapped = wrap(client, layer)
    for call in (
        lambda one: one.get("missing"),
        lambda one: one.delete("missing"),
        lambda one: one.update("missing", text="x"),
        lambda one: one.update("missing"),
        lambda one: one.search("q", user_id="ann"),
        lambda one: one.search("", filters={"user_id": "ann"}),
    ):
        errors = []
        for one in (client, wrapped):
            with pytest.raises((MemoryNotFoundError, ValueError)) as caught:
                call(one)
            errors.append(caught.value)
        assert type(errors[0]) is type(errors[1])
        assert str(errors[0]) == str(errors[1])


def test_a_grant_brings_the_lesson_and_updates_and_deletions_reach_it(client, layer):
    wrapped = wrap(client, layer)
    made = shared(layer, wrapped)
    found = derived_in(ask(wrapped))[0]
    assert "cookie domain" in found["memory"]
    assert wrapped.get(found["id"])["memory"] == found["memory"]
    with pytest.raises(DerivedReadOnlyError):
        wrapped.update(found["id"], text="x")
    assert wrapped.history(found["id"]) == []
    wrapped.update(made, text="Sign-in loops after the upgrade: restart the gateway.")
    layer.drain()
    assert "restart the gateway" in derived_in(ask(wrapped))[0]["memory"]
    wrapped.delete(made)
    assert derived_in(ask(wrapped)) == []
    with pytest.raises(MemoryNotFoundError):
        wrapped.get(found["id"])


@pytest.mark.parametrize("how", ["delete_all", "delete_users", "reset", "batch_delete"])
def test_wholesale_deletions_reach_the_neighbours(client, layer, how):
    wrapped = wrap(client, layer)
    made = shared(layer, wrapped)
    assert derived_in(ask(wrapped))
    {
        "delete_all": lambda: wrapped.delete_all(user_id="bob"),
        "delete_users": lambda: wrapped.delete_users(user_id="bob"),
        "reset": wrapped.reset,
        "batch_delete": lambda: wrapped.batch_delete([{"memory_id": made}]),
    }[how]()
    assert derived_in(ask(wrapped)) == []


def test_a_batch_update_reaches_the_neighbours(client, layer):
    wrapped = wrap(client, layer)
    made = shared(layer, wrapped)
    wrapped.batch_update([{"memory_id": made, "text": "Sign-in loops after the upgrade: sync the clock."}])
    layer.drain()
    assert "sync the clock" in derived_in(ask(wrapped))[0]["memory"]


def test_own_ids_in_batches_are_refused(client, layer):
    wrapped = wrap(client, layer)
    for call in (wrapped.batch_update, wrapped.batch_delete):
        with pytest.raises(DerivedReadOnlyError):
            call([{"memory_id": "collab:d1", "text": "x"}])


def test_what_was_queued_is_taken_in_when_a_list_or_a_search_shows_it(client, layer, service):
    wrapped = wrap(client, layer)
    service.queued = True
    assert wrapped.add(LESSON, user_id="bob")["status"] == "PENDING"
    service.put(LESSON, {"user_id": "bob"})  # the service stores it later
    layer.grant("user:bob", to="user:ann", level="records")
    layer.drain()
    assert derived_in(ask(wrapped)) == []
    wrapped.get_all(filters={"user_id": "bob"})
    wrapped.delete_all(user_id="nobody")  # waits for what was seen to be handed over
    layer.drain()
    assert "cookie domain" in derived_in(ask(wrapped))[0]["memory"]


def test_a_full_service_is_brought_in_and_what_others_delete_is_reconciled(client, layer, service):
    for n in range(5):
        service.put(f"Note {n} about gateways", {"user_id": "bob"})
    lesson = service.put(LESSON, {"user_id": "bob"})
    wrapped = wrap(client, layer)
    assert layer.index(backend_of(wrapped)) == 6
    layer.grant("user:bob", to="user:ann", level="records")
    layer.drain()
    assert "cookie domain" in derived_in(ask(wrapped))[0]["memory"]
    del service.items[lesson["id"]]
    layer.reconcile(backend_of(wrapped))
    layer.drain()
    assert not any("cookie domain" in one["memory"] for one in derived_in(ask(wrapped)))


def test_a_star_is_refused_before_any_request(client, layer, service):
    wrapped = wrap(client, layer)
    for call in (
        lambda: wrapped.delete_all(user_id="*"),
        lambda: wrapped.delete_users(agent_id="*"),
        lambda: wrapped.search("q", filters={"AND": [{"user_id": "*"}]}),
        lambda: wrapped.search("q", SearchMemoryOptions(filters={"app_id": "*"})),
        lambda: wrapped.get_all(filters={"run_id": "*"}),
        lambda: wrapped.add("m", user_id="*"),
    ):
        with pytest.raises(WildcardIdError):
            call()
    assert service.requests == []


def test_an_outage_of_the_service_is_raised_as_before_and_told_as_down(client, layer, service):
    wrapped = wrap(client, layer)
    service.down = True
    with pytest.raises(mem0.exceptions.NetworkError):
        ask(wrapped)
    parts = {part.name: part.condition for part in layer.health().parts}
    assert parts["mem0"] == "down"


def test_lenient_calls_reach_the_service_in_its_own_form(client, layer, service):
    wrapped = wrap(client, layer, lenient=True)
    made = wrapped.add([{"role": "user", "content": LESSON}], user_id="ann", output_format="v1.1")["results"]
    found = wrapped.search(QUERY, user_id="ann", limit=3, output_format="v1.1")["results"]
    assert [one["id"] for one in found] == [one["id"] for one in made]
    assert wrapped.get_all(user_id="ann")["results"]


def test_writing_into_the_service_is_not_offered(client, layer):
    with pytest.raises(InputError, match="later"):
        wrap(client, layer, write=True)


@asynccontextmanager
async def opened(tmp_path, async_client):
    client = async_client()
    try:
        async with await AsyncCollabLayer.open(str(tmp_path / "collab.db")) as layer:
            yield client, layer, wrap(client, layer)
    finally:
        await client.async_client.aclose()


def test_the_async_client_does_the_same(tmp_path, async_client):
    async def story():
        async with opened(tmp_path, async_client) as (client, layer, wrapped):
            assert isinstance(wrapped, mem0.AsyncMemoryClient)
            assert inspect.iscoroutinefunction(wrapped.search)
            await wrapped.add("The sign-in page is blue", user_id="ann")
            made = (await wrapped.add(LESSON, user_id="bob"))["results"][0]["id"]
            await layer.drain()
            assert json.dumps(await ask(wrapped)) == json.dumps(await ask(client))
            await layer.grant("user:bob", to="user:ann", level="records")
            await layer.drain()
            found = derived_in(await ask(wrapped))[0]
            assert "cookie domain" in found["memory"]
            assert (await wrapped.get(found["id"]))["memory"] == found["memory"]
            with pytest.raises(WildcardIdError):
                await wrapped.delete_all(user_id="*")
            with pytest.raises(DerivedReadOnlyError):
                await wrapped.update(found["id"], text="x")
            await wrapped.update(made, text="Sign-in loops after the upgrade: restart the gateway.")
            await layer.drain()
            assert "restart the gateway" in derived_in(await ask(wrapped))[0]["memory"]
            await wrapped.delete_all(user_id="bob")
            assert derived_in(await ask(wrapped)) == []

    asyncio.run(story())


def test_an_async_client_over_a_blocking_layer_is_refused(async_client, layer):
    async def story():
        client = async_client()
        with pytest.raises(InputError, match="AsyncCollabLayer"):
            collaborative(client, layer)
        await client.async_client.aclose()

    asyncio.run(story())
