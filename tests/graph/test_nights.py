"""One worker at a time looks after a tenant, once a night; another takes over from a dead one."""

from dataclasses import replace

import pytest

from collab_layer.errors import StaleLeaseError
from collab_layer.graph import nights, present, writer
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


def _set_lease(store, left):
    """As if the lease of the tenant ended so much later than now, by the database's clock."""
    with store.database.write() as connection:
        ends = present.read(connection) + left
        nights._save(connection, "acme", replace(nights.load(connection, "acme"), until=ends))


def test_nobody_else_gets_it_while_the_lease_lasts(store):
    assert _claim(store, NOON) is not None
    assert _claim(store, NOON) is None
    _set_lease(store, 5 * SECOND)
    assert _claim(store, NOON) is None
    _set_lease(store, -1)
    assert _claim(store, NOON) is not None


@pytest.mark.parametrize("off", [-3 * HOUR, -nights.LEASE, nights.LEASE, 3 * HOUR])
def test_a_workers_own_clock_neither_takes_a_lease_too_early_nor_leaves_one_too_late(store, off):
    assert _claim(store, NOON) is not None
    assert _claim(store, NOON + off) is None
    _set_lease(store, -1)
    assert _claim(store, NOON + off) is not None


def test_a_lease_from_before_the_databases_clock_was_set_back_binds_nobody(store):
    assert _claim(store, NOON) is not None
    _set_lease(store, HOUR)
    assert _claim(store, NOON) is not None


def test_whoever_lost_the_lease_writes_nothing_more(store):
    slow = _claim(store, NOON)
    _set_lease(store, -1)
    fast = _claim(store, NOON)
    with pytest.raises(StaleLeaseError, match="taken"):
        _do(store, nights.keep, slow.on(nights.ITEMS, 5, {}))
    _do(store, nights.keep, fast.on(nights.ITEMS, 7, {}))
    with pytest.raises(StaleLeaseError):
        _do(store, nights.finish, slow)
    _do(store, nights.release, slow.token)
    assert _claim(store, NOON) is None, "releasing what is not ours frees nothing"


def test_the_next_goes_on_where_the_last_one_came_to(store):
    first = _claim(store, NOON)
    _do(store, nights.keep, first.on(nights.EDGES, 40, {"merged": 3}))
    _do(store, nights.release, first.token)
    second = _claim(store, NOON + HOUR)
    assert (second.half, second.after, second.counts, second.pages) == (nights.EDGES, 40, {"merged": 3}, 1)


def test_a_run_left_open_for_a_day_begins_anew(store):
    first = _claim(store, NOON)
    _do(store, nights.keep, first.on(nights.EDGES, 40, {"merged": 3}))
    _set_lease(store, -1)
    second = _claim(store, NOON + DAY)
    assert (second.half, second.after, second.counts, second.pages) == (nights.ITEMS, 0, {}, 0)


def test_a_page_prolongs_the_lease(store):
    first = _claim(store, NOON)
    _set_lease(store, 1)
    _do(store, nights.keep, first.on(nights.ITEMS, 1, {}))
    assert _claim(store, NOON) is None


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
