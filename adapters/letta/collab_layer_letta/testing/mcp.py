"""MCP servers of `FakeLetta`, as measured on 0.16.8.

In:   requests that were read.
Out:  servers and their tools, or refusals.

Kept on purpose: a server that cannot be reached is registered all the same, without tools; tools
stand in one list by name, and the server that came last has a name; arguments are split at
blanks; loopback and private addresses are refused; a server that is not there is a 400.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from urllib.parse import urlsplit

from collab_layer_letta.testing.fake import FakeLetta, Json, Refusal, new_id

_SECONDS = 60


def make(server: FakeLetta, body: Json) -> Json:
    """A new server, with what tools can be got from it."""
    name, config = body["server_name"], body["config"]
    if config["mcp_server_type"] == "stdio":
        if not server.stdio:
            raise Refusal(400, "MCP stdio servers are disabled. Set MCP_DISABLE_STDIO=false to enable them.")
    else:
        _check_address(config["server_url"])
    if any(row["server_name"] == name for row in server.mcp.values()):
        raise Refusal(409, "duplicate key value violates unique constraint")
    row = {**config, "id": new_id("mcp_server"), "server_name": name}
    server.mcp[row["id"]] = row
    _register(server, row)
    return row


def change(server: FakeLetta, id_: str, body: Json) -> Json:
    """Other settings, of the same transport; the tools stay."""
    row = _known(server, id_)
    row.update({key: value for key, value in body["config"].items() if key != "mcp_server_type"})
    return row


def sync(server: FakeLetta, id_: str) -> list[str]:
    """Get the tools again."""
    found = _register(server, _known(server, id_))
    if not found:
        raise Refusal(404, "MCPServerUnavailable")
    return found


def tools(server: FakeLetta, id_: str) -> list[Json]:
    """What was got from a server; nothing for one that is not there."""
    return [row for row in server.tools.values() if row.get("mcp_server") == id_]


def drop(server: FakeLetta, id_: str) -> None:
    """Gone with its tools, from every agent."""
    _known(server, id_)
    for one in tools(server, id_):
        del server.tools[one["id"]]
        for row in server.agents.values():
            row["tools"] = [tool for tool in row["tools"] if tool != one["id"]]
    del server.mcp[id_]


def _known(server: FakeLetta, id_: str) -> Json:
    if id_ not in server.mcp:
        raise Refusal(400, f"MCP server with id {id_} not found.")
    return server.mcp[id_]


def _register(server: FakeLetta, row: Json) -> list[str]:
    names = _started(row) if row["mcp_server_type"] == "stdio" else server.public.get(row["server_url"], [])
    for name in names:
        same = [one for one in server.tools.values() if one["name"] == name]
        tool: Json = same[0] if same else {"id": new_id("tool"), "name": name}
        tool |= {"tags": [f"mcp:{row['server_name']}"], "mcp_server": row["id"], "tool_type": "external_mcp"}
        server.tools[tool["id"]] = tool
    return names


def _started(row: Json) -> list[str]:
    """The tools that the command of a server lists, asked with `--json` instead of over the protocol."""
    arguments = [part for one in row["args"] for part in one.split()]
    environment: dict[str, str] = {"PATH": os.environ["PATH"], **(row["env"] or {})}
    call = [row["command"], *arguments, "--json"]
    try:
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True, timeout=_SECONDS)
        return [tool["name"] for tool in json.loads(done.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []


def _check_address(url: str) -> None:
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith((".local", ".localdomain", ".home.arpa", ".svc")):
        raise Refusal(422, f"Blocked internal hostname: {host}")
    try:
        is_public = ipaddress.ip_address(host).is_global
    except ValueError:
        return
    if not is_public:
        raise Refusal(422, f"Non-public IP not allowed: {host}")


__all__ = ["change", "drop", "make", "sync", "tools"]
