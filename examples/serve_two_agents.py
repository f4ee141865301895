"""Two agents in processes of their own share through `collab serve`: one over HTTP, the other over MCP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from collab_layer import CollabLayer
from collab_layer.config import Settings

PROBLEM = "go build: ambiguous import, package genproto found in multiple modules"


@contextmanager
def service(url: str) -> Generator[dict[str, Any]]:
    """`collab serve` on a free port of this machine."""
    call = [sys.executable, "-c", "from collab_layer.surface.cli.main import run; run()", "--url", url]
    with subprocess.Popen(
        [*call, "serve", "--worker", "--mcp", "--port", "0", "--json"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def post(url: str, token: str, body: dict[str, Any]) -> dict[str, Any]:
    """All that a tool in a sandbox needs: the standard library."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


async def ask(url: str, token: str) -> str:
    """What an MCP client sees of the tool `context`."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False)
    async with http, Client(streamable_http_client(url, http_client=http)) as client:
        found = await client.call_tool("context", {"query": PROBLEM})
        return found.content[0].text


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = str(Path(folder) / "collab.db")
        with CollabLayer.open(url, settings=Settings(worker=False)) as operator, service(url) as at:
            a, b = operator.issue_token("agent:coder-a"), operator.issue_token("agent:coder-b")
            solved = {
                "verb": "solved",
                "text": "go build says ambiguous import, genproto found in multiple modules",
                "outcome": "go get google.golang.org/genproto@latest, then go mod tidy",
                "links": ["topic:go-modules"],
            }
            post(f"{at['url']}/v1/observe", a.text, solved)

            print("before:", asyncio.run(ask(at["mcp"], b.text)))
            operator.grant("agent:coder-a", to="agent:coder-b", level="records")
            for _ in range(100):  # until the worker of the service has read the note
                shown = asyncio.run(ask(at["mcp"], b.text))
                if "genproto@latest" in shown:
                    break
                time.sleep(0.2)
            print("after:", shown)
            assert "genproto@latest" in shown

            operator.revoke_token(b.id)
            try:
                post(f"{at['url']}/v1/context", b.text, {"query": PROBLEM})
            except urllib.error.HTTPError as error:
                with error:
                    print("revoked:", error.code, json.load(error)["code"])


if __name__ == "__main__":
    main()
