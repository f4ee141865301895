"""The routes of `FakeLetta`, for an HTTP mock transport: those that clients of this package call.

In:   requests of the SDK's clients.
Out:  answers as a real server gives them, refusals included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

import httpx

from collab_layer_letta.testing import mcp
from collab_layer_letta.testing.fake import FakeLetta, Json, Refusal, new_id

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_TYPED = re.compile(rf"(agent|archive|block|identity)-{_UUID}")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, read."""

    server: FakeLetta
    query: Mapping[str, list[str]]
    body: Json

    def one(self, name: str, default: str | None = None) -> str | None:
        """A parameter that is given once."""
        return next(iter(self.query.get(name, ())), default)

    def page(self, rows: list[Json], size: int = 50, *, order: str = "desc") -> list[Json]:
        """The part of a list behind the cursor; nothing behind one that is gone."""
        if self.one("order", order) == "desc":
            rows = rows[::-1]
        after, ids = self.one("after"), [row["id"] for row in rows]
        if after is not None:
            rows = rows[ids.index(after) + 1 :] if after in ids else []
        return rows[: int(self.one("limit") or size)]

    def tagged(self, rows: list[Json]) -> list[Json]:
        """The rows with any of the tags asked for, or with all of them."""
        tags = set(self.query.get("tags", ()))
        if not tags:
            return rows
        every = self.one("match_all_tags") == "true"
        return [row for row in rows if (tags <= set(row["tags"]) if every else tags & set(row["tags"]))]


def transport(server: FakeLetta) -> httpx.MockTransport:
    """A transport for `httpx.Client` and `httpx.AsyncClient` alike."""
    return httpx.MockTransport(lambda request: _answer(server, request))


def _answer(server: FakeLetta, request: httpx.Request) -> httpx.Response:
    path, method = unquote(request.url.raw_path.decode().partition("?")[0]), request.method
    if server.before is not None:
        server.before(method, path)
    with server.lock:
        server.requests.append(f"{method} {path}")
        if server.down:
            raise httpx.ConnectError("unreachable", request=request)
        if server.slow:
            raise httpx.ReadTimeout("too slow", request=request)
        try:
            _admit(server, request)
            return _served(server, request, method, path)
        except Refusal as refusal:
            return httpx.Response(refusal.status, json={"detail": refusal.detail})


def _admit(server: FakeLetta, request: httpx.Request) -> None:
    if server.key is not None and request.headers.get("authorization") != f"Bearer {server.key}":
        raise Refusal(401, "Unauthorized")
    if server.failing:
        raise Refusal(server.failing.pop(0), "as told")


def _served(server: FakeLetta, request: httpx.Request, method: str, path: str) -> httpx.Response:
    query = parse_qs(request.url.query.decode())
    asked = Asked(server, query, json.loads(request.content) if request.content else {})
    for verb, pattern, route in ROUTES:
        found = re.fullmatch(pattern, path)
        if verb == method and found:
            for kind, id_ in found.groupdict().items():
                if kind in ("agent", "archive", "block", "identity") and not _TYPED.fullmatch(id_):
                    raise Refusal(422, f"String should match pattern '{kind}-{{uuid4}}'")
            value = route(asked, **found.groupdict())
            if value is GONE:
                return httpx.Response(204)
            return httpx.Response(200, content=json.dumps(value), headers={"content-type": "application/json"})
    raise Refusal(404, "Not Found")


GONE: Any = object()
"""Answer of routes that say nothing."""


# -- agents ----------------------------------------------------------------------------


def _agents(asked: Asked) -> list[Json]:
    include = asked.query.get("include", ())
    keys = set(asked.query.get("identifier_keys", ()))
    named = {id_ for id_, one in asked.server.identities.items() if one["identifier_key"] in keys}
    rows = [row for row in asked.server.agents.values() if not keys or named & set(row["identity_ids"])]
    rows = asked.page(asked.tagged(rows))
    return [asked.server.shown_agent(row, include) for row in rows]


