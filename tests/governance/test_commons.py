from collab_layer.governance.commons import commons
from collab_layer.governance.grants import GrantRow
from collab_layer.types.scope import EVERYONE, Level
from collab_layer.types.time import FOREVER


def grant(owner, audience=EVERYONE, level=Level.RECORDS, purpose=None, until=FOREVER, denied=False):
    return GrantRow(owner, audience, level, purpose, until, denied)


def test_only_what_is_granted_to_everybody_for_anything_counts():
    rows = [
        grant(1),
        grant(2, "user:bob"),
        grant(3, purpose="support"),
        grant(4, until=50),
        grant(5, level=Level.FACETS),
    ]
    seen = commons(rows, now=100)
    assert [seen.level(owner) for owner in (1, 2, 3, 4, 5, 6)] == [
        Level.RECORDS, Level.NONE, Level.NONE, Level.NONE, Level.FACETS, Level.NONE,
    ]  # fmt: skip


def test_who_denies_anybody_anything_is_left_out():
    policy = grant(None, level=Level.FACETS)
    seen = commons([policy, grant(1, "user:bob", denied=True), grant(2)], now=0)
    assert seen.level(1) == Level.NONE
    assert seen.level(2) == Level.RECORDS
    assert seen.level(3) == Level.FACETS


def test_it_holds_until_the_first_grant_ends_that_it_uses():
    assert commons([grant(1, until=70), grant(2, "user:bob", until=50)], now=10).until == 70


def test_a_member_of_a_team_with_a_policy_is_common_no_further_than_that_allows():
    tenants = GrantRow(None, EVERYONE, Level.RECORDS, None, FOREVER, False)
    facets = GrantRow(5, EVERYONE, Level.FACETS, None, FOREVER, False, ceiling=True)
    some = GrantRow(6, EVERYONE, Level.RECORDS, None, FOREVER, False, purposes=frozenset({"hr"}), ceiling=True)
    found = commons([tenants, facets, some], 1)
    assert (found.level(4), found.level(5), found.level(6)) == (Level.RECORDS, Level.FACETS, Level.NONE)
