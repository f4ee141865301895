"""What a context says reaches the stores that were asked to take it, and leaves them again."""

from datetime import timedelta

import pytest

from collab_layer.errors import BackendDownError, NotPermittedError
from collab_layer.testing.memory import InMemoryBackend

from .conftest import tickets


@pytest.fixture
def store(layer):
    store = InMemoryBackend()
    layer.attach(store, deliver=True)
    return store


def team(layer):
    tickets(layer, 4)
    layer.observe("agent:new", text="Looking after SSO login", links=["topic:sso-login"])
    grants = [layer.grant(f"agent:s{n}", "agent:new", "records") for n in range(4)]
    layer.drain()
    return grants


def test_the_facets_of_an_entity_are_delivered_once(layer, store):
    team(layer)
    said = {facet.text for facet in layer.context("agent:new").facets}
    assert said
    assert layer.deliver("agent:new") > 0
    assert set(store.texts()) == said
    assert layer.deliver("agent:new") == 0
    assert store.calls["write"] == 1


def test_an_entity_without_a_grant_is_offered_nothing(layer, store):
    tickets(layer, 4)
    layer.observe("agent:new", text="Looking after SSO login", links=["topic:sso-login"])
    layer.drain()
    assert layer.deliver("agent:new") == 0
    assert layer.deliver("agent:never-heard-of") == 0
    assert store.texts() == []


def test_a_revoked_grant_takes_the_delivered_facets_back(layer, store):
    grants = team(layer)
    layer.deliver("agent:new")
    for grant in grants:
        layer.revoke(grant.id)
    layer.deliver("agent:new")
    assert store.texts() == []


FREEZE = "No deployments on Friday"


@pytest.mark.parametrize("end", ["revoke", "forget", "forget_owner", "run_out", "unsaid"])
def test_a_notice_reaches_each_readers_store_and_leaves_it_with_the_notice(layer, store, clock, end):
    for who in ("agent:ann", "agent:ben", "agent:cat"):
        layer.observe(who, "tool:ci", verb="used")
    notice = layer.publish("agent:ann", FREEZE, "tenant", until=clock() + timedelta(days=1))
    layer.drain()
    for reader in ("agent:ben", "agent:cat"):
        layer.deliver(reader)
    told = {str(update.owner): update for update in store.derived()}
    assert {name: update.text for name, update in told.items()} == {"agent:ben": FREEZE, "agent:cat": FREEZE}
    assert [str(source.principal) for source in told["agent:ben"].sources] == ["agent:ann"]
    assert layer.as_("agent:ben").explain(told["agent:ben"].id).id == notice.id
    assert [facet.text for facet in layer.context("agent:ben").facets] == [FREEZE], "once, not as the copy too"
    assert layer.deliver("agent:ben") == 0
    if end == "run_out":
        clock.advance(days=2)
    elif end == "unsaid":
        clock.advance(hours=1)
        for text in ("Deployments are open again", "The freeze is over"):  # of one owner no more are said
            layer.publish("agent:ann", text, "tenant")
        for reader in ("agent:ben", "agent:cat"):
            layer.deliver(reader)
    elif end == "revoke":
        layer.revoke(notice.id)
    else:
        layer.forget("agent:ann" if end == "forget_owner" else notice.id)
    layer.drain()
    assert FREEZE not in store.texts()


def test_a_notice_for_one_reaches_nobody_elses_store(layer, store):
    for who in ("agent:ann", "agent:ben", "agent:cat"):
        layer.observe(who, "tool:ci", verb="used")
    layer.publish("agent:ann", FREEZE, "agent:ben")
    layer.publish("agent:ann", "Only for support", "tenant", purpose="support")
    layer.drain()
    for reader in ("agent:ann", "agent:ben", "agent:cat"):
        layer.deliver(reader)
    assert [(str(update.owner), update.text) for update in store.derived()] == [("agent:ben", FREEZE)]


def test_a_facet_that_is_said_no_more_is_taken_back(layer, store):
    team(layer)
    layer.deliver("agent:new")
    before = set(store.texts())
    layer.observe("agent:s0", text="Okta login loop again, solved by deleting the stale session", links=["topic:okta"])
    layer.drain()
    layer.deliver("agent:new")
    said = {facet.text for facet in layer.context("agent:new").facets}
    assert said != before
    assert said <= set(store.texts())
    updates = {facet.text for facet in layer.context("agent:new").facets if facet.kind == "update"}
    assert set(store.texts()) - said <= updates


def test_forgetting_a_source_takes_delivered_facets_out_of_the_store(layer, store):
    team(layer)
    layer.deliver("agent:new")
    assert store.texts()
    for n in range(4):
        layer.forget(f"agent:s{n}")
    layer.drain()
    assert store.texts() == []


def test_a_store_that_lost_everything_gets_it_again_when_asked(layer, store):
    team(layer)
    layer.deliver("agent:new")
    said = set(store.texts())
    other = InMemoryBackend()
    layer.attach(other, deliver=True)
    assert layer.deliver("agent:new") == 0
    layer.deliver("agent:new", again=True)
    assert set(other.texts()) == said


def test_a_store_that_is_down_is_told_and_gets_it_later(layer, store):
    team(layer)
    store.down = True
    with pytest.raises(BackendDownError):
        layer.deliver("agent:new")
    store.down = False
    layer.drain()
    assert store.texts()


def test_only_the_operator_delivers(layer):
    with pytest.raises(NotPermittedError):
        layer.as_("agent:new").deliver("agent:new")
