"""A service over a real layer: inside this process, or as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.config import ServeSettings, Settings
from collab_layer.surface.http.app import create_app
from collab_layer.types.access import NewToken

ALONE = Settings(worker=False)
COLLAB = [sys.executable, "-c", "from collab_layer.surface.cli.main import run; run()"]


@dataclass
class Service:
    """The application, and the operator's view of the layer behind it."""

    layer: AsyncCollabLayer
    http: httpx.AsyncClient

    async def token(self, entity: str = "agent:b", **more: Any) -> str:
        return (await self.layer.issue_token(entity, **more)).text

    async def post(self, path: str, body: Any = None, token: str | None = None, **more: Any) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        headers |= more.pop("headers", {})
        return await self.http.post(f"/v1/{path}", content=body, headers=headers, **more)


@asynccontextmanager
async def serving(
    url: str, layer_type: type[AsyncCollabLayer] = AsyncCollabLayer, **limits: Any
) -> AsyncIterator[Service]:
    async with await layer_type.open(url, tenant="acme", settings=ALONE) as layer:
        app = create_app(layer, ServeSettings(**limits))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://service.test") as http:
            yield Service(layer, http)


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem that a response tells, after checking that it is one."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert (told["status"], told["code"]) == (status, code), told
    assert told["title"]
    assert told["detail"]
    return told


class Running:
    """`collab serve` as a process of its own, on a port of its own."""

    def __init__(self, url: str, *options: str, **environment: str) -> None:
        self.store = url
        call = [*COLLAB, "--url", url, "serve", "--port", "0", "--json", *options]
        self.process = subprocess.Popen(
            call,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLLAB_THREADS": "2", **environment},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        self.at: dict[str, Any] = json.loads(line)
        self.url: str = self.at["url"]

    def operator(self, tenant: str = "default") -> CollabLayer:
        """The same database, opened in this process."""
        return CollabLayer.open(self.store, tenant=tenant, settings=ALONE)

    def issue(self, entity: str, tenant: str = "default") -> NewToken:
        with self.operator(tenant) as layer:
            return layer.issue_token(entity)

    def client(self, token: str | None = None, **more: Any) -> httpx.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False, **more)

    def stop(self) -> tuple[int, str]:
        """Ask it to stop; its exit status and what it said on stderr."""
        self.process.terminate()
        _, told = self.process.communicate(timeout=60)
        return self.process.returncode, told


@pytest.fixture
def start(sqlite_url: str) -> Iterator[Callable[..., Running]]:
    """Starts services; those that still run at the end are killed."""
    started: list[Running] = []

    def run(*options: str, url: str = sqlite_url, **environment: str) -> Running:
        started.append(Running(url, *options, **environment))
        return started[-1]

    yield run
    for one in started:
        one.process.kill()
        one.process.communicate()
