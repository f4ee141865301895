from __future__ import annotations

from collab_layer.builtin.linkers import link_names, link_topics
from collab_layer.builtin.plugin import collab_register_linkers
from collab_layer.plugins.specs import LinkRequest
from collab_layer.stages.tokens import fold
from collab_layer.types.entity import Entity

BOB = Entity("user", "bob")
GO = Entity("topic", "go-modules")


def test_both_linkers_answer_each_request_in_order():
    requests = [LinkRequest(BOB, "fixed Go modules"), LinkRequest(BOB, "!!!"), LinkRequest(BOB, "Go modules again")]
    for spec in collab_register_linkers():
        answers = spec.link(requests, {fold("Go modules"): GO})
        assert [GO in answer for answer in answers] == [True, False, True]
        assert spec.link([], {}) == []


def test_the_owner_is_no_link_of_its_own_text():
    names = {fold("Bob"): BOB, fold("Alice"): Entity("user", "alice")}
    assert link_names([LinkRequest(BOB, "Bob met Alice")], names) == [[Entity("user", "alice")]]


def test_a_topic_that_is_a_known_name_becomes_that_entity():
    (known,) = link_topics([LinkRequest(BOB, "moved to Go modules")], {fold("Go modules"): GO})
    (unknown,) = link_topics([LinkRequest(BOB, "moved to Go modules")], {})
    assert GO in known
    assert Entity("topic", "go-modul") not in known
    assert Entity("topic", "go-modul") in unknown
