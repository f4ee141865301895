"""A revoked grant is gone at the very next read, whichever door it is read through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.config import ServeSettings, Settings
from collab_layer.errors import UnknownIdError
from collab_layer.testing.memory import InMemoryBackend

ALONE = Settings(worker=False)
FIX = "Fixed the Go modules conflict by pinning golang.org/x/net to v0.23"
ASKED = "go modules conflict"
READER = "agent:ben"


def open_told(url: str) -> tuple[CollabLayer, str]:
    """A layer where Anna told Ben what she knows, and the grant."""
    layer = CollabLayer.open(url, tenant="acme", settings=ALONE)
    layer.observe("agent:anna", "tool:go", "solved", text=FIX, links=["topic:go-modules"], outcome="pinned the version")
    layer.observe("agent:anna", "tool:gopls", "liked")
    layer.observe(READER, "tool:go", "used", links=["topic:go-modules"])
    grant = layer.grant("agent:anna", READER, "records")
    layer.drain()
    return layer, grant.id


def facets(layer: CollabLayer) -> str:
    return layer.context(READER, ASKED).model_dump_json(include={"facets", "neighbors"})


def ranked(layer: CollabLayer) -> str:
    return layer.rank(READER, ["tool:gopls", "tool:vim"]).model_dump_json()


def answered(layer: CollabLayer) -> str:
    return layer.answer(READER, ASKED).model_dump_json(include={"claims", "facets"})


def near(layer: CollabLayer) -> str:
    return "".join(one.model_dump_json() for one in layer.neighbors(READER))


def changed(layer: CollabLayer) -> str:
    return "".join(one.model_dump_json() for one in layer.changes(READER, "2020-01-01T00:00:00Z"))


DOORS: dict[str, Callable[[CollabLayer], str]] = {
    "context": facets,
    "rank": ranked,
    "answer": answered,
    "neighbors": near,
    "changes": changed,
}


@pytest.mark.parametrize("door", DOORS)
def test_nothing_of_the_owner_comes_through(database_url, door):
    layer, grant = open_told(database_url)
    with layer:
        for _ in range(3):
            assert "agent:anna" in DOORS[door](layer)
        layer.revoke(grant)
        assert "agent:anna" not in DOORS[door](layer)
        assert "v0.23" not in DOORS[door](layer)


def test_neither_does_a_facet_whose_id_the_reader_kept(database_url):
    layer, grant = open_told(database_url)
    with layer:
        layer.context(READER, ASKED)
        kept = layer.context(READER, ASKED).facets[0]
        mine = layer.as_(READER)
        assert mine.explain(kept.id).sources
        layer.revoke(grant)
        for verb in (mine.explain, mine.derived):
            with pytest.raises(UnknownIdError):
                verb(kept.id)


def test_the_cache_of_another_process_holds_nothing_back(sqlite_url, program):
    layer, grant = open_told(sqlite_url)
    with layer:
        other = program("ask", sqlite_url, READER, ASKED)

        def read() -> str:
            other.stdin.write("\n")
            other.stdin.flush()
            return other.stdout.readline().strip()

        first, second = read(), read()
        assert "v0.23" in first
        assert "v0.23" in second
        assert second.startswith("cached")
        layer.revoke(grant)
        assert "v0.23" not in read()
        again = layer.grant("agent:anna", READER, "records")
        layer.drain()
        assert "v0.23" in read()
        layer.revoke(again.id)
        assert "v0.23" not in read()


def test_what_was_delivered_is_queued_to_be_taken_back_and_taken(database_url):
    layer, grant = open_told(database_url)
    with layer:
        store = InMemoryBackend()
        layer.attach(store, deliver=True)
        layer.deliver(READER)
        assert store.texts()
        layer.revoke(grant)
        layer.drain()
        assert store.texts() == []


def test_the_service_gives_no_more_of_it_over_http_and_mcp(sqlite_url):
    pytest.importorskip("fastapi")
    import httpx

    from collab_layer.surface.http.app import create_app
    from collab_layer.surface.mcp.tools import OFFERS

    told, grant = open_told(sqlite_url)
    told.close()

    async def story() -> None:
        async with await AsyncCollabLayer.open(sqlite_url, tenant="acme", settings=ALONE) as layer:
            token = (await layer.issue_token(READER)).text
            bearer = {"Authorization": f"Bearer {token}"}
            transport = httpx.ASGITransport(create_app(layer, ServeSettings()), raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://service.test", headers=bearer) as http:
                bodies = {
                    "context": {"query": ASKED},
                    "rank": {"candidates": ["tool:gopls"]},
                    "answer": {"question": ASKED},
                    "neighbors": {},
                }

                async def over_http(verb: str) -> str:
                    return (await http.post(f"/v1/{verb}", json=bodies[verb])).text

                async def over_mcp(verb: str) -> str:
                    offer = next(one for one in OFFERS if one.name == verb)
                    reply = await offer.call(await layer.open_with(token), offer.asked.model_validate(bodies[verb]))
                    return offer.text(reply) + reply.model_dump_json()

                doors = [(door, verb) for door in (over_http, over_mcp) for verb in bodies]
                for door, verb in doors:
                    assert "agent:anna" in await door(verb), verb
                await layer.revoke(grant)
                for door, verb in doors:
                    assert "agent:anna" not in await door(verb), verb

    asyncio.run(story())
