"""`collab serve` as a process: it listens, limits, and stops in order."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.surface.cli.main import main
from collab_layer.testing.postgres import PostgresServer

from .conftest import Running, problem

Start = Callable[..., Running]


def eventually(look: Callable[[], bool], within_s: float = 25, every_s: float = 0.05) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if look():
            return True
        time.sleep(every_s)
    return False


def connected(service: Running) -> socket.socket:
    at = urlsplit(service.url)
    return socket.create_connection((at.hostname, at.port), timeout=30)


def head(token: str, *more: str) -> bytes:
    lines = [
        "POST /v1/observe HTTP/1.1",
        "Host: here",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
    ]
    return ("\r\n".join([*lines, *more]) + "\r\n\r\n").encode()


def answered(peer: socket.socket) -> bytes:
    """All that the other side says until it closes the connection."""
    said = b""
    while part := peer.recv(65_536):
        said += part
    return said


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for the tests that do not stop it."""
    limits = {"RATE": "60/minute", "MAX_BODY_BYTES": "65536", "BODY_TIMEOUT_S": "1"}
    url = f"sqlite:///{tmp_path_factory.mktemp('shared') / 'collab.db'}"
    running = Running(url, "--mcp", **{f"COLLAB_SERVE_{name}": value for name, value in limits.items()})
    yield running
    assert running.stop() == (0, "")


def taken(peer: socket.socket, *, most: int) -> int:
    """How many bytes the other side takes before it hangs up."""
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    sent = 0
    try:
        while sent < most:
            peer.sendall(chunk)
            sent += len(chunk)
    except OSError:
        return sent
    return sent


def test_it_listens_on_a_free_port_and_tells_which(service: Running) -> None:
    assert service.at["host"] == "127.0.0.1"
    assert service.at["mcp"] == f"{service.url}/mcp"
    with service.client() as http:
        found = http.get("/v1/health/ready")
        assert found.json() == {"status": "ok"}
        assert "server" not in found.headers


def test_requests_in_hand_are_answered_before_it_stops(start: Start, tmp_path: Path) -> None:
    service = start("--no-worker")
    token = service.issue("agent:b").text
    holder = sqlite3.connect(tmp_path / "collab.db", isolation_level=None)
    found: list[httpx.Response] = []

    def observe() -> None:
        with service.client(token) as http:
            found.append(http.post("/v1/observe", json={"target": "item:dune"}))

    with service.client(token) as http:
        assert http.post("/v1/context", json={}).status_code == 200
    holder.execute("BEGIN IMMEDIATE")
    asking = threading.Thread(target=observe)
    asking.start()
    time.sleep(1)  # it waits for the lock by now
    service.process.terminate()
    time.sleep(0.5)
    assert service.process.poll() is None, "it did not wait for the request"
    with pytest.raises(OSError, match="refused"):
        connected(service)
    holder.execute("ROLLBACK")
    holder.close()
    asking.join(30)
    assert [one.status_code for one in found] == [200]
    assert service.process.wait(30) == 0
    with service.operator() as layer:
        assert layer.health().counts["interactions"] == 1


def test_its_worker_does_what_was_left_and_hands_its_lease_back(start: Start, sqlite_url: str) -> None:
    with CollabLayer.open(sqlite_url, settings=Settings(worker=False)) as layer:
        layer.observe("agent:a", "item:dune", verb="liked", text="Dune has worms")
        idle = start(COLLAB_WORKER="false")
        time.sleep(1)
        assert layer.health().counts["waiting"] == 1
        busy = start("--worker", COLLAB_WORKER="false")
        assert eventually(lambda: layer.health().counts["waiting"] == 0)
        assert busy.stop() == (0, "")
        assert idle.stop() == (0, "")


def test_what_is_observed_reaches_others_without_another_process(service: Running) -> None:
    mine, theirs = service.issue("agent:a").text, service.issue("agent:b").text
    with service.operator() as layer:
        layer.grant("agent:a", "agent:b", level="records")
    with service.client(mine) as http:
        said = {"verb": "solved", "text": "Сертификат SAML протух, вход зациклился", "outcome": "загрузил новый"}
        assert http.post("/v1/observe", json=said).status_code == 200
    with service.client(theirs) as http:
        asked = {"query": "вход зациклился"}
        assert eventually(lambda: "загрузил новый" in http.post("/v1/context", json=asked).json()["text"], every_s=0.5)


def test_a_token_revoked_elsewhere_is_refused_at_the_next_request(service: Running) -> None:
    token = service.issue("agent:b")
    with service.client(token.text) as http, service.operator() as elsewhere:
        assert http.post("/v1/context", json={}).status_code == 200
        elsewhere.revoke_token(token.id)
        problem(http.post("/v1/context", json={}), 401, "token")


def test_a_rate_holds_over_real_connections(service: Running) -> None:
    with service.client(service.issue("agent:b").text) as http:
        statuses = [http.post("/v1/context", json={}).status_code for _ in range(64)]
        assert statuses == [200] * 60 + [429] * 4


