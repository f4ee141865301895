"""The loopback server; a context manager that serves in a thread."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from zep_contract.facts import Facts
from zep_contract.people import People
from zep_contract.state import State
from zep_contract.strict import Call, ContractError, Json, Reply
from zep_contract.surface import Route, derive_routes

PREFIX = "/api/v4"
MAX_BODY = 1_000_000
ROUTES = derive_routes()


class _Lost(Exception):
    """The connection is cut without an answer."""


class ContractServer(ThreadingHTTPServer):
    """See the package; what it is told to do wrong is said by its methods.

    Attributes:
        state: What it holds.
        calls: The requests that reached a known route.
        v3: Answer as a server that has no v4 API.
    """

    daemon_threads = True

    def __init__(self, api_key: str = "z_test") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api_key, self.lock = api_key, threading.Lock()
        self.reset()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def reset(self) -> None:
        """As new."""
        with self.lock:
            self.v3 = False
            self.state = State()
            self.calls: list[Call] = []
            self.operations = {**People(self.state).operations, **Facts(self.state).operations}
            self._failures: list[tuple[str | None, int, Mapping[str, str]]] = []
            self._lives: int | None = None
            self._losing: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def url(self) -> str:
        """Value for a client's `base_url`."""
        return f"http://127.0.0.1:{self.server_address[1]}{PREFIX}"

    # -- what goes wrong -------------------------------------------------------------------

    def fail_next(self, *statuses: int, on: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next requests, or the next of one operation, with these statuses, and do nothing."""
        with self.lock:
            self._failures += [(on, status, headers or {}) for status in statuses]

    def lose_answer(self, *operations: str) -> None:
        """Do what the next request of each operation asks, and cut the connection."""
        with self.lock:
            self._losing += operations

    def die_after(self, requests: int) -> None:
        """Serve so many requests yet, then cut every connection until `revive`."""
        with self.lock:
            self._lives = requests

    def revive(self) -> None:
        """Serve again."""
        with self.lock:
            self._lives = None

    @contextmanager
    def down(self) -> Iterator[None]:
        """Cut every connection."""
        self.die_after(0)
        yield
        self.revive()

    def asked(self, operation: str) -> list[Call]:
        """The requests of one operation."""
        return [call for call in self.calls if call.operation == operation]

    # -- serving -----------------------------------------------------------------------------

    def handle_call(self, method: str, target: str, headers: Mapping[str, str], raw: bytes) -> Reply:
        """Answer one request; callers hold the lock."""
        self.state.settle()
        if self._lives is not None:
            if self._lives <= 0:
                raise _Lost
            self._lives -= 1
        if headers.get("Authorization") != f"Api-Key {self.api_key}":
            raise ContractError(401, "unauthorized", "wrong API key")
        if len(raw) > MAX_BODY:
            raise ContractError(413, "content_too_large", "the body is too large")
        call = self._read(method, urlsplit(target), headers, raw)
        self.calls.append(call)
        self._fail(call)
        operation = self.operations.get(call.operation)
        if operation is None:
            raise ContractError(501, "not_modelled", call.operation)
        reply = self.state.once(call, operation)
        if call.operation in self._losing:
            self._losing.remove(call.operation)
            raise _Lost
        return reply

    def _read(self, method: str, parts: Any, headers: Mapping[str, str], raw: bytes) -> Call:
        route, parameters = self._find(method, parts.path.removeprefix(PREFIX))
        for name, value in parameters.items():
            _require_uuid(name, value)
        body: Json = json.loads(raw) if raw else {}
        unknown = set(body) - route.body_fields
        if unknown:
            raise ContractError(400, "unknown_field", f"{route.operation}: {sorted(unknown)}", min(unknown))
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return Call(route.operation, parameters, query, body, headers.get("Idempotency-Key"))

    def _find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        for route in ROUTES:
            parameters = route.match(path) if route.method == method else None
            if parameters is not None:
                return route, parameters
        raise ContractError(404, "no_route", f"{method} {path}")

    def _fail(self, call: Call) -> None:
        for at, (operation, status, headers) in enumerate(self._failures):
            if operation in (None, call.operation):
                del self._failures[at]
                error = ContractError(status, "injected", "failure asked for by the test")
                error.headers = headers
                raise error


def _require_uuid(name: str, value: str) -> None:
    try:
        uuid.UUID(value)
    except ValueError as error:
        raise ContractError(400, "invalid_identifier", name, name) from error


class _Handler(BaseHTTPRequestHandler):
    """Translate between HTTP and `ContractServer.handle_call`."""

    server: ContractServer

    def log_message(self, *_args: object) -> None:
        """Keep the console quiet."""

    def _handle(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.v3:
            self._send(404, b"404 page not found", "text/plain", {})
            return
        canonical = {name.title(): value for name, value in self.headers.items()}
        extra: Mapping[str, str] = {}
        try:
            with self.server.lock:
                status, body = self.server.handle_call(self.command, self.path, canonical, raw)
                payload = json.dumps(body).encode()
        except _Lost:
            self.close_connection = True
            return
        except ContractError as error:
            status, extra = error.status, getattr(error, "headers", {})
            said = {"code": error.code, "message": str(error), "param": error.param, "request_id": uuid.uuid4().hex}
            payload = json.dumps({"error": said}).encode()
        self._send(status, payload, "application/json", extra)

    def _send(self, status: int, payload: bytes, kind: str, extra: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        for name, value in extra.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    do_DELETE = do_GET = do_PATCH = do_POST = do_PUT = _handle
