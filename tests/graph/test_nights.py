"""One worker at a time looks after a tenant, once a night; another takes over from a dead one."""

import pytest

from collab_layer.errors import StaleLeaseError
from collab_layer.graph import nights, writer
from collab_layer.types.interaction import Interaction
from collab_layer.types.time import DAY, SECOND

HOUR = 3_600 * SECOND
NOON = 100 * DAY + 12 * HOUR


def _claim(store, now, **more):
    with store.database.write() as connection:
        return nights.claim(connection, "acme", now, **more)


def _do(store, call, *arguments):
    with store.database.write() as connection:
        return call(connection, "acme", *arguments)


def test_nobody_else_gets_it_while_the_lease_lasts(store):
    assert _claim(store, NOON) is not None
    assert _claim(store, NOON + nights.LEASE - 1) is None
    assert _claim(store, NOON + nights.LEASE) is not None


def test_a_lease_from_before_a_clock_was_set_back_binds_nobody(store):
    assert _claim(store, NOON + HOUR) is not None
    assert _claim(store, NOON) is not None


def test_who_waited_for_its_turn_takes_nothing_from_who_came_later_and_went_first(store):
    assert _claim(store, NOON) is not None
    assert _claim(store, NOON - 1) is None
    assert _claim(store, NOON - nights.LEASE) is None


def test_whoever_lost_the_lease_writes_nothing_more(store):
    slow = _claim(store, NOON)
    fast = _claim(store, NOON + nights.LEASE)
    with pytest.raises(StaleLeaseError, match="taken"):
        _do(store, nights.keep, slow.on(nights.ITEMS, 5, {}, NOON))
    _do(store, nights.keep, fast.on(nights.ITEMS, 7, {}, NOON + nights.LEASE))
    with pytest.raises(StaleLeaseError):
        _do(store, nights.finish, slow)
    _do(store, nights.release, slow.token)
    assert _claim(store, NOON + nights.LEASE + 1) is None, "releasing what is not ours frees nothing"


def test_the_next_goes_on_where_the_last_one_came_to(store):
    first = _claim(store, NOON)
    _do(store, nights.keep, first.on(nights.EDGES, 40, {"merged": 3}, NOON))
    _do(store, nights.release, first.token)
    second = _claim(store, NOON + HOUR)
    assert (second.half, second.after, second.counts, second.pages) == (nights.EDGES, 40, {"merged": 3}, 1)


def test_a_run_left_open_for_a_day_begins_anew(store):
    first = _claim(store, NOON)
    _do(store, nights.keep, first.on(nights.EDGES, 40, {"merged": 3}, NOON))
    second = _claim(store, NOON + DAY)
    assert (second.half, second.after, second.counts, second.pages) == (nights.ITEMS, 0, {}, 0)


def test_a_page_prolongs_the_lease(store):
    first = _claim(store, NOON)
    _do(store, nights.keep, first.on(nights.ITEMS, 1, {}, NOON + nights.LEASE - 1))
    assert _claim(store, NOON + nights.LEASE + 1) is None


def test_a_lease_can_be_taken_by_force(store):
    assert _claim(store, NOON) is not None
    assert _claim(store, NOON, force=True) is not None


def test_it_is_due_once_after_its_hour(store):
    def due(now):
        with store.database.read() as connection:
            return nights.due(connection, "acme", now, 3)

    assert not due(NOON), "nothing is there to tidy"
    with store.database.write() as connection:
        writer.observe(connection, store.adjacency, "acme", [Interaction(actor="user:a", target="item:x")], NOON)
    assert not due(NOON + 14 * HOUR), "it began after last night's hour"
    assert due(NOON + 15 * HOUR)
    assert due(NOON + 5 * DAY), "a missed night is made up for"
    run = _claim(store, NOON + 15 * HOUR)
    assert due(NOON + 15 * HOUR), "it is not done yet"
    _do(store, nights.finish, run)
    assert not due(NOON + 16 * HOUR)
    assert not due(NOON + 38 * HOUR)
    assert due(NOON + 39 * HOUR)


def test_a_clock_set_back_neither_loses_the_state_nor_repeats_the_night(store):
    run = _claim(store, NOON)
    _do(store, nights.finish, run)
    again = _claim(store, NOON - DAY)
    assert again.open
    _do(store, nights.finish, again)
    with store.database.read() as connection:
        assert not nights.load(connection, "acme").open


def test_tenants_do_not_share_a_night(store):
    assert _claim(store, NOON) is not None
    with store.database.write() as connection:
        assert nights.claim(connection, "other", NOON) is not None
