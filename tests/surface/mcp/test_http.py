"""MCP over HTTP stands behind the same gate as every other request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ..http.conftest import Running, problem  # noqa: TID252  the same service, another door

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    url = f"sqlite:///{tmp_path_factory.mktemp('gate') / 'collab.db'}"
    limits = {"COLLAB_SERVE_RATE": "6/minute", "COLLAB_SERVE_MAX_BODY_BYTES": "4096"}
    running = Running(url, "--mcp", "--no-worker", COLLAB_SERVE_ALLOWED_HOSTS='["memory.example"]', **limits)
    yield running
    assert running.stop()[0] == 0


def test_without_a_token_nothing_is_answered(service: Running) -> None:
    with service.client() as http:
        problem(http.post("/mcp", json=LIST, headers=HEADERS), 401, "token")


def test_the_rate_and_the_length_are_those_of_the_service(service: Running) -> None:
    with service.client(service.issue("agent:b").text) as http:
        long = {**LIST, "params": {"_meta": {"x": "x" * 5_000}}}
        problem(http.post("/mcp", json=long, headers=HEADERS), 413, "too_large")
        statuses = [http.post("/mcp", json=LIST, headers=HEADERS).status_code for _ in range(6)]
        assert statuses == [200] * 5 + [429]
        problem(http.post("/v1/context", json={}), 429, "too_many_requests")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:1"]
)
def test_a_foreign_host_name_is_refused(service: Running, host: str) -> None:
    with service.client(service.issue("agent:b").text) as http:
        assert http.post("/mcp", json=LIST, headers={**HEADERS, "Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:9", "memory.example", "memory.example:8377"])
def test_this_machine_and_the_names_that_were_set_are_served(service: Running, host: str) -> None:
    with service.client(service.issue("agent:b").text) as http:
        assert http.post("/mcp", json=LIST, headers={**HEADERS, "Host": host}).status_code == 200


def test_a_page_of_another_origin_is_refused(service: Running) -> None:
    with service.client(service.issue("agent:b").text) as http:
        foreign = {**HEADERS, "Origin": "https://evil.example"}
        assert http.post("/mcp", json=LIST, headers=foreign).status_code == 403
        own = {**HEADERS, "Origin": "https://memory.example"}
        assert http.post("/mcp", json=LIST, headers=own).status_code == 200


@pytest.mark.parametrize("suffix", ["a b", "x" * 25, "я".encode()])
def test_a_suffix_that_no_name_can_have_is_an_error_of_the_protocol(service: Running, suffix: str | bytes) -> None:
    with service.client(service.issue("agent:b").text) as http:
        told = http.post("/mcp", json=LIST, headers={**HEADERS, "X-Collab-Suffix": suffix}).json()
    assert told["error"]["code"] == -32602
    assert "at most 24" in told["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_are_no_streams_and_no_sessions_to_take_over(service: Running, method: str) -> None:
    with service.client(service.issue("agent:b").text) as http:
        problem(http.request(method, "/mcp", headers=HEADERS), 405, "method_not_allowed")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}', b"\xff", b'{"text": "\xd0\xbf"}'])
def test_what_is_no_message_is_refused(service: Running, body: bytes) -> None:
    with service.client(service.issue("agent:b").text) as http:
        assert http.post("/mcp", content=body, headers=HEADERS).status_code == 400