def _agent(asked: Asked, agent: str) -> Json:
    return asked.server.shown_agent(asked.server.agent(agent), asked.query.get("include", ()))


def _make_agent(asked: Asked) -> Json:
    return asked.server.shown_agent(asked.server.make_agent(asked.body), ["blocks", "tags"])


def _change_agent(asked: Asked, agent: str) -> Json:
    return asked.server.shown_agent(asked.server.change_agent(agent, asked.body), ["tags"])


def _drop_agent(asked: Asked, agent: str) -> Json:
    asked.server.drop_agent(agent)
    return {"message": "deleted"}


def _compile(asked: Asked, agent: str) -> str:
    if asked.one("dry_run") == "true":
        return asked.server.compiled(asked.server.agent(agent))
    return asked.server.compile(agent)


def _message(asked: Asked, message: str) -> list[Json]:
    text = asked.server.prompts.get(message)
    if message in asked.server.messages:
        return [asked.server.shown_message(asked.server.messages[message])]
    return [] if text is None else [{"id": message, "message_type": "system_message", "content": text}]


def _attach(asked: Asked, agent: str, block: str) -> Json:
    return asked.server.shown_agent(asked.server.attach(agent, block), ["blocks"])


def _detach(asked: Asked, agent: str, block: str) -> Json:
    return asked.server.shown_agent(asked.server.detach(agent, block), ["blocks"])


def _by_label(asked: Asked, agent: str, label: str) -> Json:
    return asked.server.shown_block(asked.server.change_by_label(agent, label, asked.body))


def _read_by_label(asked: Asked, agent: str, label: str) -> Json:
    row = asked.server.shown_agent(asked.server.agent(agent), ["blocks"])
    for block in row["blocks"]:
        if block["label"] == label:
            return block
    raise Refusal(404, f"No block with label {label}")


# -- blocks ----------------------------------------------------------------------------


def _blocks(asked: Asked) -> list[Json]:
    server, label, more = asked.server, asked.one("label"), asked.one("connected_to_agents_count_gt")
    rows = [row for row in server.blocks.values() if label in (None, row["label"])]
    if more is not None:
        rows = [row for row in rows if len(_with(asked, row["id"])) > int(more)]
    return [server.shown_block(row) for row in asked.page(asked.tagged(rows), order="asc")]


def _with(asked: Asked, block: str) -> list[Json]:
    return [row for row in asked.server.agents.values() if block in row["blocks"]]


def _block(asked: Asked, block: str) -> Json:
    if block not in asked.server.blocks:
        raise Refusal(404, f"Block not found with id='{block}'")
    return asked.server.shown_block(asked.server.blocks[block])


def _block_agents(asked: Asked, block: str) -> list[Json]:
    return [asked.server.shown_agent(row, asked.query.get("include", ())) for row in asked.page(_with(asked, block))]


def _make_block(asked: Asked) -> Json:
    return asked.server.shown_block(asked.server.make_block(asked.body))


def _change_block(asked: Asked, block: str) -> Json:
    return asked.server.shown_block(asked.server.change_block(block, asked.body))


def _drop_block(asked: Asked, block: str) -> None:
    asked.server.drop_block(block)


# -- archives --------------------------------------------------------------------------


def _passages(asked: Asked, agent: str) -> list[Json]:
    rows = asked.server.passages_of(agent)
    query = {**asked.query, "order": ["asc" if asked.one("ascending", "true") == "true" else "desc"]}
    return [{**row, "embedding": [0.0] * 8} for row in Asked(asked.server, query, {}).page(rows, 100)]


def _make_passage(asked: Asked, agent: str) -> list[Json]:
    return [asked.server.make_passage(agent, asked.body)]


def _nearest(asked: Asked, agent: str) -> Json:
    found = asked.server.nearest(agent, asked.one("query") or "", int(asked.one("top_k") or 10))
    return {"count": len(found), "results": found}


