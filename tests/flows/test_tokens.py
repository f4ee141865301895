"""Tokens: whom they let act, as whom, and when they end. On both databases."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import timedelta

import pytest
from sqlalchemy import create_engine
from sqlalchemy import text as sql

from collab_layer.config import Settings
from collab_layer.errors import InputError, NotPermittedError, TokenRefusedError, UnknownIdError
from collab_layer.graph.engine import parse_url
from collab_layer.sync import CollabLayer
from collab_layer.types.access import Bearer

from .conftest import tickets


def rows(url, query):
    engine = create_engine(parse_url(url))
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(sql(query))]
    engine.dispose()
    return found


def refused(layer, text):
    with pytest.raises(TokenRefusedError) as caught:
        layer.open_with(text)
    return str(caught.value)


def test_a_token_opens_the_view_of_its_entity_and_purpose(layer):
    token = layer.issue_token("agent:b", purpose="support")
    view = layer.open_with(token.text)
    assert (view.tenant, str(view.principal)) == ("acme", "agent:b")
    tickets(layer)
    for n in range(9):
        layer.grant(f"agent:s{n}", "agent:b", "records", purpose="support")
    layer.drain()
    assert view.context("agent:b", "SSO login loop").facets
    other = layer.open_with(layer.issue_token("agent:b").text)
    assert other.context("agent:b", "SSO login loop").facets == ()


def test_a_bearer_speaks_only_for_its_entity(layer):
    view = layer.open_with(layer.issue_token("agent:b").text)
    assert len(view.observe("agent:b", text="the loop came back")) == 1
    with pytest.raises(NotPermittedError):
        view.observe("agent:s0", text="I said this")


def test_a_bearer_reads_as_another_only_with_that_owners_records(layer):
    tickets(layer)
    view = layer.open_with(layer.issue_token("agent:b").text)
    with pytest.raises(NotPermittedError):
        view.context("agent:s0", "SSO login loop")
    layer.grant("agent:s0", "agent:b", "facets")
    with pytest.raises(NotPermittedError):
        view.context("agent:s0", "SSO login loop")
    layer.grant("agent:s0", "agent:b", "records")
    layer.drain()
    assert view.context("agent:s0", "SSO login loop").entity.id == "s0"


@pytest.mark.parametrize(
    "call",
    [
        lambda view: view.issue_token("agent:b"),
        lambda view: view.tokens(),
        lambda view: view.revoke_token("t0"),
        lambda view: view.refit(),
        lambda view: view.grant("agent:a", "agent:b"),
    ],
    ids=["issue", "list", "revoke", "refit", "grant for another"],
)
def test_a_bearer_is_never_the_operator(layer, call):
    view = layer.open_with(layer.issue_token("agent:b").text)
    with pytest.raises(NotPermittedError):
        call(view)


def test_a_revoked_token_is_refused_at_its_very_next_use(layer):
    token = layer.issue_token("agent:b")
    layer.open_with(token.text)
    layer.revoke_token(token.id)
    refused(layer, token.text)
    assert layer.tokens()[0].revoked is not None
    with pytest.raises(UnknownIdError):
        layer.revoke_token(token.id)


def test_a_revocation_holds_at_once_in_another_process(sqlite_url):
    with CollabLayer.open(sqlite_url, settings=Settings(worker=False)) as layer:
        token = layer.issue_token("agent:b")
        layer.open_with(token.text)
        call = "from collab_layer.surface.cli.main import run; run()"
        done = subprocess.run(
            [sys.executable, "-c", call, "--url", sqlite_url, "token", "revoke", token.id],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        refused(layer, token.text)


def test_a_token_ends_by_itself(layer, clock):
    short = layer.issue_token("agent:b", until=clock() + timedelta(hours=1))
    usual = layer.issue_token("agent:b")
    clock.advance(hours=1)
    refused(layer, short.text)
    clock.advance(hours=24 * 89)
    layer.open_with(usual.text)
    clock.advance(hours=24)
    refused(layer, usual.text)


def test_every_wrong_token_is_refused_in_the_same_words(layer, clock):
    token = layer.issue_token("agent:b")
    revoked = layer.issue_token("agent:b")
    layer.revoke_token(revoked.id)
    ended = layer.issue_token("agent:b", until=clock() + timedelta(seconds=1))
    clock.advance(seconds=2)
    other_tenant = Bearer("other", *Bearer.read(token.text)[1:]).text()
    flipped = token.text[:-2] + ("AA" if token.text[-2:] != "AA" else "BA")
    unknown = Bearer.new("acme").text()
    wrong = [revoked.text, ended.text, other_tenant, flipped, unknown, "", "collab_", "x" * 5_000, "тайна", token.id]
    assert len({refused(layer, text) for text in wrong}) == 1
    layer.open_with(token.text)


def test_one_secret_does_not_open_another_id(layer):
    mine, theirs = (Bearer.read(layer.issue_token(f"agent:{name}").text) for name in "ab")
    refused(layer, Bearer("acme", theirs.id, mine.secret).text())


def test_only_a_digest_is_kept(layer, database_url):
    token = layer.issue_token("agent:b")
    secret = Bearer.read(token.text).secret
    [row] = rows(database_url, "SELECT * FROM tokens")
    assert token.id in row
    assert hashlib.sha256(secret.encode()).hexdigest() in row
    assert not any(secret in str(value) for value in row)
    assert secret not in repr(token)
    assert secret not in str(layer.tokens())
    assert secret not in repr(Bearer.read(token.text))


def test_tokens_of_one_tenant_are_not_listed_or_revoked_from_another(layer):
    token = layer.issue_token("agent:b")
    other = layer.for_tenant("other")
    assert other.tokens() == []
    with pytest.raises(UnknownIdError):
        other.revoke_token(token.id)
    assert [one.id for one in layer.tokens()] == [token.id]
    assert layer.open_with(other.issue_token("agent:b").text).tenant == "other"


def test_tokens_are_listed_newest_first(layer, clock):
    first = layer.issue_token("agent:a")
    clock.advance(seconds=1)
    second = layer.issue_token("agent:b", purpose="поддержка")
    assert [one.id for one in layer.tokens()] == [second.id, first.id]
    assert layer.tokens()[0].purpose == "поддержка"


@pytest.mark.parametrize("entity", ["kind:agent", "peer:a1b2", "agent", "agent:", "Agent:b"])
def test_a_token_needs_somebody_who_acts(layer, entity):
    with pytest.raises(InputError):
        layer.issue_token(entity)


def test_a_token_that_would_have_ended_already_is_not_issued(layer, clock):
    with pytest.raises(InputError):
        layer.issue_token("agent:b", until=clock())
    assert layer.tokens() == []


def test_issuing_and_revoking_are_noted(layer, database_url):
    token = layer.issue_token("agent:b")
    layer.revoke_token(token.id)
    noted = rows(database_url, "SELECT action, subject FROM audit ORDER BY id")
    assert noted == [("issue_token", token.id), ("revoke_token", token.id)]


def test_a_new_agent_with_a_token_knows_nothing_rather_than_being_unknown(layer):
    view = layer.open_with(layer.issue_token("agent:new").text)
    assert view.context("agent:new").facets == ()


def test_forgetting_an_entity_ends_its_tokens_and_keeps_none_of_their_rows(layer, database_url):
    token = layer.issue_token("agent:b")
    layer.observe("agent:b", text="The SSO loop again")
    assert layer.forget("agent:b").removed["tokens"] == 1
    with pytest.raises(TokenRefusedError):
        layer.open_with(token.text)
    assert rows(database_url, "SELECT principal FROM tokens") == []
