"""A team's policy is stricter than its tenant's, never looser: when a grant is made and when it is read."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from collab_layer import errors
from collab_layer.config import Settings
from collab_layer.sync import CollabLayer
from collab_layer.types.scope import Sharing

from .conftest import tickets

FIX = "Fixed the Go modules conflict by pinning golang.org/x/net to v0.23 and running go mod tidy"
ASKED = "go modules conflict"


@pytest.fixture
def team(layer):
    """Hanna is in HR and has something to say."""
    layer.observe("user:hanna", "team:hr", "joined")
    layer.observe("user:hanna", text=FIX, links=["topic:go-modules"])
    layer.drain()
    return "team:hr"


def _reads(layer, reader="user:ben", purpose=None):
    view = layer if purpose is None else layer.as_(reader, purpose=purpose)
    return bool(view.context(reader, ASKED).facets)


# -- never looser ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "tenants", "teams"),
    [
        ("min_contributors", 5, 4),
        ("level", "facets", "records"),
        ("purposes", ["support"], ["support", "sales"]),
        ("longest_days", 30, 31),
    ],
)
def test_a_team_may_not_loosen_its_tenant(layer, team, part, tenants, teams):
    layer.set_policy(**{part: tenants})
    with pytest.raises(errors.PolicyError) as refused:
        layer.set_policy(team, **{part: teams})
    assert (refused.value.team, refused.value.part) == ("", part)
    assert [one.team for one in layer.policies()] == [None]
    assert getattr(layer.set_policy(team, **{part: tenants}), part) is not None


def test_nobody_goes_below_the_minimum_that_the_tenant_was_opened_with(layer, team):
    for whose in (None, team):
        with pytest.raises(errors.PolicyError):
            layer.set_policy(whose, min_contributors=2)


def test_a_tenant_that_turns_stricter_later_makes_its_teams_stricter(layer, team):
    layer.set_policy(team, level="records")
    layer.grant("user:hanna", "user:ben", "records")
    layer.drain()
    assert _reads(layer)
    layer.set_policy(level="facets")
    assert not _reads(layer)
    with pytest.raises(errors.PolicyError):
        layer.grant("user:hanna", team, "records")


# -- when a grant is made ------------------------------------------------------------------


def test_a_grant_by_a_member_or_to_the_team_may_be_no_more_than_allowed(layer, team, clock):
    layer.set_policy(team, level="facets", purposes=["hr"], longest_days=30)
    soon = clock() + timedelta(days=20)
    for owner, to in (("user:hanna", "user:ben"), ("user:ben", team)):
        for level, purpose, until in (
            ("records", "hr", soon),
            ("facets", None, soon),
            ("facets", "sales", soon),
            ("facets", "hr", None),
            ("facets", "hr", clock() + timedelta(days=31)),
        ):
            with pytest.raises(errors.PolicyError) as refused:
                layer.grant(owner, to, level, purpose=purpose, until=until)
            assert refused.value.team == team
        layer.grant(owner, to, "facets", purpose="hr", until=soon)
    layer.grant("user:ben", "user:carl", "records")
    layer.opt_out("user:hanna")


def test_a_notice_is_held_to_the_same(layer, team, clock):
    layer.set_policy(team, purposes=["hr"], longest_days=30)
    with pytest.raises(errors.PolicyError):
        layer.publish("user:hanna", "Go modules conflict: ask HR", "user:ben")
    layer.publish(
        "user:hanna", "Go modules conflict: ask HR", "user:ben", purpose="hr", until=clock() + timedelta(days=9)
    )
    assert not _reads(layer)
    assert _reads(layer, purpose="hr")


# -- when it is read -----------------------------------------------------------------------


def test_a_grant_made_before_gives_no_more_than_the_policy_of_today_caches_included(layer, team):
    layer.grant("user:hanna", "user:ben", "records")
    layer.drain()
    for _ in range(2):  # the first read makes the reader known
        assert _reads(layer)
    assert layer.context("user:ben", ASKED).cached
    layer.set_policy(team, level="facets")
    assert not _reads(layer)
    layer.set_policy(team)
    layer.drain()
    assert _reads(layer)


def test_a_policy_of_purposes_closes_what_was_granted_for_any(layer, team):
    layer.grant("user:hanna", "user:ben", "records")
    layer.set_policy(team, purposes=["hr"])
    layer.drain()
    assert not _reads(layer)
    assert not _reads(layer, purpose="sales")
    assert _reads(layer, purpose="hr")


def test_a_grant_ends_as_many_days_after_it_was_made_as_the_policy_says(layer, team, clock):
    layer.grant("user:hanna", "user:ben", "records")
    layer.publish("user:hanna", "Go modules conflict: ask HR", "user:carl")
    layer.set_policy(team, longest_days=30)
    layer.drain()
    clock.advance(hours=29 * 24)
    assert _reads(layer)
    assert _reads(layer, "user:carl")
    clock.advance(hours=2 * 24)
    assert not _reads(layer)
    assert not _reads(layer, "user:carl")


def test_what_the_tenant_shares_of_everybody_stops_at_the_team(database_url, clock):
    settings = Settings(worker=False)
    with CollabLayer.open(
        database_url, sharing=Sharing.within_tenant("records"), settings=settings, clock=clock
    ) as layer:
        layer.observe("user:hanna", "team:hr", "joined")
        layer.observe("user:hanna", text=FIX, links=["topic:go-modules"])
        layer.observe("user:dora", text=FIX.replace("v0.23", "v0.24"), links=["topic:go-modules"])
        layer.drain()
        assert "v0.23" in layer.context("user:ben", ASKED).model_dump_json()
        layer.set_policy("team:hr", level="facets")
        told = layer.context("user:ben", ASKED).model_dump_json()
        assert "v0.23" not in told
        assert "user:hanna" not in told
        assert "v0.24" in told


def test_who_leaves_the_team_is_no_longer_held_to_its_policy(layer, team):
    layer.set_policy(team, level="facets")
    layer.observe("user:hanna", team, "left")
    layer.drain()
    layer.grant("user:hanna", "user:ben", "records")
    layer.drain()
    assert _reads(layer)


@pytest.mark.parametrize("whose", ["readers", "owners"])
def test_a_teams_crowd_must_be_as_large_as_it_says(layer, whose):
    tickets(layer, 4)
    for n in range(4):
        layer.grant(f"agent:s{n}", "agent:new", "facets")
    layer.drain()
    member = "agent:new" if whose == "readers" else "agent:s0"
    layer.observe(member, "team:quiet", "joined")
    layer.drain()
    assert layer.context("agent:new", "SSO login loop").facets
    layer.set_policy("team:quiet", min_contributors=5)
    assert layer.context("agent:new", "SSO login loop").facets == ()


# -- who and how ---------------------------------------------------------------------------


def test_policies_are_the_operators(layer, team):
    for verb in (lambda view: view.set_policy(team, level="facets"), lambda view: view.policies()):
        with pytest.raises(errors.NotPermittedError):
            verb(layer.as_("user:hanna"))


@pytest.mark.parametrize(
    "limits",
    [
        {"min_contributors": 1},
        {"level": "everything"},
        {"purposes": "hr"},
        {"purposes": [""]},
        {"longest_days": 0},
        {"longest_days": float("nan")},
    ],
)
def test_unusable_limits_are_refused(layer, team, limits):
    with pytest.raises(errors.InputError):
        layer.set_policy(team, **limits)
    assert layer.policies() == []


def test_a_change_is_told_by_audit_and_stays_in_its_tenant(layer, team):
    layer.set_policy(team, level="facets")
    assert layer.for_tenant("other").policies() == []
    with layer._layer._core.tools.store.database.read() as connection:
        rows = connection.execute(text("SELECT action, subject FROM audit WHERE action = 'limits'")).all()
    assert [tuple(row) for row in rows] == [("limits", team)]


def test_forgetting_a_team_forgets_its_policy(layer, team):
    layer.set_policy(team, level="facets")
    layer.forget(team)
    assert layer.policies() == []


def test_who_joins_a_team_is_held_to_its_policy_at_the_next_read(layer):
    layer.observe("user:hanna", text=FIX, links=["topic:go-modules"])
    layer.set_policy("team:hr", level="facets")
    layer.grant("user:hanna", "user:ben", "records")
    layer.drain()
    for _ in range(3):
        assert _reads(layer)
    layer.observe("user:hanna", "team:hr", "joined")
    assert not _reads(layer)
