"""What adapters of stores that keep facts with times have in common: pure, so by properties."""

import logging
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.errors import InputError
from collab_layer.ports.stated_fact import StatedFact
from collab_layer.ports.stored_facts import (
    Span,
    Unread,
    UnreadableTimeError,
    around,
    first_moment,
    links_of,
    moment,
    span_between,
    version_of,
)
from collab_layer.types.entity import Entity

ANN = Entity("user", "ann")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = st.datetimes(timezones=st.just(UTC))


class Listing(StatedFact):
    RESERVED = frozenset({"uuid"})
    UNFIT = "`"
    LISTS = True


@given(TIMES, TIMES, TIMES)
@settings(deadline=None)
def test_a_fact_holds_from_its_begin_until_before_its_end_or_it_never_did(begin, end, at):
    span = span_between(begin, end, "valid_at")
    assert (span is None) == (end <= begin)
    assert (span is not None and span.holds(at)) == (begin <= at < end)
    assert Span(begin, None).holds(at) == (begin <= at)


def test_without_a_begin_nothing_is_guessed():
    with pytest.raises(UnreadableTimeError, match="valid_at"):
        span_between(None, BEGIN, "valid_at")


@given(st.datetimes(), st.integers(-23 * 60, 23 * 60))
@settings(deadline=None)
def test_a_zone_is_honoured_and_a_time_without_one_is_utc(when, minutes):
    assert moment("at", when.isoformat()) == when.replace(tzinfo=UTC)
    there = when.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    try:
        assert moment("at", there.isoformat()) == there
    except UnreadableTimeError:  # it lies before the first or after the last year
        assert when.year in (1, 9999)


@pytest.mark.parametrize("bad", ["yesterday", "2026-01-01T00:00 Mars/Base", 7, [1], "2026-13-01"])
def test_a_time_that_is_none_is_said_by_its_field(bad):
    with pytest.raises(UnreadableTimeError, match="invalid_at"):
        first_moment({"valid_at": None, "invalid_at": bad}, ("valid_at", "invalid_at"))


def test_the_first_time_that_is_given_counts():
    fields = ("valid_at", "created_at")
    assert first_moment({"valid_at": "", "created_at": "2026-01-01"}, fields) == BEGIN
    assert first_moment({"valid_at": "2025-01-01", "created_at": "2026-01-01"}, fields).year == 2025
    assert first_moment({}, fields) is None


@given(TIMES)
@settings(deadline=None)
def test_bounds_lie_around_their_time_at_the_ends_of_the_calendar_too(at):
    early, late = around(at)
    assert early <= at <= late
    assert early < at or at == datetime.min.replace(tzinfo=UTC)


def test_links_are_read_from_text_and_lists_and_bad_ones_are_left_out():
    read = (Entity("tool", "pip"), Entity("topic", "go"))
    assert links_of("tool:pip, topic:go, nonsense, user:ann", ANN) == read
    assert links_of(["tool:pip", 7, "topic:go"], ANN) == read
    assert links_of({"tool": "pip"}, ANN) == links_of(None, ANN) == ()
    assert len(links_of([f"topic:t{number}" for number in range(100)], ANN)) == 64


def test_a_version_changes_with_the_words_the_time_and_the_links():
    end = BEGIN + timedelta(days=1)
    versions = {
        version_of(text, span, links)
        for text, span, links in [
            ("Uses SQLite", Span(BEGIN, None), ()),
            ("Uses SQLite", Span(BEGIN, end), ()),
            ("Uses SQLite", Span(BEGIN, None), (Entity("tool", "sqlite"),)),
            ("Uses PostgreSQL", Span(BEGIN, None), ()),
            ("Lone surrogate \ud800", Span(BEGIN, None), ()),
        ]
    }
    assert len(versions) == 5


def test_what_cannot_be_read_is_told_until_it_can_be_and_logged_once(caplog):
    def bad():
        raise UnreadableTimeError("valid_at")

    unread = Unread()
    with caplog.at_level(logging.WARNING):
        assert unread.span("f1", bad) is None
        assert unread.span("f1", bad) is None
    assert len(caplog.records) == 1
    assert unread.complaint() == "1 facts are left out, such as `f1`: correct its `valid_at`"
    assert unread.span("f1", lambda: Span(BEGIN, None)) == Span(BEGIN, None)
    assert unread.complaint() == ""


@pytest.mark.parametrize(
    "attributes",
    [
        {"collab_x": 1},
        {"uuid": 1},
        {"": 1},
        {"a`b": 1},
        {"a\nb": 1},
        {"a": {"b": 1}},
        {"a": [[1]]},
        {"a": float("nan")},
        {"a": "\x00"},
        {"a": None},
    ],
    ids=repr,
)
def test_attributes_that_a_store_would_lose_or_choke_on_are_refused(attributes):
    with pytest.raises(InputError):
        Listing(text="Uses SQLite", attributes=attributes)


def test_a_list_is_taken_only_where_the_store_keeps_lists():
    assert Listing(text="Uses SQLite", attributes={"тег": ["раз", 2]}).attributes == {"тег": ["раз", 2]}
    with pytest.raises(InputError, match="nests"):
        StatedFact(text="Uses SQLite", attributes={"a": [1]})


@pytest.mark.parametrize("part", ["text", "about", "key"])
def test_empty_words_are_refused(part):
    with pytest.raises(InputError, match="empty"):
        StatedFact(**{"text": "Uses SQLite", part: " \n"})


def test_a_fact_does_not_end_before_it_begins_and_begins_now_if_nothing_is_said():
    assert StatedFact(text="x", invalid_at=BEGIN).begin(BEGIN - timedelta(days=1)) == BEGIN - timedelta(days=1)
    with pytest.raises(InputError, match="would end"):
        StatedFact(text="x", invalid_at=BEGIN).begin(BEGIN)
    with pytest.raises(InputError, match="would end"):
        StatedFact(text="x", valid_at=BEGIN, invalid_at=BEGIN)