def _drop_passage(asked: Asked, passage: str, agent: str = "", archive: str = "") -> Any:
    row = asked.server.passages.get(passage)
    if row is None or (archive and row["archive_id"] != archive):
        raise Refusal(404, f"Passage with id {passage} not found in database.")
    del asked.server.passages[passage]
    return GONE


def _archives(asked: Asked) -> list[Json]:
    agent = asked.one("agent_id")
    if agent is not None:
        asked.server.agent(agent)
    return asked.page([{"id": id_} for id_, agents in asked.server.archives.items() if agent in (None, *agents)])


def _attach_archive(asked: Asked, agent: str, archive: str) -> Any:
    asked.server.attach_archive(agent, archive)
    return GONE


def _drop_archive(asked: Asked, archive: str) -> Any:
    asked.server.drop_archive(archive)
    return GONE


def _archive_agents(asked: Asked, archive: str) -> list[Json]:
    if archive not in asked.server.archives:
        raise Refusal(404, f"Archive not found with id='{archive}'")
    rows = [row for row in asked.server.agents.values() if row["id"] in asked.server.archives[archive]]
    return [asked.server.shown_agent(row, asked.query.get("include", ())) for row in asked.page(rows)]


# -- people ----------------------------------------------------------------------------


def _make_identity(asked: Asked) -> Json:
    return asked.server.make_identity(asked.body)


def _identity(asked: Asked, identity: str) -> Json:
    if identity not in asked.server.identities:
        raise Refusal(404, f"Identity not found with id='{identity}'")
    return asked.server.identities[identity]


def _drop_identity(asked: Asked, identity: str) -> None:
    asked.server.drop_identity(identity)


def _attach_identity(asked: Asked, agent: str, identity: str) -> None:
    row = asked.server.agent(agent)
    row["identity_ids"] = list(dict.fromkeys([*row["identity_ids"], _identity(asked, identity)["id"]]))


def _messages(asked: Asked, agent: str) -> list[Json]:
    return asked.page(asked.server.said(agent), 100)


def _say(asked: Asked, agent: str) -> Json:
    return asked.server.say(agent, asked.body)


# -- tools -----------------------------------------------------------------------------


def _tools(asked: Asked) -> list[Json]:
    name = asked.one("name")
    return asked.page([row for row in asked.server.tools.values() if name in (None, row["name"])])


def _upsert_tool(asked: Asked) -> Json:
    """By name: whoever's it was, it is replaced."""
    name = asked.body["json_schema"]["name"]
    same = [row for row in asked.server.tools.values() if row["name"] == name]
    row: Json = same[0] if same else {"id": new_id("tool")}
    row.update({"tags": [], "name": name, **asked.body})
    asked.server.tools[row["id"]] = row
    return row


def _drop_tool(asked: Asked, tool: str) -> None:
    if asked.server.tools.pop(tool, None) is None:
        raise Refusal(404, f"Tool not found with id='{tool}'")
    for row in asked.server.agents.values():
        row["tools"] = [one for one in row["tools"] if one != tool]


def _attach_tool(asked: Asked, agent: str, tool: str) -> None:
    row = asked.server.agent(agent)
    if tool not in asked.server.tools:
        raise Refusal(404, f"Tool not found with id='{tool}'")
    row["tools"] = list(dict.fromkeys([*row["tools"], tool]))


def _detach_tool(asked: Asked, agent: str, tool: str) -> None:
    row = asked.server.agent(agent)
    row["tools"] = [one for one in row["tools"] if one != tool]


def _health(asked: Asked) -> Json:
    return {"version": "fake", "status": "ok"}


# -- MCP servers -------------------------------------------------------------------------


def _mcp_servers(asked: Asked) -> list[Json]:
    return list(asked.server.mcp.values())


def _make_mcp(asked: Asked) -> Json:
    return mcp.make(asked.server, asked.body)


