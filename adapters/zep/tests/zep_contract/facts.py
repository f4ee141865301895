"""Graphs, edges, nodes, episodes."""

from __future__ import annotations

from typing import Any

from zep_cloud import types as sdk

from zep_contract.filters import page, ranked, selected
from zep_contract.state import State
from zep_contract.strict import Call, ContractError, Json, Reply, answer, checked_time, new_id, now, parse

MAX_AT_ONCE = 100
MAX_MENTIONED = 256
_TYPES = {"text": str, "int": int, "float": (int, float), "boolean": bool}


class Facts:
    """Operations by name."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.operations = {
            "graph.create": self.create_graph,
            "graph.get": self.get_graph,
            "graph.list": self.list_graphs,
            "graph.delete": self.delete_graph,
            "graph.set_ontology": self.set_ontology,
            "graph.search_edges": self.search_edges,
            "graph.search_nodes": self.search_nodes,
            "graph.get_context": self.graph_context,
            "edge.add": self.add_edges,
            "edge.list": self.list_edges,
            "edge.get": self.get_edge,
            "edge.update": self.update_edge,
            "edge.delete": self.delete_edge,
            "node.add": self.add_nodes,
            "node.list": self.list_nodes,
            "node.get": self.get_node,
            "node.update": self.update_node,
            "node.delete": self.delete_node,
            "episode.get": self.get_episode,
            "episode.list": self.list_episodes,
            "episode.delete": self.delete_episode,
            "observation.list": self.list_observations,
            "task.get": self.get_task,
        }

    # -- graphs --------------------------------------------------------------------------

    def create_graph(self, call: Call) -> Reply:
        fields = {name: call.body[name] for name in ("name", "description", "time_zone") if call.body.get(name)}
        return 201, dict(self.state.new_graph(type="standard", **fields))

    def get_graph(self, call: Call) -> Reply:
        return 200, self.state.graphs[self.state.graph_of(call)]

    def list_graphs(self, call: Call) -> Reply:
        wanted = call.body.get("search") or ""
        fields = ("name", "description", "graph_id")
        rows = [
            graph for graph in self.state.graphs.values()
            if not wanted or any(wanted in str(graph.get(field) or "") for field in fields)
        ]  # fmt: skip
        return 200, answer(sdk.GraphPage, page(call, rows, ("created_at", "name", "uuid")))

    def delete_graph(self, call: Call) -> Reply:
        graph = self.state.graph_of(call)
        task = self.state.task("graph.delete", lambda: self.state.drop_graph(graph))
        return 202, answer(sdk.GraphDeleteResult, {"task": task})

    def set_ontology(self, call: Call) -> Reply:
        graph = self.state.graph_of(call)
        types = call.body.get("edge_types") or []
        for one in types:
            parse(sdk.EdgeType, one, "edge_types")
        self.state.ontologies[graph] = types
        return 200, answer(sdk.Ontology, {"edge_types": types, "entity_types": [], "inherited": False})

    def graph_context(self, call: Call) -> Reply:
        graph = self.state.graph_of(call)
        found = ranked(self._edges(graph), str(call.body.get("query") or ""), "fact")
        lines = [f"- {edge['fact']}" for edge in found]
        text = "\n".join(["<FACTS>", *lines, "</FACTS>"])
        return 200, answer(sdk.GraphContextResponse, {"context": text, "truncated": False})

    # -- edges ---------------------------------------------------------------------------

    def add_edges(self, call: Call) -> Reply:
        graph = self.state.graph_of(call)
        sent = [parse(sdk.EdgeInput, one, "edges") for one in call.body.get("edges") or []]
        if not 1 <= len(sent) <= MAX_AT_ONCE:
            raise ContractError(400, "validation", f"1 to {MAX_AT_ONCE} edges are allowed", "edges")
        for at, one in enumerate(sent):
            self._check(graph, one, at)
        made = [self._made(graph, one) for one in sent]

        def effect() -> None:
            for nodes, edge, episode in made:
                self.state.nodes |= {node["uuid"]: node for node in nodes}
                self.state.episodes[episode["uuid"]] = episode
                self.state.edges[edge["uuid"]] = edge

        edges = [edge for _, edge, _ in made]
        task = self.state.task("graph.add_edges", effect, {"edges": [{"edge_uuid": one["uuid"]} for one in edges]})
        added = [
            {
                "uuid": one["uuid"], "fact": one["fact"], "fact_name": one["name"],
                "source_node_uuid": one["source_node_uuid"], "target_node_uuid": one["target_node_uuid"],
            }
            for one in edges
        ]  # fmt: skip
        return 202, answer(sdk.AddEdgesResult, {"edges": added, "task": task})

    def _check(self, graph: str, sent: Any, at: int) -> None:
        param = f"edges[{at}]"
        if not sent.fact.strip() or not sent.fact_name.isupper():
            raise ContractError(400, "validation", "a fact and a name in upper snake case", f"{param}.fact_name")
        for name in ("valid_at", "invalid_at", "expired_at"):
            checked_time(getattr(sent, name), f"{param}.{name}")
        for end in (sent.source_node, sent.target_node):
            if (end.uuid_ is None) == (end.name is None):
                raise ContractError(400, "validation", "a node has a uuid or a name", f"{param}.source_node")
            if end.uuid_ is not None:
                self.state.row(self.state.nodes, end.uuid_, "node", graph)
        types = {one["name"]: one.get("properties") or [] for one in self.state.ontologies.get(graph, [])}
        defined = {one["name"]: one["type"] for one in types.get(sent.fact_name, [])}
        for name, value in (sent.attributes or {}).items():
            kind = _TYPES.get(defined.get(name, ""))
            if kind is None or not isinstance(value, kind):
                raise ContractError(400, "validation", "not in the ontology", f"{param}.attributes.{name}")

    def _made(self, graph: str, sent: Any) -> tuple[list[Json], Json, Json]:
        nodes: list[Json] = []
        ends = []
        for end in (sent.source_node, sent.target_node):
            if end.uuid_ is None:
                nodes.append(self._node(graph, end.name, end.summary))
            ends.append(end.uuid_ or nodes[-1]["uuid"])
        episode = {
            "uuid": new_id(), "graph_uuid": graph, "content": sent.fact, "source": "fact_triple", "processed": True,
            "metadata": sent.metadata, "created_at": now(), "reference_time": now(),
        }  # fmt: skip
        user = self.state.graphs[graph].get("user_uuid")
        edge = {
            "uuid": new_id(), "graph_uuid": graph, "name": sent.fact_name, "fact": sent.fact, "scope": "entity",
            "attributes": sent.attributes, "source_node_uuid": ends[0], "target_node_uuid": ends[1],
            "created_at": now(), "valid_at": sent.valid_at, "invalid_at": sent.invalid_at,
            "expired_at": sent.expired_at, "episode_uuids": [episode["uuid"]], **({"user_uuid": user} if user else {}),
        }  # fmt: skip
        return nodes, answer(sdk.Edge, edge), answer(sdk.Episode, episode)

    def list_edges(self, call: Call) -> Reply:
        filters = parse(sdk.EdgeListFilters, call.body.get("filters") or {}, "filters")
        rows = [edge for edge in self._edges(self.state.graph_of(call)) if selected(edge, filters)]
        return 200, answer(sdk.EdgePage, page(call, rows, ("created_at", "uuid", "valid_at")))

    def search_edges(self, call: Call) -> Reply:
        filters = parse(sdk.EdgeSearchFilters, call.body.get("filters") or {}, "filters")
        rows = [edge for edge in self._edges(self.state.graph_of(call)) if selected(edge, filters)]
        found = ranked(rows, str(call.body.get("query") or ""), "fact")
        return 200, answer(sdk.EdgePage, page(call, found, ()))

    def get_edge(self, call: Call) -> Reply:
        return 200, self._edge(call)

    def update_edge(self, call: Call) -> Reply:
        edge = self._edge(call)
        if "fact" in call.body:
            edge["fact"] = call.body["fact"]
        merged = {**(edge["attributes"] or {}), **(call.body.get("attributes") or {})}
        edge["attributes"] = {key: value for key, value in merged.items() if value is not None}
        return 200, answer(sdk.Edge, dict(edge))

    def delete_edge(self, call: Call) -> Reply:
        uuid = self._edge(call)["uuid"]
        task = self.state.task("graph.edge.delete", lambda: self.state.edges.pop(uuid, None))
        return 202, answer(sdk.AsyncResult, {"task": task})

    def _edges(self, graph: str) -> list[Json]:
        return [edge for edge in self.state.edges.values() if edge["graph_uuid"] == graph]

    def _edge(self, call: Call) -> Json:
        return self.state.row(self.state.edges, call.parameters["edge_uuid"], "edge", self.state.graph_of(call))

    # -- nodes ---------------------------------------------------------------------------

    def add_nodes(self, call: Call) -> Reply:
        graph = self.state.graph_of(call)
        sent = [parse(sdk.NodeInput, one, "nodes") for one in call.body.get("nodes") or []]
        if not 1 <= len(sent) <= MAX_AT_ONCE:
            raise ContractError(400, "validation", f"1 to {MAX_AT_ONCE} nodes are allowed", "nodes")
        nodes = [self._node(graph, one.name, one.summary) for one in sent]
        rows = {node["uuid"]: node for node in nodes}
        task = self.state.task("graph.add_nodes", lambda: self.state.nodes.update(rows))
        added = [{"uuid": node["uuid"], "name": node["name"]} for node in nodes]
        return 202, answer(sdk.AddNodesResult, {"nodes": added, "task": task})

    def list_nodes(self, call: Call) -> Reply:
        rows = self._nodes(self.state.graph_of(call))
        return 200, answer(sdk.NodePage, page(call, rows, ("created_at", "uuid", "name")))

    def search_nodes(self, call: Call) -> Reply:
        found = ranked(self._nodes(self.state.graph_of(call)), str(call.body.get("query") or ""), "name")
        return 200, answer(sdk.NodePage, page(call, found, ()))

    def get_node(self, call: Call) -> Reply:
        return 200, self._one_node(call)

    def update_node(self, call: Call) -> Reply:
        node = self._one_node(call)
        node |= {name: call.body[name] for name in ("name", "summary") if name in call.body}
        return 200, answer(sdk.Node, dict(node))

    def delete_node(self, call: Call) -> Reply:
        uuid = self._one_node(call)["uuid"]

        def effect() -> None:
            self.state.nodes.pop(uuid, None)
            for edge in list(self.state.edges.values()):
                if uuid in (edge["source_node_uuid"], edge["target_node_uuid"]):
                    del self.state.edges[edge["uuid"]]

        return 202, answer(sdk.AsyncResult, {"task": self.state.task("graph.node.delete", effect)})

    def _nodes(self, graph: str) -> list[Json]:
        return [node for node in self.state.nodes.values() if node["graph_uuid"] == graph]

    def _one_node(self, call: Call) -> Json:
        return self.state.row(self.state.nodes, call.parameters["node_uuid"], "node", self.state.graph_of(call))

    def _node(self, graph: str, name: str, summary: str | None) -> Json:
        node = {
            "uuid": new_id(), "graph_uuid": graph, "name": name, "summary": summary or "", "labels": ["Entity"],
            "created_at": now(), "episode_uuids": [], "episode_uuids_truncated": False,
        }  # fmt: skip
        return answer(sdk.Node, node)

    # -- episodes, observations, tasks -----------------------------------------------------

    def get_episode(self, call: Call) -> Reply:
        return 200, self._episode(call)

    def list_episodes(self, call: Call) -> Reply:
        graph = self.state.graph_of(call)
        rows = [row for row in self.state.episodes.values() if row["graph_uuid"] == graph]
        filters = parse(sdk.EpisodeListFilters, call.body.get("filters") or {}, "filters")
        ignored = filters.model_fields_set - {"mentioned_node_uuids"}
        if ignored:
            raise ContractError(501, "not_modelled", f"filters {sorted(ignored)}")
        if filters.mentioned_node_uuids is not None:  # an episode's own uuid matches it
            if len(filters.mentioned_node_uuids) > MAX_MENTIONED:
                raise ContractError(400, "validation", f"at most {MAX_MENTIONED} are allowed", "filters")
            rows = [row for row in rows if row["uuid"] in filters.mentioned_node_uuids]
        return 200, answer(sdk.EpisodePage, page(call, rows, ("created_at", "uuid")))

    def delete_episode(self, call: Call) -> Reply:
        uuid = self._episode(call)["uuid"]

        def effect() -> None:
            self.state.episodes.pop(uuid, None)
            for edge in list(self.state.edges.values()):
                if edge["episode_uuids"] == [uuid]:  # nothing else supports it
                    del self.state.edges[edge["uuid"]]

        return 202, answer(sdk.AsyncResult, {"task": self.state.task("graph.episode.delete", effect)})

    def list_observations(self, call: Call) -> Reply:
        graph = self.state.graph_of(call)
        rows = [row for row in self.state.observations.values() if row["graph_uuid"] == graph]
        return 200, answer(sdk.ObservationPage, page(call, rows, ("created_at", "uuid")))

    def get_task(self, call: Call) -> Reply:
        return 200, answer(sdk.Task, self.state.row(self.state.tasks, call.parameters["task_uuid"], "task"))

    def _episode(self, call: Call) -> Json:
        graph = self.state.graph_of(call)
        return self.state.row(self.state.episodes, call.parameters["episode_uuid"], "episode", graph)
