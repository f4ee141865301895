"""The OpenAPI document is kept: schemathesis asks a running service what fits it and what does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.openapi import from_url

from collab_layer import CollabLayer
from collab_layer.config import Settings

from .conftest import Running

VERBS = ("context", "observe", "rank", "neighbors", "answer", "explain")
VERBS += ("publish", "changes", "injections", "receipt", "receipts", "grants")
HEALTH = ("live", "ready")
BOUNDED = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
TIMED = {"publish", "changes"}
"""No schema can tell that one time must be later than another, or than now."""
load_all_checks()
UNASKED = {
    # Each of these sends requests of its own beside the one under test; refusals have tests of their own.
    "ignored_auth",
    "use_after_free",
    "ensure_resource_availability",
}
ASKED = [check for check in CHECKS.get_all() if check.__name__ not in UNASKED]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    url = f"sqlite:///{tmp_path_factory.mktemp('contract') / 'collab.db'}"
    with CollabLayer.open(url, settings=Settings(worker=False)) as layer:
        for n in range(4):
            layer.observe(f"agent:a{n}", "item:dune", verb="liked", text=f"Dune has worms, says {n}", outcome="read it")
            layer.grant(f"agent:a{n}", "tenant", level="records")
        layer.observe("agent:b", "item:dune", verb="liked")
        layer.drain()
    running = Running(url, "--no-worker", COLLAB_SERVE_RATE="100000/second", COLLAB_SERVE_MAX_BODY_BYTES="8388608")
    yield running
    status, told = running.stop()
    assert status == 0
    assert "Traceback" not in told


@pytest.fixture(scope="module")
def token(service: Running) -> str:
    return service.issue("agent:b").text


@pytest.fixture(scope="module")
def schema(service: Running) -> schemathesis.BaseSchema:
    return from_url(f"{service.url}/v1/openapi.json")


def test_the_document_is_openapi_3_1_and_names_every_operation(schema) -> None:
    raw = schema.raw_schema
    assert raw["openapi"].startswith("3.1")
    paths = {f"/v1/{verb}" for verb in VERBS} | {f"/v1/health/{name}" for name in HEALTH}
    assert set(raw["paths"]) == paths
    for verb in VERBS:
        operation = raw["paths"][f"/v1/{verb}"]["post"]
        assert operation["security"] == [{"token": []}]
        assert operation["description"]
        for status in ("401", "403", "404", "413", "422", "429", "503"):
            assert list(operation["responses"][status]["content"]) == ["application/problem+json"]
    assert "HTTPValidationError" not in raw["components"]["schemas"]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
@pytest.mark.parametrize("verb", VERBS)
def test_every_answer_is_one_that_the_document_names(schema, token, verb, mode) -> None:
    operation = schema[f"/v1/{verb}"]["POST"]
    asked = requests.Session()
    asked.trust_env = False
    statuses: set[int] = set()

    @BOUNDED
    @given(data=st.data())
    def each(data) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        headers = {"Authorization": f"Bearer {token}"}
        response = case.call(session=asked, headers=headers)
        statuses.add(response.status_code)
        assert response.status_code < 500, response.text
        # A body over the limit is refused before it is read; schemathesis does not take 413 for a refusal.
        spared = {"negative_data_rejection"} if response.status_code == 413 else set[str]()
        if verb in TIMED and response.status_code == 422:
            spared.add("positive_data_acceptance")
        checks = [check for check in ASKED if check.__name__ not in spared]
        case.validate_response(response, checks=checks, headers=headers)

    with asked:
        each()
    if mode is GenerationMode.NEGATIVE:
        assert 422 in statuses, statuses
    else:
        assert statuses <= {200, 403, 404, *([422] if verb in TIMED else [])}, statuses


@pytest.mark.parametrize("name", HEALTH)
def test_health_keeps_to_the_document(schema, name) -> None:
    case = schema[f"/v1/health/{name}"]["GET"].Case()
    case.call_and_validate(checks=ASKED)