def _change_mcp(asked: Asked, id_: str) -> Json:
    return mcp.change(asked.server, id_, asked.body)


def _refresh_mcp(asked: Asked, id_: str) -> Json:
    return {"added": mcp.sync(asked.server, id_)}


def _mcp_tools(asked: Asked, id_: str) -> list[Json]:
    return mcp.tools(asked.server, id_)


def _drop_mcp(asked: Asked, id_: str) -> Any:
    mcp.drop(asked.server, id_)
    return GONE


A, B = r"/v1/agents/(?P<agent>[^/]+)", r"/v1/blocks/(?P<block>[^/]+)"
P, M = r"/v1/identities/(?P<identity>[^/]+)", r"/v1/mcp-servers/(?P<id_>[^/]+)"
ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("GET", r"/v1/health/", _health),
    ("GET", r"/v1/agents/", _agents),
    ("POST", r"/v1/agents/", _make_agent),
    ("GET", A, _agent),
    ("PATCH", A, _change_agent),
    ("DELETE", A, _drop_agent),
    ("POST", A + r"/recompile", _compile),
    ("PATCH", A + r"/core-memory/blocks/attach/(?P<block>[^/]+)", _attach),
    ("PATCH", A + r"/core-memory/blocks/detach/(?P<block>[^/]+)", _detach),
    ("PATCH", A + r"/core-memory/blocks/(?P<label>[^/]+)", _by_label),
    ("GET", A + r"/core-memory/blocks/(?P<label>[^/]+)", _read_by_label),
    ("PATCH", A + r"/tools/attach/(?P<tool>[^/]+)", _attach_tool),
    ("PATCH", A + r"/tools/detach/(?P<tool>[^/]+)", _detach_tool),
    ("GET", A + r"/archival-memory", _passages),
    ("POST", A + r"/archival-memory", _make_passage),
    ("GET", A + r"/archival-memory/search", _nearest),
    ("DELETE", A + r"/archival-memory/(?P<passage>[^/]+)", _drop_passage),
    ("GET", r"/v1/messages/(?P<message>[^/]+)", _message),
    ("GET", A + r"/messages", _messages),
    ("POST", A + r"/messages", _say),
    ("POST", r"/v1/identities/", _make_identity),
    ("GET", P, _identity),
    ("DELETE", P, _drop_identity),
    ("PATCH", A + r"/identities/attach/(?P<identity>[^/]+)", _attach_identity),
    ("GET", r"/v1/blocks/", _blocks),
    ("POST", r"/v1/blocks/", _make_block),
    ("GET", B, _block),
    ("PATCH", B, _change_block),
    ("DELETE", B, _drop_block),
    ("GET", B + r"/agents", _block_agents),
    ("GET", r"/v1/archives/", _archives),
    ("GET", r"/v1/archives/(?P<archive>[^/]+)/agents", _archive_agents),
    ("PATCH", A + r"/archives/attach/(?P<archive>[^/]+)", _attach_archive),
    ("DELETE", r"/v1/archives/(?P<archive>[^/]+)", _drop_archive),
    ("DELETE", r"/v1/archives/(?P<archive>[^/]+)/passages/(?P<passage>[^/]+)", _drop_passage),
    ("GET", r"/v1/mcp-servers/", _mcp_servers),
    ("POST", r"/v1/mcp-servers/", _make_mcp),
    ("PATCH", M, _change_mcp),
    ("PATCH", M + r"/refresh", _refresh_mcp),
    ("GET", M + r"/tools", _mcp_tools),
    ("DELETE", M, _drop_mcp),
    ("GET", r"/v1/tools/", _tools),
    ("PUT", r"/v1/tools/", _upsert_tool),
    ("POST", r"/v1/tools/", _upsert_tool),
    ("DELETE", r"/v1/tools/(?P<tool>[^/]+)", _drop_tool),
]

__all__ = ["ROUTES", "Asked", "transport"]
