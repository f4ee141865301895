"""What is told and delivered holds as long as what it rests on: not longer, and never afterwards."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from collab_layer.config import Settings
from collab_layer.errors import InputError, ModelReplyError
from collab_layer.ports.backend import Change
from collab_layer.sync import CollabLayer
from collab_layer.testing import ScriptedModel
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.entity import MemoryRecord, MemoryRef
from collab_layer.types.facet import FacetKind
from collab_layer.types.interaction import Interaction
from collab_layer.types.update import Source, Update

ENDING = "Our service keeps its data in PostgreSQL"
SAID = "keeps its data in PostgreSQL"


class Dated(InMemoryBackend):
    """A store whose memories have ends of their own."""

    def __init__(self, clock) -> None:
        super().__init__("dated", clock=clock)
        self.held: dict[str, MemoryRecord] = {}

    def say(self, owner, text, *, at, valid_to=None, links=("topic:storage",)) -> Change:
        ref = MemoryRef(backend="dated", id=text, version=str(valid_to))
        record = MemoryRecord(ref=ref, owner=owner, text=text, at=at, valid_to=valid_to, links=links)
        self.held[ref.id] = record
        return Change(ref, record)

    async def read(self, refs, /):
        return [self.held[ref.id] for ref in refs if ref.id in self.held]


def noting(prompt):
    """A memory model that tells every receiver what it may hear, in its own words."""
    if prompt.stage != "propagate":
        return ModelReplyError("scripted", "not its work")
    said = dict(re.findall(r'^(e\d+)(?: about r\d+:)? "(.*)"$', prompt.data, re.M))
    may = re.findall(r"^(r\d+) .+; may be told of (.*)$", prompt.data, re.M)
    told = [(id_, events.split()) for id_, events in may]
    return {"updates": [{"receiver": id_, "text": f"Noted: {said[e[0]]}", "events": e, "old": []} for id_, e in told]}


def near(layer, *owners) -> None:
    """Owners that hold the same things; the first shares its records with everybody."""
    for who in owners:
        layer.observe([Interaction(actor=who, target=f"item:{n}", verb="liked") for n in range(5)])
    layer.drain()
    layer.grant(owners[0], "tenant", "records")
    layer.drain()


@pytest.fixture
def taking(clock) -> InMemoryBackend:
    """A store that takes derived items."""
    return InMemoryBackend("taking", clock=clock)


@pytest.fixture
def dated(layer, taking, clock) -> Dated:
    store = Dated(clock)
    near(layer, "user:a", "user:b")
    layer.attach(store)
    layer.attach(taking, deliver=True)
    layer.drain()
    for update in taking.derived():
        layer.forget(update.id)
    layer.drain()
    return store


def told(layer, who="user:b") -> list[str]:
    return [facet.text for facet in layer.context(who).facets if facet.kind == "update"]


def test_what_is_delivered_carries_the_times_of_what_it_rests_on(layer, dated, taking, clock):
    began, ends = clock() - timedelta(days=3), clock() + timedelta(days=4)
    layer.observe_changes("dated", [dated.say("user:a", ENDING, at=began, valid_to=ends)])
    layer.drain()
    [sent] = [update for update in taking.derived("user:b") if SAID in update.text]
    assert (sent.at, sent.expires) == (began, ends)


def test_what_ended_while_the_store_was_down_is_never_sent(layer, dated, taking, clock):
    taking.down = True
    layer.observe_changes("dated", [dated.say("user:a", ENDING, at=clock(), valid_to=clock() + timedelta(days=4))])
    layer.drain()
    assert any(SAID in text for text in told(layer))
    clock.advance(days=5)
    taking.down = False
    taking.calls.clear()
    layer.drain()
    assert taking.calls["write"] == 0
    assert taking.texts() == told(layer) == []


def test_what_has_ended_already_is_told_to_nobody(layer, dated, taking, clock):
    began = clock()
    layer.observe_changes("dated", [dated.say("user:a", ENDING, at=began, valid_to=began + timedelta(days=1))])
    clock.advance(days=2)
    layer.drain()
    assert taking.texts() == told(layer) == []


def test_what_was_said_anew_meanwhile_is_sent_instead_of_the_old(layer, dated, taking, clock):
    taking.down = True
    for verb in ("loved", "hated"):
        layer.observe("user:a", "item:9", verb=verb)
        layer.drain()
        clock.advance(minutes=1)
    taking.down = False
    layer.drain()
    assert [update.text for update in taking.derived("user:b")] == ["user:a hated 9"]


def test_an_end_that_becomes_known_later_ends_what_was_told(layer, dated, taking, clock):
    began, ends = clock(), clock() + timedelta(days=2)
    layer.observe_changes("dated", [dated.say("user:a", ENDING, at=began)])
    layer.drain()
    assert any(SAID in text for text in told(layer))
    clock.advance(days=1)
    layer.observe_changes("dated", [dated.say("user:a", ENDING, at=began, valid_to=ends)])
    layer.drain()
    clock.set(ends)
    assert not any(SAID in text for text in told(layer)), "before it is worked off"
    layer.drain()
    assert taking.texts() == []


@pytest.mark.parametrize("by", ["rules", "model"])
def test_whoever_words_it_an_update_ends_with_its_evidence(database_url, clock, taking, by):
    ends, store = clock() + timedelta(days=4), Dated(clock)
    asked = ScriptedModel(noting, name="scripted") if by == "model" else None
    settings = Settings(worker=False, trigger="eager")
    with CollabLayer.open(database_url, settings=settings, clock=clock, memory_model=asked) as layer:
        near(layer, "user:a", "user:b")
        layer.attach(store)
        layer.attach(taking, deliver=True)
        layer.observe_changes("dated", [store.say("user:a", ENDING, at=clock(), valid_to=ends)])
        layer.drain()
        [sent] = [update for update in taking.derived("user:b") if SAID in update.text]
        [made_by] = [facet.made_by for facet in layer.context("user:b").facets if facet.id == sent.id]
        assert made_by.startswith("scripted" if asked else "rules")
        assert (sent.at, sent.expires) == (clock(), ends)
        clock.set(ends)
        assert not any(SAID in text for text in told(layer))


def test_owners_that_share_only_facets_are_in_no_store_by_name_or_time(layer, taking, clock):
    for n in range(4):
        layer.observe(f"user:s{n}", text=f"Okta login loop, canary{n}", links=["topic:okta", "topic:sso", "item:1"])
        layer.grant(f"user:s{n}", "user:new", "facets")
        clock.advance(hours=1)
    layer.observe("user:new", text="Looking after SSO", links=["topic:okta", "topic:sso", "item:1"])
    layer.drain()
    layer.attach(taking, deliver=True)
    layer.deliver("user:new")
    sent = taking.derived("user:new")
    assert sent, "their facet is delivered"
    for update in sent:
        assert {source.id for source in update.sources} == {"withheld"}
        assert {source.principal.kind for source in update.sources} == {"peer"}
        assert (update.at, update.expires) == (None, None)


def test_what_an_ended_fact_mentioned_counts_no_more(layer, dated, clock):
    for n in range(3):
        layer.observe("user:b", text=f"Storage question {n} about PostgreSQL", links=["topic:postgresql"])
    layer.drain()
    before = layer.neighbors("user:b")
    ends = clock() + timedelta(days=1)
    change = dated.say("user:a", ENDING, at=clock(), valid_to=ends, links=("topic:postgresql", "topic:databases"))
    layer.observe_changes("dated", [change])
    layer.drain()
    [during] = [one for one in layer.neighbors("user:b") if str(one.entity) == "user:a"]
    assert "topic:postgresql" in {str(one) for one in during.shared}
    clock.set(ends)
    for _ in ("before it is noted", "afterwards"):
        [after] = [one for one in layer.neighbors("user:b") if str(one.entity) == "user:a"]
        assert "topic:postgresql" not in {str(one) for one in after.shared}
        layer.drain()
    [then] = [one for one in before if str(one.entity) == "user:a"]
    assert set(after.shared) == set(then.shared)
    for name in ("edge_weight", "co_interaction_count"):
        assert after.contributions.get(name) == pytest.approx(then.contributions.get(name))


def test_an_item_that_would_end_before_it_begins_is_refused(clock):
    source = Source(id="i1", principal="user:a", weight=1.0)
    with pytest.raises(InputError, match="would end at"):
        Update(
            id="d1", owner="user:b", kind=FacetKind.UPDATE, text="x", confidence=0.5, sources=(source,),
            at=clock(), expires=clock() - timedelta(days=1),
        )  # fmt: skip
