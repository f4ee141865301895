import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.governance.grants import Audience, GrantRow, Reader, audience, read_by_others
from collab_layer.types.scope import EVERYONE, Level
from collab_layer.types.time import FOREVER

BOB = Reader(2, frozenset({"user:bob", "kind:user", "team:support"}), None)


def _grant(owner=1, to="user:bob", level=Level.RECORDS, purpose=None, until=FOREVER, denied=False):
    return GrantRow(owner, to, level, purpose, until, denied)


def test_nothing_is_shared_without_a_grant():
    seen = audience([], BOB, 0)
    assert seen.level(1) == Level.NONE
    assert seen.alone


def test_a_reader_always_sees_its_own():
    assert audience([], BOB, 0).level(2) == Level.RECORDS


def test_grants_reach_entity_group_kind_and_tenant():
    for to in ("user:bob", "team:support", "kind:user", EVERYONE):
        assert audience([_grant(to=to)], BOB, 0).level(1) == Level.RECORDS, to
    for to in ("user:eve", "team:sales", "kind:agent"):
        assert audience([_grant(to=to)], BOB, 0).level(1) == Level.NONE, to


def test_a_grant_ends_by_itself():
    grants = [_grant(until=10)]
    assert audience(grants, BOB, 9).level(1) == Level.RECORDS
    assert audience(grants, BOB, 10).level(1) == Level.NONE
    assert audience(grants, BOB, 9).until == 10


def test_a_purpose_must_be_the_readers():
    grants = [_grant(purpose="support")]
    assert audience(grants, BOB, 0).level(1) == Level.NONE
    acting = Reader(2, BOB.names, "support")
    assert audience(grants, acting, 0).level(1) == Level.RECORDS


def test_an_opt_out_beats_the_tenants_policy_and_the_owners_own_grants():
    policy = _grant(owner=None, to=EVERYONE, level=Level.FACETS)
    assert audience([policy], BOB, 0).level(1) == Level.FACETS
    assert audience([policy, _grant(to=EVERYONE, denied=True)], BOB, 0).level(1) == Level.NONE
    assert audience([policy, _grant(), _grant(to="user:bob", denied=True)], BOB, 0).level(1) == Level.NONE


def test_a_denial_holds_for_every_purpose():
    assert audience([_grant(), _grant(purpose="ads", denied=True)], BOB, 0).level(1) == Level.NONE


def test_levels_as_a_column_are_the_same_as_one_by_one():
    seen = Audience(2, Level.FACETS, {1: Level.RECORDS, 4: Level.NONE})
    ids = np.array([0, 1, 2, 3, 4, 5])
    owners = np.array([True, True, True, True, True, False])
    assert seen.levels(ids, owners).tolist() == [1, 2, 2, 1, 0, 0]


def test_text_is_kept_only_while_somebody_else_may_read_it():
    assert read_by_others([], 1, 0) == Level.NONE
    assert read_by_others([_grant()], 1, 0) == Level.RECORDS
    assert read_by_others([_grant(owner=9)], 1, 0) == Level.NONE
    assert read_by_others([_grant(), _grant(to=EVERYONE, denied=True)], 1, 0) == Level.NONE


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(
            GrantRow,
            owner=st.sampled_from([None, 1, 3]),
            audience=st.sampled_from(["user:bob", "team:support", "user:eve", EVERYONE]),
            level=st.sampled_from([Level.FACETS, Level.RECORDS]),
            purpose=st.sampled_from([None, "x"]),
            until=st.sampled_from([5, FOREVER]),
            denied=st.booleans(),
        )
    ),
    st.sampled_from([0, 7]),
)
def test_the_order_of_grants_does_not_matter(grants, now):
    one, other = audience(grants, BOB, now), audience(list(reversed(grants)), BOB, now)
    assert (one.default, dict(one.named)) == (other.default, dict(other.named))
