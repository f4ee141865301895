"""What the service holds, its tasks, and the answers it gave under idempotency keys."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from zep_cloud import types as sdk

from zep_contract.strict import Call, ContractError, Json, Reply, answer, new_id, now


class State:
    """Rows by uuid.

    Attributes:
        lag_s: How long after a write answers its effect is seen.
        endings: How the next tasks end; one that is `failed` has no effect.
    """

    def __init__(self) -> None:
        self.users: dict[str, Json] = {}
        self.groups: dict[str, Json] = {}
        self.members: dict[str, set[str]] = {}
        self.threads: dict[str, Json] = {}
        self.messages: dict[str, Json] = {}
        self.graphs: dict[str, Json] = {}
        self.ontologies: dict[str, list[Json]] = {}
        self.nodes: dict[str, Json] = {}
        self.edges: dict[str, Json] = {}
        self.episodes: dict[str, Json] = {}
        self.observations: dict[str, Json] = {}
        self.tasks: dict[str, Json] = {}
        self.lag_s = 0.0
        self.endings: list[str] = []
        self._due: list[tuple[float, Callable[[], None]]] = []
        self._replies: dict[tuple[str, str, str], Reply] = {}

    def once(self, call: Call, perform: Callable[[Call], Reply]) -> Reply:
        """Carry out a call, or repeat the answer to an identical earlier one: same key, route and body."""
        place = json.dumps([dict(call.parameters), call.body], sort_keys=True)
        identity = (call.once or "", call.operation, place)
        if call.once and identity in self._replies:
            return self._replies[identity]
        reply = perform(call)
        if call.once:
            self._replies[identity] = reply
        return reply

    def forget_replies(self) -> None:
        """As if the time for which answers are kept were over."""
        self._replies.clear()

    def task(self, kind: str, effect: Callable[[], None], result: Json | None = None) -> Json:
        """A pending task; its effect is seen when it has ended."""
        uuid, ending = new_id(), self.endings.pop(0) if self.endings else "succeeded"
        task: Json = {"uuid": uuid, "type": kind, "status": "pending", "created_at": now()}
        self.tasks[uuid] = dict(task)

        def end() -> None:
            if ending != "failed":
                effect()
            error = None if ending == "succeeded" else {"code": "worker_failed", "message": "as told"}
            self.tasks[uuid] |= {"status": ending, "result": result, "error": error, "completed_at": now()}

        if self.lag_s:
            self._due.append((time.monotonic() + self.lag_s, end))
        else:
            end()
        return answer(sdk.Task, task)

    def settle(self) -> None:
        """Let everything that is due take effect."""
        due = [end for at, end in self._due if at <= time.monotonic()]
        self._due = [(at, end) for at, end in self._due if at > time.monotonic()]
        for end in due:
            end()

    def graph_of(self, call: Call) -> str:
        """The graph a call is about; a user's uuid stands for that of its graph."""
        given = call.parameters["graph_uuid"]
        graph = self.users[given]["graph_uuid"] if given in self.users else given
        if graph not in self.graphs:
            raise ContractError(404, "not_found", "graph")
        return graph

    def row(self, rows: dict[str, Json], uuid: str, what: str, graph: str | None = None) -> Json:
        """A row, if it is there and in that graph."""
        held = rows.get(uuid)
        if held is None or (graph is not None and held["graph_uuid"] != graph):
            raise ContractError(404, "not_found", what)
        return held

    def new_graph(self, **fields: Any) -> Json:
        """Store a graph."""
        graph = {"uuid": new_id(), "created_at": now(), "updated_at": now(), **fields}
        self.graphs[graph["uuid"]] = answer(sdk.Graph, graph)
        return graph

    def drop_graph(self, graph: str) -> None:
        """Take a graph out with all in it."""
        self.graphs.pop(graph, None)
        self.ontologies.pop(graph, None)
        for rows in (self.nodes, self.edges, self.episodes, self.observations):
            for uuid in [uuid for uuid, row in rows.items() if row["graph_uuid"] == graph]:
                del rows[uuid]

    def traces(self, text: str) -> list[str]:
        """Where a text lies."""
        kinds = {
            "user": self.users, "thread": self.threads, "message": self.messages, "graph": self.graphs,
            "node": self.nodes, "edge": self.edges, "episode": self.episodes, "observation": self.observations,
        }  # fmt: skip
        return [
            f"{kind} {uuid}"
            for kind, rows in kinds.items()
            for uuid, row in rows.items()
            if text in json.dumps(row, ensure_ascii=False) or json.dumps(text)[1:-1] in json.dumps(row)
        ]

    def census(self) -> dict[str, int]:
        """How much there is of each kind, tasks left out."""
        return {
            "users": len(self.users), "groups": len(self.groups), "threads": len(self.threads),
            "messages": len(self.messages), "graphs": len(self.graphs), "nodes": len(self.nodes),
            "edges": len(self.edges), "episodes": len(self.episodes),
        }  # fmt: skip
