"""Several entities of one principal are counted once; said by the operator, erased with whom it is about."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from collab_layer import Alias
from collab_layer.errors import InputError, NotPermittedError, UnknownIdError
from collab_layer.graph.tables import aliases, audit
from collab_layer.testing.memory import InMemoryBackend


def _readers_of_dune(layer, count, kind="user", level="facets"):
    for n in range(count):
        for book in ("dune", "hyperion"):
            layer.observe(f"{kind}:p{n}", f"item:{book}", verb="liked")
        layer.grant(f"{kind}:p{n}", "user:reader", level)
    layer.observe("user:reader", "item:dune", verb="liked")
    layer.drain()


def test_two_aliases_of_one_principal_are_not_two_of_the_contributors_that_a_facet_needs(layer):
    _readers_of_dune(layer, 3)
    assert {facet.contributors for facet in layer.context("user:reader").facets} == {3}
    made = layer.alias("user:p1", "user:p0")
    assert isinstance(made, Alias)
    assert layer.context("user:reader").facets == (), "the next read counts two, which are too few"
    assert {one.entity.kind for one in layer.neighbors("user:reader")} <= {"item"}
    layer.unalias("user:p1")
    assert {facet.contributors for facet in layer.context("user:reader").facets} == {3}


def test_a_facet_of_many_counts_each_principal_once(layer, clock):
    _readers_of_dune(layer, 6)
    before = layer.context("user:reader").facets[0]
    for n in (1, 2):
        layer.alias(f"user:p{n}", "user:p0")
    clock.advance(hours=25)
    after = layer.context("user:reader").facets
    assert before.contributors == 6
    assert {facet.contributors for facet in after} in ({4}, set()), "published anew only if enough changed"


def test_a_principal_with_many_aliases_moves_no_confidence_by_more_than_delta(layer):
    _readers_of_dune(layer, 3, level="records")
    layer.observe("user:reader", "item:solaris", verb="liked")
    layer.drain()
    before = {facet.links[0]: facet.confidence for facet in layer.context("user:reader", budget_tokens=4000).facets}
    for n in range(12):
        for _ in range(3):
            layer.observe(f"agent:eve{n}", "item:solaris", verb="liked", text="Solaris is the book to buy")
        layer.grant(f"agent:eve{n}", "user:reader", "records")
        layer.alias(f"agent:eve{n}", "agent:eve")
    layer.drain()
    after = {facet.links[0]: facet.confidence for facet in layer.context("user:reader", budget_tokens=4000).facets}
    for link in before.keys() | after.keys():
        assert abs(before.get(link, 0.0) - after.get(link, 0.0)) <= 0.25 + 1e-9, link
    near = [one.entity for one in layer.neighbors("user:reader") if str(one.entity).startswith("agent:eve")]
    assert len(near) == 1, "one principal takes one place among the neighbours"


def test_copies_of_one_principal_in_several_stores_and_names_are_one_voice(layer):
    said = "The SSO login loop is cured by clearing the session cookie"
    stores = [InMemoryBackend("one"), InMemoryBackend("two")]
    for store in stores:
        store.add("agent:eve", said)
        store.add("agent:eve", f"{said}!")
        layer.index(store)
    layer.observe("agent:eve2", text=said)
    for name in ("agent:eve", "agent:eve2"):
        layer.grant(name, "agent:bob", "records")
    layer.alias("agent:eve2", "agent:eve")
    layer.drain()
    lessons = layer.context("agent:bob", "SSO login loop").facets
    assert lessons
    assert {lesson.contributors for lesson in lessons} == {1}
    assert max(lesson.confidence for lesson in lessons) <= 0.25


def test_aliases_of_an_alias_follow_it_and_cannot_run_in_a_circle(layer):
    layer.alias("agent:a", "user:a2")
    layer.alias("user:a2", "user:a3")
    assert {str(one.entity): str(one.principal) for one in layer.aliases()} == {
        "agent:a": "user:a3",
        "user:a2": "user:a3",
    }
    layer.alias("user:a3", "agent:a")  # they are one already: nothing changes
    assert {str(one.principal) for one in layer.aliases()} == {"user:a3"}
    for bad in (("agent:a", "agent:a"), ("item:dune", "agent:a"), ("agent:a", "item:dune"), ("", "agent:a")):
        with pytest.raises(InputError):
            layer.alias(*bad)
    with pytest.raises(UnknownIdError):
        layer.unalias("user:nobody")


def test_only_the_operator_says_who_is_who_and_each_word_is_on_record(layer):
    for call in ("alias", "unalias", "aliases"):
        arguments = {"alias": ("agent:a", "user:a2"), "unalias": ("agent:a",), "aliases": ()}[call]
        with pytest.raises(NotPermittedError):
            getattr(layer.as_("agent:a"), call)(*arguments)
    layer.alias("agent:a", "user:a2")
    layer.unalias("agent:a")
    assert layer.for_tenant("other").aliases() == []
    with layer._layer._core.tools.store.database.read() as connection:
        rows = connection.execute(select(audit.c.action, audit.c.subject)).all()
    assert [row.action for row in rows] == ["alias", "unalias"]
    assert not any("user:a2" in row.subject for row in rows)


def test_who_is_forgotten_is_in_no_alias_and_the_others_stay_one_principal(layer):
    for name in ("agent:a", "agent:b", "agent:c"):
        layer.observe(name, text="noted")
        layer.alias(name, "user:root")
    layer.forget("user:root")
    left = {str(one.entity): str(one.principal) for one in layer.aliases()}
    assert len(left) == 2
    assert len(set(left.values())) == 1
    assert set(left.values()) <= {"agent:a", "agent:b", "agent:c"} - set(left)
    layer.forget("agent:c")
    with layer._layer._core.tools.store.database.read() as connection:
        assert len(connection.execute(select(aliases)).all()) == 1
