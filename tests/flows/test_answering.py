"""Facets of owners that share only `facets` answer a query by what they name, and tell of no single owner."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collab_layer.config import Settings
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.types.scope import Sharing

MINIMUM = 3
READER = "user:reader"
THINGS = ("dune", "solaris", "hyperion")
BOTH = ("dune", "solaris")


def opened(url, clock, held):
    """A layer in which the n-th owner holds the n-th tuple of things and shares facets of them with one reader."""
    policy, by_hand = Sharing.private(min_contributors=MINIMUM), Settings(worker=False)
    layer = CollabLayer.open(url, tenant="acme", sharing=policy, settings=by_hand, clock=clock)
    for thing in THINGS:
        layer.observe(READER, f"item:{thing}", "liked")
    for number, things in enumerate(held):
        for thing in things:
            layer.observe(f"user:o{number}", f"item:{thing}", "liked", text=f"canary{number} on {thing}")
        layer.grant(f"user:o{number}", READER, "facets")
    layer.drain()
    return layer


def answered(layer, query):
    return [(facet.text, facet.contributors, facet.confidence) for facet in layer.context(READER, query=query).facets]


def test_what_goes_with_the_thing_asked_about_comes_first_and_then_the_thing(sqlite_url, clock):
    with opened(sqlite_url, clock, [BOTH] * 5) as layer:
        told = layer.context(READER, query="what goes with dune?").facets
        assert [[link.id for link in facet.links] for facet in told] == [["solaris"], ["dune"]]
        assert all(facet.contributors == 5 for facet in told)
        assert "canary" not in str([facet.model_dump() for facet in told])


@pytest.mark.parametrize("query", ["pasta recipes", "canary2", "canary2 on dune, canary3", ""])
def test_words_that_only_owners_said_or_nobody_said_bring_no_facet_of_theirs(sqlite_url, clock, query):
    with opened(sqlite_url, clock, [BOTH] * 5) as layer:
        known = {text for text, _, _ in answered(layer, "dune")} | {text for text, _, _ in answered(layer, None)}
        assert {text for text, _, _ in answered(layer, query)} <= known
        if "dune" not in query and query:
            assert answered(layer, query) == []


def test_who_holds_two_things_together_changes_no_answer(tmp_path):
    together = [BOTH, BOTH, BOTH, ("dune",), ("dune",), ("solaris",), ("solaris",)]
    apart = [("dune",), ("dune",), ("dune",), ("dune",), BOTH, BOTH, ("solaris",), ("solaris",), ("solaris",)]
    answers = []
    for place, held in enumerate((together, apart)):
        with opened(str(tmp_path / f"{place}.db"), FixedClock(), held) as layer:
            told = layer.context(READER, query="dune").facets
            answers.append([[link.id for link in facet.links] for facet in told])
    assert answers[0] == answers[1]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
@given(
    held=st.lists(st.sampled_from([one for one in product(*[("", name) for name in THINGS]) if any(one)]), max_size=7),
    more=st.sampled_from([BOTH, THINGS, ("dune",), ("hyperion",)]),
)
def test_one_owner_more_shows_in_no_answer_to_any_question(tmp_path_factory, held, more):
    clock = FixedClock()
    before = [tuple(thing for thing in one if thing) for one in held]
    url = str(tmp_path_factory.mktemp("answers") / "collab.db")
    asked = ("dune", "solaris hyperion", "dune and solaris")
    with opened(url, clock, before) as layer:
        told = {query: layer.context(READER, query=query).facets for query in asked}
        for thing in more:
            layer.observe("user:new", f"item:{thing}", "liked")
        layer.grant("user:new", READER, "facets")
        layer.drain()
        clock.advance(hours=30)
        for query in asked:
            now = {facet.links: facet.contributors for facet in layer.context(READER, query=query).facets}
            for facet in told[query]:
                assert abs(now.get(facet.links, facet.contributors) - facet.contributors) in (0, *range(MINIMUM, 9))
            counted = set(now.values()) | {facet.contributors for facet in told[query]}
            assert all(count >= MINIMUM for count in counted)
