"""What the SDK raises, as errors of ours."""

import asyncio
import pickle

import httpx
import pytest
from collab_layer_letta import LettaBackend, refusals
from collab_layer_letta.testing import transport
from letta_client import Letta

from collab_layer.errors import BackendDownError, BackendError, BackendTimeoutError, InputError
from collab_layer.types.entity import Entity

ALICE = Entity("user", "alice")
BY_STATUS = {
    400: refusals.LettaRejectedError,
    401: refusals.LettaAuthError,
    403: refusals.LettaAuthError,
    404: refusals.LettaGoneError,
    408: BackendTimeoutError,
    409: refusals.LettaConflictError,
    422: refusals.LettaRejectedError,
    429: refusals.LettaBusyError,
    500: BackendDownError,
    503: BackendDownError,
}


@pytest.fixture
def quick(fake):
    """A client that does not try again."""
    with httpx.Client(transport=transport(fake)) as inner:
        yield Letta(base_url="http://letta.test", api_key="key", http_client=inner, max_retries=0)


@pytest.mark.parametrize(("status", "kind"), BY_STATUS.items())
def test_each_status_is_an_error_of_its_own(fake, quick, status, kind):
    backend = LettaBackend(quick)
    fake.failing = [status]
    with pytest.raises(BackendError) as caught:
        asyncio.run(backend.records(ALICE))
    assert type(caught.value) is kind
    assert caught.value.store == "letta"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (kind, str(caught.value))


def test_only_what_may_pass_by_itself_is_retried():
    retried = {kind.__name__ for kind in BY_STATUS.values() if kind.retryable}
    assert retried == {"BackendTimeoutError", "LettaConflictError", "LettaBusyError", "BackendDownError"}


@pytest.mark.parametrize(("field", "kind"), [("down", BackendDownError), ("slow", BackendTimeoutError)])
def test_no_connection_and_no_answer_are_told_apart(fake, quick, field, kind):
    setattr(fake, field, True)
    with pytest.raises(kind):
        asyncio.run(LettaBackend(quick).records(ALICE))


def test_an_answer_that_is_no_json_is_an_outage():
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, text="<html>"))) as inner:
        client = Letta(base_url="http://letta.test", api_key="key", http_client=inner, max_retries=0)
        backend = LettaBackend(client)
        with pytest.raises(BackendDownError):
            asyncio.run(backend.records(ALICE))


def test_how_long_to_wait_is_told():
    answer = httpx.Response(429, headers={"retry-after": "7"}, json={"detail": "slow down"})
    with httpx.Client(transport=httpx.MockTransport(lambda _: answer)) as inner:
        client = Letta(base_url="http://letta.test", api_key="key", http_client=inner, max_retries=0)
        with pytest.raises(refusals.LettaBusyError) as caught:
            asyncio.run(LettaBackend(client).records(ALICE))
    assert caught.value.after_s == 7.0


def test_a_wrong_key_is_refused_and_told_by_health(fake):
    fake.key = "right"
    with httpx.Client(transport=transport(fake)) as inner:
        backend = LettaBackend(Letta(base_url="http://letta.test", api_key="wrong", http_client=inner))
        with pytest.raises(refusals.LettaAuthError):
            asyncio.run(backend.owners())
        told = asyncio.run(backend.health())
    assert (told.condition, "key" in (told.detail or "")) == ("down", True)


def test_a_conflict_is_not_sent_again_by_the_client(fake, client):
    backend = LettaBackend(client, write=True)  # the SDK's default is to try twice more
    block = fake.make_block({"label": "x", "value": "y"})["id"]
    fake.conflicts = 1
    with pytest.raises(refusals.LettaConflictError):
        asyncio.run(backend.api.patch(f"/v1/blocks/{block}", {"value": "z"}))
    assert fake.blocks[block]["value"] == "y"


def test_no_error_carries_the_text_of_a_memory(fake, quick):
    fake.failing = [422]
    with pytest.raises(BackendError) as caught:
        asyncio.run(LettaBackend(quick).api.post("/v1/blocks/", {"label": "x", "value": "secret words"}))
    assert "secret" not in str(caught.value)


def test_another_kind_of_client_is_refused_by_name():
    with pytest.raises(InputError, match="dict"):
        LettaBackend({})
