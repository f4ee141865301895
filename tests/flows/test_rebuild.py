"""Edges between things rest on whom everybody may read, and go when that ends."""

import pytest

from collab_layer.errors import NotPermittedError
from collab_layer.types.interaction import Interaction

PEOPLE = 12


def films(layer, people=PEOPLE, start=0):
    """Two tastes of six films each; everybody holds five of one."""
    batch = [
        Interaction(actor=f"user:{person}", target=f"item:{person % 2}-{(person // 2 + step) % 6}", verb="liked")
        for person in range(start, start + people)
        for step in range(5)
    ]
    layer.observe(batch)
    layer.drain()


def share(layer, people=PEOPLE, level="records"):
    return [layer.grant(f"user:{person}", "tenant", level) for person in range(people)]


def edge(layer, reader="user:new", thing="item:0-1", **more):
    """What the reader's own things say for a thing."""
    return layer.rank(reader, [thing, "item:1-1"], **more).items[0].features.get("item_edges", 0.0)


@pytest.fixture
def reader(layer):
    layer.observe("user:new", "item:0-0", "liked")
    layer.observe("user:new", "item:0-2", "liked")
    layer.drain()
    return "user:new"


def test_what_others_hold_together_speaks_for_a_thing(layer, reader):
    films(layer)
    share(layer)
    assert edge(layer) == 0
    made = layer.rebuild()
    assert made.method == "ease"
    assert made.owners == PEOPLE
    assert made.things == 12
    ranking = layer.rank(reader, ["item:1-1", "item:0-1"])
    assert str(ranking.entities[0]) == "item:0-1"
    assert ranking.items[0].features["item_edges"] > 0
    assert ranking.items[1].features["item_edges"] < ranking.items[0].features["item_edges"]
    assert "goes with things" in ranking.items[0].rationale


def test_owners_that_share_with_some_only_move_no_edge(layer, reader):
    films(layer)
    for person in range(PEOPLE):
        layer.grant(f"user:{person}", reader, "records")
    assert layer.rebuild().edges == 0
    assert edge(layer) == 0


def test_an_owner_that_denies_one_reader_moves_no_edge_for_anybody(layer, reader):
    films(layer)
    share(layer)
    layer.opt_out("user:3", "user:somebody")
    assert layer.rebuild().owners == PEOPLE - 1


def test_the_reader_s_own_purpose_opens_nothing(layer, reader):
    films(layer)
    for person in range(PEOPLE):
        layer.grant(f"user:{person}", "tenant", "records", purpose="support")
    assert layer.rebuild().edges == 0


def test_a_grant_taken_back_leaves_the_edges_unused_until_they_are_made_again(layer, reader):
    films(layer)
    grants = share(layer)
    layer.rebuild()
    before = edge(layer)
    assert before > 0
    layer.revoke(grants[4].id)
    assert edge(layer) == 0
    assert layer.rebuild().owners == PEOPLE - 1
    assert 0 < edge(layer) != before


def test_a_new_grant_leaves_them_in_use(layer, reader):
    films(layer)
    share(layer)
    layer.rebuild()
    before = edge(layer)
    layer.grant("user:other", reader, "facets")
    assert edge(layer) == before


def test_a_lower_level_than_they_were_made_with_leaves_them_unused(layer, reader):
    films(layer)
    grants = share(layer)
    layer.rebuild()
    layer.grant("user:4", "tenant", "facets")
    layer.revoke(grants[4].id)
    assert edge(layer) == 0


def test_a_grant_that_ends_by_itself_ends_them(layer, clock, reader):
    from datetime import timedelta

    films(layer)
    share(layer)
    layer.grant("user:extra", "tenant", "records", until=clock() + timedelta(hours=1))
    layer.rebuild()
    assert edge(layer) > 0
    clock.advance(hours=2)
    assert edge(layer) == 0


def test_whoever_is_forgotten_is_in_no_edge_any_more(layer, reader):
    films(layer)
    share(layer)
    layer.rebuild()
    layer.forget("user:4")
    assert edge(layer) == 0
    assert layer.rebuild().owners == PEOPLE - 1
    assert edge(layer) > 0


def test_aliases_hold_together_what_one_principal_holds(layer, reader):
    films(layer)
    share(layer)
    for person in range(1, 4):
        layer.alias(f"user:{person}", "user:0")
    assert layer.rebuild().owners == PEOPLE - 3


def test_facets_count_only_where_more_than_the_minimum_hold_both(layer, reader):
    films(layer, people=6)
    share(layer, people=6, level="facets")
    assert layer.rebuild().edges == 0  # at most three of a taste hold both
    films(layer, people=8, start=6)
    for person in range(6, 14):
        layer.grant(f"user:{person}", "tenant", "facets")
    assert layer.rebuild().edges > 0


def test_the_past_is_read_without_them(layer, clock, reader):
    films(layer)
    share(layer)
    layer.rebuild()
    clock.advance(hours=1)
    assert edge(layer) > 0
    assert edge(layer, as_of=clock()) == 0


def test_what_nobody_shared_moves_no_edge_and_has_none(layer, reader):
    films(layer)
    share(layer)
    layer.rebuild()
    before = edge(layer)
    layer.observe("user:late", "item:0-9", "liked")  # a thing that has no row, and an owner that shares nothing
    layer.drain()
    assert edge(layer) == before
    assert edge(layer, thing="item:0-9") == 0
    layer.rebuild()
    assert edge(layer) == before


def test_nothing_of_another_tenant_is_in_them(layer, reader):
    films(layer)
    share(layer)
    other = layer.for_tenant("other")
    assert other.rebuild().edges == 0
    layer.rebuild()
    other.rebuild()
    assert edge(layer) > 0


def test_only_the_operator_rebuilds(layer):
    with pytest.raises(NotPermittedError):
        layer.as_("user:0").rebuild()
