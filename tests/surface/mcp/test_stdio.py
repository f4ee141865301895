"""`collab mcp`: whom it acts for must be said, and stdout belongs to the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from mcp import Client, StdioServerParameters

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.surface.cli.main import main

from ..http.conftest import COLLAB  # noqa: TID252  the same service, another door

ALONE = Settings(worker=False)


def run(url: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, **environment}
    return subprocess.run(
        [*COLLAB, "--url", url, *arguments], capture_output=True, text=True, check=False, input="", env=own, timeout=90
    )


def test_an_entity_stands_in_for_a_token_where_the_database_can_be_read(sqlite_url: str) -> None:
    async def story() -> None:
        call = [*COLLAB[1:], "--url", sqlite_url, "--as", "agent:b", "mcp"]
        environment = {**os.environ, "COLLAB_WORKER": "true"}
        async with Client(StdioServerParameters(command=sys.executable, args=call, env=environment)) as client:
            assert not (await client.call_tool("observe", {"text": "Заметка"})).is_error
            told = await client.call_tool("observe", {"actor": "agent:a", "text": "I said this"})
            assert told.structured_content["code"] == "not_permitted"

    asyncio.run(story())
    with CollabLayer.open(sqlite_url, settings=ALONE) as layer:
        assert layer.health().counts["interactions"] == 1


def test_whom_to_act_for_must_be_said(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", sqlite_url, "mcp"]) == 2
    assert "COLLAB_TOKEN" in capsys.readouterr().err


def test_a_token_and_an_entity_at_once_are_refused(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "collab_x")
    assert main(["--url", sqlite_url, "--as", "agent:b", "mcp", "--token-env", "MY_TOKEN"]) == 2
    assert "one of them" in capsys.readouterr().err


def test_a_token_that_does_not_hold_ends_it_at_once(sqlite_url: str) -> None:
    done = run(sqlite_url, "mcp", COLLAB_TOKEN="collab_YWNtZQ.t0123456789abcdef." + "A" * 43)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: the access token does not hold; ask the operator for a new one\n"


def test_a_suffix_that_no_name_can_have_is_refused(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", sqlite_url, "--as", "agent:b", "mcp", "--suffix", "a b"]) == 2
    assert "at most 24" in capsys.readouterr().err


def test_it_ends_when_its_client_has_gone(sqlite_url: str) -> None:
    done = run(sqlite_url, "--as", "agent:b", "mcp")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_tools_can_be_looked_at_without_a_client(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--json"]) == 0
    tools = json.loads(capsys.readouterr().out)
    of_others = {"context", "answer", "observe", "rank", "neighbors", "explain"}
    of_oneself = {"publish", "changes", "injections", "receipt", "receipts", "grants"}
    assert {tool["name"] for tool in tools} == of_others | of_oneself
    for tool in tools:
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert all("description" in field for field in tool["inputSchema"]["properties"].values())
        assert tool["annotations"]["readOnlyHint"] is (tool["name"] not in ("observe", "publish"))