def test_a_body_without_end_is_cut_off(service: Running) -> None:
    token = service.issue("agent:b").text
    with connected(service) as peer:
        peer.sendall(head(token, "Transfer-Encoding: chunked"))
        assert taken(peer, most=50_000_000) < 5_000_000
    with service.client(token) as http:
        problem(http.post("/v1/observe", json={"text": "x" * 70_000}), 413, "too_large")
        assert http.post("/v1/observe", json={"text": "x" * 60_000}).status_code == 200


def test_a_slow_body_is_given_up(service: Running) -> None:
    token = service.issue("agent:b").text
    with connected(service) as peer:
        peer.sendall(head(token, "Content-Length: 1000") + b"{")
        told = answered(peer)
    assert told.startswith(b"HTTP/1.1 408")
    assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == "slow_body"
    with service.client(token) as http:
        assert http.post("/v1/context", json={}).status_code == 200


def test_slow_clients_do_not_keep_it_from_stopping(start: Start) -> None:
    service = start("--no-worker", COLLAB_SERVE_STOP_TIMEOUT_S="1", COLLAB_SERVE_BODY_TIMEOUT_S="60")
    token = service.issue("agent:b").text
    with connected(service) as idle, connected(service) as half:
        half.sendall(head(token, "Content-Length: 1000") + b"{")
        idle.sendall(b"POST /v1/obs")
        time.sleep(0.5)
        begun = time.monotonic()
        status, _ = service.stop()
        assert (status, time.monotonic() - begun < 20) == (0, True)


def test_a_token_appears_in_no_log(start: Start) -> None:
    service = start("--mcp", "--no-worker", COLLAB_SERVE_RATE="2/minute", COLLAB_SERVE_MAX_BODY_BYTES="2048")
    token = service.issue("agent:b").text
    with service.client(token) as http:
        for body in ({"text": "x" * 3_000}, {}, {"verb": "?"}):
            http.post("/v1/observe", json=body)
    with service.client(token[:-1] + "_") as http:
        http.post("/mcp", json={})
        http.get(f"/v1/{token}")
    with connected(service) as peer:
        peer.sendall(f"Bearer {token}\r\n\r\n".encode())
        answered(peer)
    status, told = service.stop()
    assert status == 0
    assert token.rpartition(".")[2][:20] not in told


@pytest.mark.parametrize(
    ("options", "environment", "says"),
    [
        (["--host", "no.such.host.invalid"], {}, "no host of this machine"),
        (["--port", "70000"], {}, "65535"),
        ([], {"COLLAB_SERVE_RATE": "often"}, "no rate"),
        ([], {"COLLAB_SERVE_MAX_REQUESTS": "0"}, "max_requests"),
        ([], {"COLLAB_AS": "agent:b"}, "token"),
    ],
    ids=["host", "port", "rate", "requests", "as"],
)
def test_what_it_cannot_do_ends_before_it_begins(
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    environment: dict[str, str],
    says: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["--url", sqlite_url, "serve", "--port", "0", *options]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False), ("localhost", False)])
def test_listening_beyond_this_machine_is_warned_about_and_a_port_that_is_taken_is_named(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], host: str, warned: bool
) -> None:
    with socket.socket() as taken:
        taken.bind((host, 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["--url", sqlite_url, "serve", "--host", host, "--port", port]) == 2
    told = capsys.readouterr().err
    assert f"port {port} cannot be had" in told
    assert ("warning: " in told) is warned
    assert told.count("\n") == 1 + warned


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_database_that_went_away_makes_it_not_ready_but_alive(start: Start) -> None:
    with PostgresServer(timeout_s=60) as server:
        service = start("--no-worker", url=server.create_database())
        token = service.issue("agent:b").text
        with service.client(token) as http:
            assert http.get("/v1/health/ready").status_code == 200
            assert http.post("/v1/context", json={}).status_code == 200
    with service.client(token) as http:
        found = http.get("/v1/health/ready")
        problem(found, 503, "store_unavailable")
        assert found.headers["retry-after"] == "1"
        assert "postgres" not in found.text.lower()
        problem(http.post("/v1/context", json={}), 503, "store_unavailable")
        assert http.get("/v1/health/live").status_code == 200
    status, told = service.stop()
    assert status == 0
    assert "store_unavailable" in told


def test_two_services_over_one_postgres_know_at_once_what_the_other_was_told(start: Start, postgres_url: str) -> None:
    one, two = start(url=postgres_url), start(url=postgres_url)
    mine, theirs = one.issue("agent:a"), one.issue("agent:b")
    with one.operator() as layer:
        grant = layer.grant("agent:a", "agent:b", level="records")
    said = {"verb": "solved", "text": "The SAML certificate had run out", "outcome": "uploaded a new one"}
    with one.client(mine.text) as first, two.client(theirs.text) as second:

        def told() -> bool:
            return "uploaded a new one" in second.post("/v1/context", json={"query": "SAML login"}).json()["text"]

        assert first.post("/v1/observe", json=said).status_code == 200
        assert eventually(told, every_s=0.5)
        with one.operator() as layer:
            layer.revoke(grant.id)
        assert not told(), "an answer that the other process had kept"
        with one.operator() as layer:
            layer.revoke_token(theirs.id)
        problem(second.post("/v1/context", json={}), 401, "token")
    assert [service.stop() for service in (one, two)] == [(0, ""), (0, "")]
