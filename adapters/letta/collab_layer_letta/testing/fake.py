"""What a Letta server holds and how it behaves, as measured on 0.16.8.

In:   calls by the routes, and by tests: turns of agents, outages, conflicts.
Out:  rows as the REST API gives them.

Kept on purpose: no version and no time of change on blocks; nothing checked against a limit;
metadata replaced whole; a label once per agent; prompts compiled anew for every agent after a
write by id, for one agent after a write by label, and not at all after attaching; a turn that
edits any block writes every block back as it was when the turn began; passages that cannot be
changed, and a search without scores; messages that nobody can change or delete, whose sender is
whatever the caller says.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Any, TypeVar

Json = dict[str, Any]
T = TypeVar("T")
LIMIT = 100_000
_BLOCK = {
    "project_id": None,
    "template_name": None,
    "is_template": False,
    "hidden": None,
    "created_by_id": None,
    "last_updated_by_id": None,
}


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(detail)


@dataclass
class FakeLetta:
    """A server.

    Attributes:
        down: Nothing answers.
        slow: Every request times out.
        key: The key it takes; None takes any.
        conflicts: How many of the next writes of a block are refused with 409.
        failing: Status that the next requests get, oldest first.
        strict: Refuse values over a block's limit with 422, as releases before 0.16 did.
        requests: Method and path of each request.
        before: Called with method and path before a request is served.
        stdio: Whether it starts MCP servers itself; a server as it comes does not.
        public: Names of the tools that each public MCP address lists.
    """

    down: bool = False
    slow: bool = False
    key: str | None = None
    conflicts: int = 0
    failing: list[int] = field(default_factory=list[int])
    strict: bool = False
    requests: list[str] = field(default_factory=list[str])
    before: Callable[[str, str], None] | None = None
    agents: dict[str, Json] = field(default_factory=dict[str, Json])
    blocks: dict[str, Json] = field(default_factory=dict[str, Json])
    archives: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    passages: dict[str, Json] = field(default_factory=dict[str, Json])
    tools: dict[str, Json] = field(default_factory=dict[str, Json])
    prompts: dict[str, str] = field(default_factory=dict[str, str])
    stdio: bool = True
    public: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    mcp: dict[str, Json] = field(default_factory=dict[str, Json])
    identities: dict[str, Json] = field(default_factory=dict[str, Json])
    messages: dict[str, Json] = field(default_factory=dict[str, Json])
    lock: RLock = field(default_factory=RLock)
    ticks: int = 0

    def now(self) -> str:
        """A time that moves on with every look."""
        self.ticks += 1
        at = datetime(2026, 5, 1, 10, tzinfo=UTC) + timedelta(milliseconds=self.ticks)
        return at.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def writes(self) -> list[str]:
        """The requests that changed something."""
        return [one for one in self.requests if not one.startswith("GET")]

    # -- agents ------------------------------------------------------------------------

    def make_agent(self, body: Mapping[str, Any]) -> Json:
        """A new agent with its blocks, and a compiled prompt."""
        id_, message = new_id("agent"), new_id("message")
        row: Json = {"id": id_, "created_at": self.now(), "message_ids": [message], "name": body.get("name")}
        row |= {"tags": list(body.get("tags") or ()), "blocks": [], "tools": list(body.get("tool_ids") or ())}
        row |= {"secrets": dict(body.get("secrets") or {}), "metadata": body.get("metadata")}
        row |= {"identity_ids": list(body.get("identity_ids") or ())}
        self.agents[id_] = row
        for given in body.get("memory_blocks") or ():
            row["blocks"].append(self.make_block(given)["id"])
        row["blocks"] += list(body.get("block_ids") or ())
        self.compile(id_)
        return row

    def agent(self, id_: str) -> Json:
        """An agent, or 404."""
        return _known(self.agents, id_, "Agent")

    def shown_agent(self, row: Json, include: Iterable[str]) -> Json:
        """An agent with the relations that were asked for."""
        secrets = [{"agent_id": row["id"], "key": key, "value": value} for key, value in row["secrets"].items()]
        parts: Json = {
            "blocks": [{**self.shown_block(self.blocks[one]), "tags": []} for one in row["blocks"]],
            "tags": list(row["tags"]),
            "identities": [self.identities[one] for one in row["identity_ids"]],
            "tools": [self.tools[one] for one in row["tools"]],
            "secrets": secrets,
        }
        wanted = {one.removeprefix("agent.") for one in include}
        return {**row, **{name: value if name in wanted else [] for name, value in parts.items()}}

    def change_agent(self, id_: str, body: Mapping[str, Any]) -> Json:
        """Tags and secrets are replaced whole."""
        row = self.agent(id_)
        row.update({name: body[name] for name in ("tags", "secrets", "name") if body.get(name) is not None})
        return row

    def drop_agent(self, id_: str) -> None:
        """Its blocks, archives and passages stay."""
        self.agent(id_)
        for agents in self.archives.values():
            if id_ in agents:
                agents.remove(id_)
        del self.agents[id_]

    def attach(self, agent: str, block: str) -> Json:
        """Attach a block; the prompt stays as it is."""
        row, label = self.agent(agent), _known(self.blocks, block, "Block")["label"]
        if block in row["blocks"]:
            return row
        if any(self.blocks[one]["label"] == label for one in row["blocks"]):
            raise Refusal(409, "unique_label_per_agent")
        row["blocks"].append(block)
        return row

    def detach(self, agent: str, block: str) -> Json:
        """Detach a block; the prompt stays as it is."""
        row = self.agent(agent)
        if block not in row["blocks"]:
            raise Refusal(404, f"No block with id '{block}' found for agent")
        row["blocks"].remove(block)
        return row

    def compile(self, agent: str) -> str:
        """Compile a prompt anew; answers with the one it replaces."""
        row = self.agent(agent)
        message = row["message_ids"][0]
        before, self.prompts[message] = self.prompts.get(message, ""), self.compiled(row)
        return before

    def compiled(self, row: Json) -> str:
        """A prompt with the blocks as they are now."""
        parts = [
            f"<{block['label']}>\n<metadata>\n- chars_current={len(block['value'])}\n- chars_limit={block['limit']}\n"
            f"</metadata>\n<value>\n{block['value']}\n</value>\n</{block['label']}>"
            for block in (self.blocks[one] for one in row["blocks"])
        ]
        return "\n".join(["<memory_blocks>", *parts, "</memory_blocks>"])

    # -- blocks ------------------------------------------------------------------------

    def make_block(self, body: Mapping[str, Any]) -> Json:
        """A new block."""
        row: Json = {"id": new_id("block"), "made": self.now(), **_BLOCK, "limit": LIMIT, "metadata": {}, "tags": []}
        row |= {"read_only": False, "description": None}
        row |= {key: value for key, value in body.items() if value is not None}
        self._check_limit(row)
        self.blocks[row["id"]] = row
        return row

    def shown_block(self, row: Json) -> Json:
        """A block as the API gives it: without any time."""
        return {key: value for key, value in row.items() if key != "made"}

    def change_block(self, id_: str, body: Mapping[str, Any]) -> Json:
        """A write by id: every agent's prompt is compiled anew."""
        row = _known(self.blocks, id_, "Block")
        if self.conflicts > 0:
            self.conflicts -= 1
            raise Refusal(409, f"CONFLICT: Block with id '{id_}' was updated by another transaction.")
        self._change(row, body)
        for agent in list(self.agents.values()):
            if id_ in agent["blocks"]:
                self.compile(agent["id"])
        return row

    def change_by_label(self, agent: str, label: str, body: Mapping[str, Any]) -> Json:
        """A write by label: only this agent's prompt is compiled anew."""
        found = [self.blocks[one] for one in self.agent(agent)["blocks"] if self.blocks[one]["label"] == label]
        if not found:
            raise Refusal(404, f"No block with label {label}")
        self._change(found[0], body)
        self.compile(agent)
        return found[0]

    def drop_block(self, id_: str) -> None:
        """Gone from every agent; the prompts stay as they are."""
        _known(self.blocks, id_, "Block")
        for row in self.agents.values():
            row["blocks"] = [one for one in row["blocks"] if one != id_]
        del self.blocks[id_]

    def _change(self, row: Json, body: Mapping[str, Any]) -> None:
        wanted = {**row, **{key: value for key, value in body.items() if value is not None and key != "id"}}
        self._check_limit(wanted)
        row.update(wanted)

    def _check_limit(self, row: Json) -> None:
        if self.strict and len(str(row.get("value") or "")) > int(row["limit"]):
            raise Refusal(422, f"Edit failed: Exceeds {row['limit']} character limit")

    # -- passages ----------------------------------------------------------------------

    def archive_of(self, agent: str) -> str:
        """The archive of an agent, made when it first archives something."""
        self.agent(agent)
        for id_, agents in self.archives.items():
            if agent in agents:
                return id_
        id_ = new_id("archive")
        self.archives[id_] = [agent]
        return id_

    def attach_archive(self, agent: str, archive: str) -> None:
        """Share an archive: an agent has one at most."""
        self.agent(agent)
        if any(agent in agents for id_, agents in self.archives.items() if id_ != archive):
            raise Refusal(409, "unique_agent_archive")
        _known(self.archives, archive, "Archive")
        self.archives[archive] = list(dict.fromkeys([*self.archives[archive], agent]))

    def drop_archive(self, archive: str) -> None:
        """Gone with everything in it."""
        _known(self.archives, archive, "Archive")
        self.passages = {id_: row for id_, row in self.passages.items() if row["archive_id"] != archive}
        del self.archives[archive]

    def make_passage(self, agent: str, body: Mapping[str, Any]) -> Json:
        """A new passage in the agent's archive."""
        row: Json = {"id": new_id("passage"), "text": body["text"], "archive_id": self.archive_of(agent)}
        row |= {"tags": body.get("tags"), "metadata": {}, "created_at": body.get("created_at") or self.now()}
        self.passages[row["id"]] = row
        return {**row, "embedding": [0.0] * 8}

    def passages_of(self, agent: str) -> list[Json]:
        """What an agent has archived, oldest first; nothing for an agent that is gone."""
        mine = {id_ for id_, agents in self.archives.items() if agent in agents}
        rows = [row for row in self.passages.values() if row["archive_id"] in mine]
        return sorted(rows, key=lambda row: (row["created_at"], row["id"]))

    def nearest(self, agent: str, query: str, top_k: int) -> list[Json]:
        """Passages by shared words, without a score."""
        self.agent(agent)
        asked = set(re.findall(r"\w+", query.casefold()))
        rows = self.passages_of(agent)
        rows.sort(key=lambda row: -len(asked & set(re.findall(r"\w+", row["text"].casefold()))))
        found: list[Json] = []
        for row in rows[:top_k]:
            found.append({"id": row["id"], "content": row["text"], "tags": row["tags"] or []})
            found[-1]["timestamp"] = row["created_at"]
        return found

    # -- people ------------------------------------------------------------------------

    def make_identity(self, body: Mapping[str, Any]) -> Json:
        """Somebody who may speak with agents; a key is taken once."""
        if any(one["identifier_key"] == body["identifier_key"] for one in self.identities.values()):
            raise Refusal(409, "identifier_key")
        row: Json = {"id": new_id("identity"), "agent_ids": [], "properties": [], **body}
        self.identities[row["id"]] = row
        return row

    def drop_identity(self, id_: str) -> None:
        """Its agents and its messages stay."""
        _known(self.identities, id_, "Identity")
        for row in self.agents.values():
            row["identity_ids"] = [one for one in row["identity_ids"] if one != id_]
        del self.identities[id_]

    def say(self, agent: str, body: Mapping[str, Any]) -> Json:
        """Messages as they were sent, whoever they say they are from; the agent answers `ok`."""
        self.agent(agent)
        kinds = {"user": "user_message", "system": "system_message", "assistant": "assistant_message"}
        for given in [*body["messages"], {"role": "assistant", "content": "ok"}]:
            row: Json = {"id": new_id("message"), "date": self.now(), "message_type": kinds[given["role"]]}
            row |= {name: given.get(name) for name in ("content", "name", "sender_id")}
            self.messages[row["id"]] = {**row, "agent": agent}
        return {"messages": [], "stop_reason": {"stop_reason": "end_turn"}, "usage": {}}

    def said(self, agent: str) -> list[Json]:
        """A conversation, oldest first."""
        self.agent(agent)
        return [self.shown_message(row) for row in self.messages.values() if row["agent"] == agent]

    def shown_message(self, row: Json) -> Json:
        """A message as the API gives it: without its agent."""
        return {key: value for key, value in row.items() if key != "agent"}

    # -- turns -------------------------------------------------------------------------

    def turn(self, agent: str) -> Turn:
        """A turn of an agent that begins now."""
        return Turn(self, agent)


