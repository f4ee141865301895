"""The contract server itself, through the real SDK: what it refuses, and that it follows the SDK."""

import json
import uuid
from importlib import metadata
from pathlib import Path

import pytest
from zep_cloud import AddMessage, EdgeInput, EdgeNodeRef
from zep_cloud.core.api_error import ApiError
from zep_cloud.errors import BadRequestError, ConflictError, NotFoundError
from zep_cloud.types import EdgeListFilters
from zep_contract import surface
from zep_contract.surface import derive_routes

RECORDED = Path(__file__).parent / "zep_contract" / "surface-4.0.1.json"
GONE = str(uuid.UUID(int=1))


def edge(text, **fields):
    ends = {"source_node": EdgeNodeRef(name="Ann"), "target_node": EdgeNodeRef(name="SQLite")}
    return EdgeInput(**{"fact": text, "fact_name": "USES", **ends, **fields})


def test_the_sdk_calls_what_was_recorded(server):
    """Exactly, at the version that was recorded; at any other at least what this package and its server use."""
    recorded, now = json.loads(RECORDED.read_text(encoding="utf-8")), surface()
    if metadata.version("zep-cloud") == "4.0.1":
        assert now == recorded
    used = {f"{route.method} {route.path}" for route in derive_routes() if route.operation in server.operations}
    assert len(used) == len(server.operations)
    for route in used:
        assert set(recorded[route]) <= set(now[route]), route


def test_another_key_route_or_id_is_refused(server, zep):
    with pytest.raises(NotFoundError):
        zep.graph.edge.get(GONE, GONE)
    with pytest.raises(BadRequestError) as caught:
        zep.thread.get("my-thread")
    assert caught.value.body.error.code == "invalid_identifier"
    with pytest.raises(ApiError) as caught:
        zep.graph.get_instructions(GONE)
    assert caught.value.status_code == 501


def test_unknown_fields_are_refused_at_any_depth(zep):
    graph = zep.graph.create(name="x").uuid_
    reference = EdgeNodeRef.model_validate({"name": "Ann", "colour": "red"})
    with pytest.raises(BadRequestError, match="colour"):
        zep.graph.edge.add(graph, edges=[edge("x", source_node=reference)])
    extra = {"invalid_at": "2026-01-01T00:00:00Z"}
    made = zep.graph.edge.add(graph, edges=[edge("x")]).edges[0].uuid_
    with pytest.raises(BadRequestError, match="invalid_at"):
        zep.graph.edge.update(graph, made, request_options={"additional_body_parameters": extra})
    with pytest.raises(BadRequestError):
        zep.graph.edge.list(graph, page_size=101)
    with pytest.raises(ApiError, match="not_modelled"):
        zep.graph.edge.list(graph, filters=EdgeListFilters(node_labels=["Person"]))


@pytest.mark.parametrize("fields", [{"valid_at": "2026-05-01T00:00:00"}, {"attributes": {"a": 1}}, {"fact": " "}])
def test_what_the_service_documents_as_wrong_is_refused(server, zep, fields):
    graph = zep.graph.create(name="x").uuid_
    with pytest.raises(BadRequestError):
        zep.graph.edge.add(graph, edges=[edge(**{"text": "x", **fields}) if "fact" not in fields else edge(" ")])
    assert server.state.census()["edges"] == server.state.census()["nodes"] == 0


def test_a_user_comes_with_a_graph_and_goes_with_everything(server, zep):
    user = zep.user.create(user_id="ann")
    with pytest.raises(ConflictError):
        zep.user.create(user_id="ann")
    thread = zep.thread.create(user_uuid=user.uuid_)
    zep.thread.add_messages(thread.uuid_, messages=[AddMessage(role="user", content="Uses SQLite")])
    zep.graph.edge.add(user.uuid_, edges=[edge("Uses SQLite")])
    assert "Uses SQLite" in zep.thread.get_context(thread.uuid_).context
    assert [one.user_uuid for one in zep.graph.search_edges(user.uuid_, query="SQLite")] == [user.uuid_]
    zep.user.delete(user.uuid_)
    assert set(server.state.census().values()) == {0}


def test_the_same_key_answers_the_same_until_it_is_forgotten(server, zep):
    graph = zep.graph.create(name="x").uuid_
    first = zep.graph.edge.add(graph, edges=[edge("x")], idempotency_key="k")
    assert zep.graph.edge.add(graph, edges=[edge("x")], idempotency_key="k") == first
    server.state.forget_replies()
    assert zep.graph.edge.add(graph, edges=[edge("x")], idempotency_key="k") != first


def test_a_write_is_seen_when_its_task_has_ended(server, zep):
    graph = zep.graph.create(name="x").uuid_
    server.state.lag_s = 0.2
    task = zep.graph.edge.add(graph, edges=[edge("x")]).task
    assert zep.task.get(task.uuid_).status == "pending"
    assert zep.graph.edge.list(graph).items == []
    server.state.lag_s = 0.0
    while zep.task.get(task.uuid_).status == "pending":
        pass
    assert len(zep.graph.edge.list(graph).items) == 1
