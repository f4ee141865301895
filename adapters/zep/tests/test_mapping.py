"""Ids, times and pages: pure, so by properties."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from collab_layer_zep import mapping, pages
from collab_layer_zep.refusals import ZepRejectedError
from collab_layer_zep.times import ENDED, span_of, window
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from collab_layer.errors import InputError
from collab_layer.ports.stored_facts import Span
from collab_layer.types.entity import Entity

NATIVE = st.text(alphabet="ab:%25uid/* @.éй\u0301🐈", min_size=1, max_size=24)
KINDS = st.sampled_from(["agent", "team", "session", "app", "item", "ticket_line", "collab"])
SOME = "6f1c0d9e-0000-4000-8000-00000000000a"


@given(NATIVE, NATIVE)
@settings(deadline=None, max_examples=500)
def test_two_user_ids_never_become_one_entity(one, other):
    assume(one != other)
    assert mapping.user_entity(one, SOME) != mapping.user_entity(other, SOME)
    assert mapping.user_entity(one, SOME) != mapping.user_entity(None, SOME)


@given(NATIVE)
@settings(deadline=None, max_examples=500)
def test_a_user_id_is_found_again_by_its_entity(native):
    assert mapping.user_id_of(mapping.user_entity(native, SOME)) == native


def test_a_user_without_an_id_is_named_by_its_uuid():
    owner = mapping.user_entity(None, SOME)
    assert (str(owner), mapping.user_id_of(owner), mapping.uuid_of(owner)) == (f"user:uuid:{SOME}", None, SOME)
    assert mapping.user_entity("x" * 300, SOME) is None


@given(KINDS, st.text(alphabet="ab4_-:@.éй", min_size=1, max_size=24))
@settings(deadline=None)
def test_a_graph_is_the_entity_that_its_name_reads_as(kind, id_):
    try:
        entity = Entity(kind, id_)
    except InputError:
        assume(False)
    label = str(entity)
    assume(not label.startswith(mapping.RESERVED) and not entity.id.startswith("uuid:"))
    assert mapping.graph_entity(label, SOME) == entity


@pytest.mark.parametrize("label", [None, "", "Product docs", "user:ann", "Agent:x", "app:uuid:x", "plain", 7])
def test_any_other_graph_is_named_by_its_uuid(label):
    owner = mapping.graph_entity(label, SOME)
    assert str(owner) == f"app:uuid:{SOME}"
    assert mapping.uuid_of(owner) == SOME


@given(KINDS, st.text(alphabet="ab:é", min_size=1, max_size=12))
@settings(deadline=None)
def test_a_reserved_graph_is_nobodys_memory_and_names_for_whom_it_is(kind, id_):
    try:
        owner = Entity(kind, id_)
    except InputError:
        assume(False)
    name = mapping.reserved_name(owner)
    assert mapping.graph_entity(name, SOME) is None
    assert mapping.reserved_owner(name) == owner


@pytest.mark.parametrize(
    "id_", ["", "a/b", SOME, f"{SOME}/", f"/{SOME}", f"{SOME}/{SOME}/x", f"{SOME}/../../users", f"{SOME}/{{{SOME}}}"]
)
def test_what_is_no_pair_of_uuids_is_no_ref(id_):
    assert mapping.ref_of(id_) is None


class TestTimes:
    def test_a_fact_begins_when_it_is_true_else_when_it_was_stored(self):
        assert span_of({"created_at": "2026-03-01T00:00:00Z"}).begin.month == 3
        assert span_of({"created_at": "2026-03-01T00:00:00Z", "valid_at": "2026-01-01T00:00:00Z"}).begin.month == 1

    def test_a_known_end_counts_more_than_the_day_it_was_noted(self):
        row = {"created_at": "2026-01-01", "invalid_at": "2030-01-01", "expired_at": "2026-01-02"}
        assert span_of(row).end.year == 2030
        assert span_of({**row, "invalid_at": None}).end == datetime(2026, 1, 2, tzinfo=UTC)

    def test_the_end_that_an_owner_gave_counts_if_it_is_the_earlier_one(self):
        row = {"created_at": "2026-01-01", "invalid_at": "2026-06-01"}
        for given_, end in (("2026-03-01T00:00:00Z", 3), ("2026-09-01T00:00:00Z", 6)):
            assert span_of({**row, "attributes": {ENDED: given_}}).end.month == end

    def test_a_fact_that_ends_before_it_begins_never_held(self):
        assert span_of({"valid_at": "2026-02-01", "invalid_at": "2026-01-01"}) is None

    @given(
        st.datetimes(max_value=datetime(9000, 1, 1), timezones=st.just(UTC)), st.integers(1, 10**9), st.floats(0, 0.999)
    )
    @settings(deadline=None)
    def test_the_filter_lets_through_whatever_holds(self, begin, seconds, passed):
        end, at = begin + timedelta(seconds=seconds), begin + timedelta(seconds=seconds * passed)
        assert Span(begin, end).holds(at)
        for valid_at, invalid_at in ((begin, end), (None, end), (begin, None)):
            fact = {"valid_at": valid_at, "invalid_at": invalid_at, "created_at": begin}
            assert any(all(_meets(fact, *one) for one in group) for group in window(at))


def _meets(fact, field, operator, value):
    if operator == "is_null" or fact[field] is None:
        return fact[field] is None and operator == "is_null"
    return fact[field] <= value if operator == "lte" else fact[field] > value


class Listing:
    """A list of rows whose cursors count rows, or are refused."""

    def __init__(self, rows, size, *, sort=True, refuse=False):
        self.rows, self.size, self.sort, self.refuse = rows, size, sort, refuse

    async def fetch(self, cursor):
        if cursor is not None and self.refuse:
            raise ZepRejectedError("zep", "the cursor is too old")
        begin = int(cursor or 0)
        rows = sorted(self.rows, key=lambda row: row["uuid"]) if self.sort else self.rows
        part = rows[begin : begin + self.size]
        return part, str(begin + self.size) if begin + self.size < len(rows) else None


def walk(listing, limit, between=lambda: None):
    found, mark = [], pages.Mark()
    while mark is not None:
        rows, mark = asyncio.run(pages.after(listing.fetch, pages.mark_of(str(mark)), limit))
        assert len(rows) <= limit
        found += [row["uuid"] for row in rows]
        between()
    return found


class TestPages:
    @given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 9))
    @settings(deadline=None, max_examples=60)
    def test_every_row_comes_once_in_order_whatever_the_sizes(self, count, size, limit):
        rows = [{"uuid": str(uuid4())} for _ in range(count)]
        assert walk(Listing(rows, size), limit) == sorted(row["uuid"] for row in rows)

    @given(st.integers(1, 9))
    @settings(deadline=None, max_examples=20)
    def test_a_list_that_ignores_the_order_asked_for_is_put_in_order(self, limit):
        rows = [{"uuid": str(UUID(int=number))} for number in (3, 1, 4, 15, 9, 2, 6, 5, 35, 8, 97, 93)]
        assert walk(Listing(rows, 5, sort=False), limit) == sorted(row["uuid"] for row in rows)

    @given(st.integers(1, 9), st.integers(1, 9))
    @settings(deadline=None, max_examples=40)
    def test_removals_behind_the_cursor_hide_nothing(self, size, limit):
        rows = [{"uuid": str(UUID(int=number))} for number in range(30)]
        kept = {row["uuid"] for row in rows}
        listing = Listing(rows, size)

        def remove_some():
            for row in listing.rows[:2]:
                kept.discard(row["uuid"])
            listing.rows = listing.rows[2:]

        found = walk(listing, limit, remove_some)
        assert kept <= set(found)
        assert len(found) == len(set(found))

    def test_a_cursor_that_is_too_old_begins_anew(self):
        rows = [{"uuid": str(UUID(int=number))} for number in range(9)]
        listing = Listing(rows, 4)
        first, mark = asyncio.run(pages.after(listing.fetch, pages.Mark(), 6))
        assert mark.cursor is not None
        listing.refuse = True
        with pytest.raises(ZepRejectedError):
            asyncio.run(pages.after(listing.fetch, mark, 6))
        listing.size = 100
        rest, _ = asyncio.run(pages.after(listing.fetch, mark, 6))
        assert [row["uuid"] for row in [*first, *rest]] == [row["uuid"] for row in rows]
