"""What the service refuses, each with its status, its code, and nothing of its insides."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from typing import ClassVar

import httpx
import pytest
from limits.aio.storage import MemoryStorage

from collab_layer import AsyncCollabLayer, Interaction, errors
from collab_layer.config import ServeSettings
from collab_layer.surface.http.app import create_app
from collab_layer.surface.http.errors import TOLD, of_error

from .conftest import ALONE, problem, serving

SECRET_PLACE = "/srv/secret/place.db"


# -- 401 -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic dXNlcjpwYXNz",
        "collab_YWNtZQ.t0123456789abcdef.x",
        "Bearer \xff",
    ],
    ids=str,
)
def test_without_a_token_nothing_is_served(sqlite_url, header):
    async def story():
        async with serving(sqlite_url) as service:
            headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
            for path in ("/v1/context", "/v1/observe", "/v1/rank", "/v1/explain", "/v1/answer", "/v1/neighbors", "/x"):
                found = await service.http.post(path, content=b"{}", headers=headers)
                problem(found, 401, "token")
                assert found.headers["www-authenticate"] == "Bearer"

    asyncio.run(story())


def test_two_authorizations_are_none(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            one = ("Authorization", f"Bearer {await service.token()}")
            problem(await service.http.post("/v1/context", content=b"{}", headers=[one, one]), 401, "token")

    asyncio.run(story())


def test_why_a_token_is_refused_is_not_told(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            revoked = await service.layer.issue_token("agent:b")
            await service.layer.revoke_token(revoked.id)
            told = [
                (await service.post("context", {}, token)).content
                for token in (revoked.text, "nonsense", revoked.text[:-3] + "AAA")
            ]
            assert len(set(told)) == 1

    asyncio.run(story())


def test_a_body_is_not_even_read_before_the_token_is_known(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            problem(await service.post("observe", b"{ this is no JSON"), 401, "token")

    asyncio.run(story())


def test_a_revoked_token_is_refused_at_the_next_request(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            token = await service.layer.issue_token("agent:b")
            assert (await service.post("context", {}, token.text)).status_code == 200
            await service.layer.revoke_token(token.id)
            problem(await service.post("context", {}, token.text), 401, "token")

    asyncio.run(story())


# -- 403 -------------------------------------------------------------------------------


def test_a_token_cannot_observe_as_somebody_else(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            token = await service.token("user:alice")
            told = await service.post("observe", {"actor": "user:bob", "target": "item:dune"}, token)
            problem(told, 403, "not_permitted")
            assert (
                await service.post("observe", {"actor": "user:alice", "target": "item:dune"}, token)
            ).status_code == 200
            assert (await service.layer.health()).counts["interactions"] == 1

    asyncio.run(story())


def test_a_token_cannot_read_as_somebody_else_without_their_records(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            await service.layer.observe("user:bob", "item:dune", verb="liked")
            await service.layer.drain()
            token = await service.token("user:alice")
            for path, more in (("context", {}), ("neighbors", {}), ("rank", {"candidates": ["item:dune"]})):
                problem(await service.post(path, {"entity": "user:bob", **more}, token), 403, "not_permitted")
            grant = await service.layer.grant("user:bob", "user:alice", level="records")
            assert (await service.post("context", {"entity": "user:bob"}, token)).status_code == 200
            await service.layer.revoke(grant.id)
            problem(await service.post("context", {"entity": "user:bob"}, token), 403, "not_permitted")

    asyncio.run(story())


def test_a_token_cannot_let_its_entity_into_a_team(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            told = await service.post("observe", {"target": "team:board", "verb": "joined"}, await service.token())
            problem(told, 403, "not_permitted")

    asyncio.run(story())


def test_a_token_of_one_tenant_never_sees_another(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            [id_] = await service.layer.observe("agent:a", text="the SAML certificate was rotated", verb="solved")
            await service.layer.grant("agent:a", "tenant", level="records")
            await service.layer.drain()
            mine = await service.token("agent:b")
            theirs = (await service.layer.for_tenant("other").issue_token("agent:b")).text
            asked = {"query": "SAML certificate"}
            assert (await service.post("context", asked, mine)).json()["memory"]["facets"]
            assert (await service.post("context", asked, theirs)).json()["memory"]["facets"] == []
            problem(await service.post("explain", {"id": id_}, theirs), 404, "unknown_id")
            assert (await service.post("observe", {"text": "from elsewhere"}, theirs)).status_code == 200
            assert (await service.layer.health()).counts["interactions"] == 1

    asyncio.run(story())


def test_a_record_of_a_store_cannot_be_claimed_by_its_reference(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            claimed = {"target": "item:dune", "ref": {"backend": "mem0", "id": "of-somebody-else"}}
            problem(await service.post("observe", claimed, await service.token()), 422, "input")

    asyncio.run(story())


# -- 404, 405 --------------------------------------------------------------------------


def test_an_unknown_id_is_not_found(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            token = await service.token()
            for id_ in ("f-nothing", "i1a2b", "c1", "d" * 64, "тайна"):
                problem(await service.post("explain", {"id": id_}, token), 404, "unknown_id")
            problem(await service.post("neighbors", {"entity": "user:nobody"}, token), 404, "unknown_id")

    asyncio.run(story())


def test_what_is_not_there_is_not_found_and_what_is_not_done_is_named(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            token = await service.token()
            problem(await service.post("nothing", {}, token), 404, "not_found")
            problem(await service.post("context/", {}, token), 404, "not_found")
            found = await service.http.get("/v1/context", headers={"Authorization": f"Bearer {token}"})
            problem(found, 405, "method_not_allowed")
            assert found.headers["allow"] == "POST"
            found = await service.http.post("/mcp", content=b"{}", headers={"Authorization": f"Bearer {token}"})
            problem(found, 404, "not_found")

    asyncio.run(story())


# -- 422, 400 --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("context", []),
        ("context", None),
        ("context", "text"),
        ("context", {"querry": "SAML"}),
        ("context", {"entity": "no kind"}),
        ("context", {"entity": 7}),
        ("context", {"query": ""}),
        ("context", {"query": " \t\n"}),
        ("context", {"query": "a\x00b"}),
        ("context", {"query": "\ud800"}),
        ("context", {"\ud800": 1}),
        ("context", {"query": "x" * 100_001}),
        ("context", {"budget_tokens": 59}),
        ("context", {"budget_tokens": 10**400}),
        ("context", {"links": ["topic:a"] * 65}),
        ("context", {"as_of": "yesterday"}),
        ("context", {"as_of": "2026-05-01T12:00:00"}),
        ("context", {"as_of": "0000-00-00T00:00:00Z"}),
        ("neighbors", {"k": 0}),
        ("rank", {}),
        ("rank", {"candidates": []}),
        ("rank", {"candidates": ["item:i"] * 2_001}),
        ("explain", {"id": ""}),
        ("answer", {}),
        ("observe", {"verb": "Liked"}),
        ("observe", {"weight": -1}),
        ("observe", {"weight": 1e308}),
        ("observe", {"interactions": []}),
        ("observe", {"interactions": [{}], "verb": "liked"}),
        ("observe", {"interactions": [{"target": "item:dune"}] * 1_001}),
        ("observe", {"key": ""}),
        ("observe", {"text": "   "}),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_what_cannot_be_used_is_named(sqlite_url, path, body):
    async def story():
        async with serving(sqlite_url) as service:
            found = await service.post(path, body, await service.token())
            assert found.status_code == 422, found.text
            told = problem(found, 422, found.json()["code"])
            assert told["code"] in {"input", "invalid_entity"}
            assert told["retryable"] is False
            assert len(found.content) < 2_000

    asyncio.run(story())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'query': 1}",
        b'{"weight": NaN}',
        b'{"weight": Infinity}',
        b"[" * 100_000,
        b'{"text": "\xff"}',
        b"\xff\xfe",
    ],
    ids=lambda body: body[:12].decode("latin-1"),
)
def test_bad_json_is_bad_input(sqlite_url, body):
    async def story():
        async with serving(sqlite_url) as service:
            found = await service.post(
                "observe", body, await service.token(), headers={"Content-Type": "application/json"}
            )
            assert found.status_code in (400, 422), found.text
            assert found.headers["content-type"] == "application/problem+json"

    asyncio.run(story())


def test_json_must_be_said_to_be_json(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            for said in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
                found = await service.post("observe", b'{"target": "item:dune"}', await service.token(), headers=said)
                problem(found, 422, "input")
            assert (await service.layer.health()).counts["interactions"] == 0

    asyncio.run(story())


# -- 413, 408, 429, 503 ----------------------------------------------------------------


def test_a_body_too_long_is_refused_whether_it_is_announced_or_comes_in_pieces(sqlite_url):
    async def pieces():
        for _ in range(200):
            yield b" " * 1_024

    async def story():
        async with serving(sqlite_url, max_body_bytes=100_000) as service:
            token = await service.token()
            problem(await service.post("observe", {"text": "x" * 100_000}, token), 413, "too_large")
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            found = await service.http.post("/v1/observe", content=pieces(), headers=headers)
            problem(found, 413, "too_large")
            assert (await service.post("observe", {"text": "x" * 90_000}, token)).status_code == 200

    asyncio.run(story())


def test_each_token_has_a_rate_of_its_own(sqlite_url):
    async def story():
        async with serving(sqlite_url, rate="3/minute") as service:
            mine, theirs = await service.token(), await service.token()
            for _ in range(3):
                assert (await service.post("context", {}, mine)).status_code == 200
            found = await service.post("context", {}, mine)
            assert problem(found, 429, "too_many_requests")["retryable"] is True
            assert 1 <= int(found.headers["retry-after"]) <= 60
            assert (await service.post("context", {}, theirs)).status_code == 200
            problem(await service.post("context", {}), 401, "token")

    asyncio.run(story())


@pytest.mark.parametrize(
    "limits",
    [{"rate": "often"}, {"rate_store": "nowhere://"}, {"rate_store": ""}, {"rate_store": "memcached://127.0.0.1"}],
)
def test_limits_that_cannot_be_used_are_refused_at_the_start(sqlite_url, limits):
    async def story():
        async with await AsyncCollabLayer.open(sqlite_url, settings=ALONE) as layer:
            with pytest.raises(errors.InputError, match="rate"):
                create_app(layer, ServeSettings(**limits))

    asyncio.run(story())


class Waiting(AsyncCollabLayer):
    """A layer whose `explain` takes as long as a test wants."""

    going_on: asyncio.Event
    entered: asyncio.Event

    async def explain(self, id, *size):
        type(self).entered.set()
        await type(self).going_on.wait()
        return await super().explain(id, *size)


def test_more_requests_than_there_are_places_are_told_to_come_back(sqlite_url):
    async def story():
        Waiting.going_on, Waiting.entered = asyncio.Event(), asyncio.Event()
        async with serving(sqlite_url, Waiting, max_requests=1) as service:
            token = await service.token()
            first = asyncio.create_task(service.post("explain", {"id": "f1"}, token))
            await Waiting.entered.wait()
            found = await service.post("context", {}, token)
            assert problem(found, 503, "busy")["retryable"] is True
            assert found.headers["retry-after"] == "1"
            assert (await service.http.get("/v1/health/live")).status_code == 200
            Waiting.going_on.set()
            problem(await first, 404, "unknown_id")
            assert (await service.post("context", {}, token)).status_code == 200

    asyncio.run(story())


def test_a_request_that_takes_too_long_is_ended_and_gives_its_place_back(sqlite_url):
    async def story():
        Waiting.going_on, Waiting.entered = asyncio.Event(), asyncio.Event()
        async with serving(sqlite_url, Waiting, max_requests=1, timeout_s=0.5) as service:
            token = await service.token()
            found = await service.post("explain", {"id": "f1"}, token)
            assert problem(found, 503, "timeout")["retryable"] is True
            assert (await service.post("context", {}, token)).status_code == 200

    asyncio.run(story())


def test_a_database_that_another_process_holds_is_busy_and_named_without_its_place(tmp_path):
    async def story():
        path = tmp_path / "collab.db"
        async with serving(str(path)) as service:
            token = await service.token()
            holder = sqlite3.connect(path, isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            found = await service.post("observe", {"target": "item:dune"}, token, timeout=30)
            holder.execute("ROLLBACK")
            holder.close()
            told = problem(found, 503, "store_busy")
            assert told["retryable"] is True
            assert found.headers["retry-after"] == "1"
            assert str(tmp_path) not in found.text
            assert (await service.post("observe", {"target": "item:dune"}, token)).status_code == 200

    asyncio.run(story())


def test_a_closed_layer_serves_nobody(sqlite_url):
    async def story():
        async with serving(sqlite_url) as service:
            token = await service.token()
            await service.layer.aclose()
            problem(await service.post("context", {}, token), 503, "layer_closed")
            problem(await service.http.get("/v1/health/ready"), 503, "layer_closed")
            assert (await service.http.get("/v1/health/live")).status_code == 200

    asyncio.run(story())


# -- the table -------------------------------------------------------------------------


def every(kind: type[errors.CollabError]) -> list[type[errors.CollabError]]:
    return [kind, *(one for below in kind.__subclasses__() for one in every(below))]


@pytest.mark.parametrize("kind", every(errors.CollabError), ids=lambda kind: kind.code)
def test_every_error_has_a_status_and_tells_nothing_of_our_insides(kind):
    error = kind.__new__(kind, SECRET_PLACE)
    error.args = (SECRET_PLACE,)
    if isinstance(error, errors.ModelBusyError):
        error.after_s = 7.2
    reply = of_error(error)
    assert 400 <= reply.problem.status < 600
    assert reply.problem.code == kind.code
    assert reply.problem.retryable == kind.retryable
    if reply.problem.status >= 500:
        assert SECRET_PLACE not in reply.problem.model_dump_json()
    if kind.retryable:
        assert reply.problem.status in (502, 503, 504), "a client must be able to see that it may try again"
    assert ("Retry-After" in reply.headers) == (kind.retryable and reply.problem.status == 503)


def test_how_long_a_model_asks_to_wait_is_handed_on():
    assert of_error(errors.ModelBusyError("m", "429", after_s=7.2)).headers == {"Retry-After": "8"}


def test_the_table_names_only_errors_that_are_told_in_their_own_way():
    for kind, told in TOLD.items():
        above = [TOLD[one] for one in kind.__mro__[1:] if one in TOLD]
        assert not above or above[0] != told, kind


class Broken(AsyncCollabLayer):
    """A layer with a bug."""

    async def explain(self, id, *size):
        raise ZeroDivisionError(SECRET_PLACE)


def test_a_bug_is_told_as_one_and_its_words_stay_here(sqlite_url):
    async def story():
        async with serving(sqlite_url, Broken) as service:
            found = await service.post("explain", {"id": "f1"}, await service.token())
            problem(found, 500, "internal_server_error")
            assert SECRET_PLACE not in found.text

    asyncio.run(story())


def test_routes_without_the_gate_serve_nobody(sqlite_url):
    async def story():
        async with await AsyncCollabLayer.open(sqlite_url, settings=ALONE) as layer:
            behind = create_app(layer)._app
            async with httpx.AsyncClient(transport=httpx.ASGITransport(behind), base_url="http://x") as http:
                problem(await http.post("/v1/context", json={}), 401, "token")

    asyncio.run(story())


def test_what_is_observed_is_what_a_program_would_have_observed(sqlite_url):
    """The model of a request says the same as `Interaction`, field by field."""
    from collab_layer.surface.http.models import Observation

    assert set(Interaction.model_fields) - set(Observation.model_fields) == {"ref"}
    assert set(Observation.model_fields) <= set(Interaction.model_fields)


class Unreachable(MemoryStorage):
    """A store of rates whose host is down."""

    STORAGE_SCHEME: ClassVar = ["async+unreachable"]
    base_exceptions = ConnectionError

    async def acquire_sliding_window_entry(self, *args, **more):
        raise ConnectionError(SECRET_PLACE)


def test_where_requests_cannot_be_counted_none_is_served(sqlite_url):
    async def story():
        async with serving(sqlite_url, rate_store="unreachable://") as service:
            found = await service.post("context", {}, await service.token())
            problem(found, 503, "rate_store")
            assert SECRET_PLACE not in found.text

    asyncio.run(story())