class Turn:
    """A turn in progress: it has read every block, and writes back what differs once it edits one."""

    def __init__(self, server: FakeLetta, agent: str) -> None:
        self._server, self._agent = server, agent
        self._values = {one: server.blocks[one]["value"] for one in server.agent(agent)["blocks"]}
        self._edited = False

    def edit(self, label: str, value: str) -> str:
        """Edit a block with a memory tool; what the tool answers."""
        for one in self._values:
            if self._server.blocks[one]["label"] == label:
                if self._server.blocks[one]["read_only"]:
                    return "Error This block is read-only and cannot be edited."
                self._values[one], self._edited = value, True
                return "ok"
        return f"Error no block {label}"

    def end(self) -> None:
        """Write back every block that differs from the snapshot, its value alone."""
        if not self._edited:
            return
        for one, value in self._values.items():
            if one in self._server.blocks and self._server.blocks[one]["value"] != value:
                self._server.change_block(one, {"value": value})
        self._server.compile(self._agent)


def new_id(kind: str) -> str:
    """An id as the server makes them."""
    return f"{kind}-{uuid.uuid4()}"


def _known(rows: Mapping[str, T], id_: str, what: str) -> T:
    if id_ not in rows:
        raise Refusal(404, f"{what} not found with id='{id_}'")
    return rows[id_]


__all__ = ["FakeLetta", "Refusal", "Turn", "new_id"]
