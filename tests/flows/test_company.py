"""Everybody who holds the same things speaks for a candidate, as far as this reader may read them, at that moment."""

import pytest

from collab_layer.types.interaction import Interaction


def tell(layer, people=40):
    """All hold one thing; half of them a second, the other half a third; what else they hold is their own."""
    batch = [
        Interaction(actor=f"user:{person}", target=f"item:{thing}", verb="liked")
        for person in range(people)
        for thing in ("all", "even" if person % 2 == 0 else "odd", f"own{person}")
    ]
    layer.observe(batch)
    layer.observe("user:new", "item:all", verb="liked")
    layer.observe("user:other", "item:own0", verb="liked")
    layer.drain()


def said(layer, reader="user:new", **more):
    """What is said for the two things."""
    items = layer.rank(reader, ["item:even", "item:odd"], **more).items
    found = {item.entity.id: item.features.get("co_holders", 0.0) for item in items}
    return found["even"], found["odd"]


def test_more_than_the_curated_ones_are_heard(layer):
    tell(layer)
    for person in range(40):
        layer.grant(f"user:{person}", "tenant", "records")
    even, odd = said(layer)
    assert even == pytest.approx(odd)
    assert even == pytest.approx(0.5 / 20**0.5, rel=0.01)


def test_who_grants_nothing_is_not_heard_and_who_takes_back_is_heard_no_more(layer):
    tell(layer)
    assert said(layer) == (0.0, 0.0)
    grants = [layer.grant(f"user:{person}", "tenant", "records") for person in range(0, 40, 2)]
    even, odd = said(layer)
    assert even > odd == 0.0
    for grant in grants:
        layer.revoke(grant.id)
    assert said(layer) == (0.0, 0.0)


def test_who_is_forgotten_is_heard_no_more(layer):
    tell(layer, people=4)
    for person in range(4):
        layer.grant(f"user:{person}", "tenant", "records")
    assert min(said(layer)) > 0
    layer.forget("user:0")
    layer.forget("user:2")
    layer.drain()
    assert said(layer)[0] == 0.0


def test_at_the_facets_level_three_must_agree(layer):
    """No feature is told where such owners count; the scores are, in steps."""
    tell(layer)
    layer.set_weights({"co_holders": 1.0})

    def scores():
        return [item.score for item in layer.rank("user:new", ["item:odd", "item:even"]).items]

    for person in (0, 2, 1, 3):
        layer.grant(f"user:{person}", "tenant", "facets")
    assert len(set(scores())) == 1
    layer.grant("user:5", "tenant", "facets")
    ranking = layer.rank("user:new", ["item:even", "item:odd"])
    assert str(ranking.entities[0]) == "item:odd"
    assert scores()[0] > scores()[1]
    assert all("co_holders" not in item.features for item in ranking.items)


def test_the_past_knows_of_nobody_who_came_later(layer, clock):
    tell(layer, people=4)
    for person in range(4):
        layer.grant(f"user:{person}", "tenant", "records")
    before = clock()
    clock.advance(minutes=5)
    layer.observe("user:late", "item:all", verb="liked")
    layer.observe("user:late", "item:even", verb="liked")
    layer.grant("user:late", "tenant", "records")
    layer.drain()
    even, odd = said(layer, as_of=before)
    assert even == pytest.approx(odd)
    assert said(layer)[0] > said(layer)[1]
