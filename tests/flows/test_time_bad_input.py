"""Times and records that cannot be used: typed errors, and nothing half-written."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from collab_layer.errors import InputError
from collab_layer.ports.backend import Change
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.entity import MemoryRecord, MemoryRef
from collab_layer.types.interaction import Interaction

NAIVE = datetime(2026, 5, 1, 12)
REF = MemoryRef(backend="mem", id="1", version="1")


class Nowhere(tzinfo):
    """A zone that does not know how far it is from UTC."""


BAD_TIMES = {
    "naive": NAIVE,
    "a naive text": "2026-05-01T12:00:00",
    "a zone that is none": NAIVE.replace(tzinfo=Nowhere()),
    "a zone by name in a text": "2026-05-01T12:00:00 Europe/Nowhere",
    "out of range": datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))),
    "a date": "2026-13-40T00:00:00Z",
    "a number": 1_700_000_000,
}


@pytest.mark.parametrize("what", sorted(BAD_TIMES))
def test_a_time_that_cannot_be_used_is_refused_everywhere(layer, what):
    given = BAD_TIMES[what]
    layer.observe("user:a", "item:1")
    before = layer.health().counts
    for call in (
        lambda: layer.context("user:a", as_of=given),
        lambda: layer.neighbors("user:a", as_of=given),
        lambda: layer.rank("user:a", ["item:1"], as_of=given),
        lambda: layer.changes("user:a", given),
        lambda: layer.changes("user:a", datetime(2026, 1, 1, tzinfo=UTC), until=given),
        lambda: layer.observe("user:a", "item:2", at=given),
        lambda: MemoryRecord(ref=REF, owner="user:a", text="x", at=given),
        lambda: MemoryRecord(ref=REF, owner="user:a", text="x", valid_to=given),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert len(str(caught.value)) < 300
    assert layer.health().counts == before


def test_a_time_in_any_zone_is_the_same_moment(layer, clock):
    there = clock().astimezone(ZoneInfo("Asia/Tokyo"))
    layer.observe("user:a", text="said in Tokyo", at=there)
    layer.drain()
    [one] = layer.changes("user:a", there - timedelta(hours=1))
    assert one.at == clock()


def test_a_span_that_ends_before_it_begins_is_refused(layer, clock):
    with pytest.raises(InputError, match="before"):
        layer.changes("user:a", clock(), until=clock() - timedelta(days=1))
    record = MemoryRecord(ref=REF, owner="user:a", text="x", at=clock(), valid_to=clock() - timedelta(days=1))
    good = MemoryRecord(ref=REF.model_copy(update={"id": "2"}), owner="user:a", text="y")
    before = layer.health().counts
    with pytest.raises(InputError, match="ends before it begins"):
        layer.observe_changes("mem", [Change(good.ref, good), Change(REF, record)])
    assert layer.health().counts == before


def test_a_store_with_one_bad_span_is_taken_in_without_it(layer, clock, caplog):
    class Odd(InMemoryBackend):
        def _record(self, memory, version=None, score=None):
            found = super()._record(memory, version, score)
            ends = None if "good" in found.text else found.at - timedelta(days=1)
            return found.model_copy(update={"valid_to": ends})

    store = Odd("mem", clock=clock)
    store.add("user:a", "a good one")
    store.add("user:a", "secret and impossible")
    with caplog.at_level(logging.WARNING, "collab_layer"):
        layer.index(store)
    layer.drain()
    assert layer.health().counts["cards"] == 1
    assert "`m2` of `mem`" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "text",
    ["word " * 200_000, "a\x00b is in PostgreSQL", "half \ud800 of a pair", "\n".join(["line"] * 50_000)],
    ids=["a megabyte", "NUL", "half a surrogate", "many lines"],
)
def test_whatever_a_store_holds_is_taken_in(layer, clock, text):
    store = InMemoryBackend("mem", clock=clock)
    ref = store.add("user:a", text)
    layer.index(store)
    layer.grant("user:a", "user:b", "records")
    layer.drain()
    clock.advance(days=1)
    store.edit(ref, f"{text[:100]} and more")
    layer.reconcile(store)
    layer.drain()
    assert layer.health().counts["cards"] == 2
    assert layer.health().counts["parked"] == 0


@pytest.mark.parametrize("links", [[{"nested": ["item:1"]}], ["no kind"], [["item:1"]], [None]])
def test_links_that_nest_or_name_nothing_are_refused(links):
    with pytest.raises(InputError):
        MemoryRecord(ref=REF, owner="user:a", text="x", links=links)
    with pytest.raises(InputError):
        Interaction(actor="user:a", links=links)


def test_more_links_than_a_memory_may_have_are_left_out(layer, clock):
    store = InMemoryBackend("mem", clock=clock)
    store.add("user:a", "many things", links=[f"item:{n}" for n in range(100)])
    assert layer.index(store) == 1
    layer.drain()
    assert layer.health().counts["parked"] == 0
