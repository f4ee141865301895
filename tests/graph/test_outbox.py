import time

import pytest
from sqlalchemy import update

from collab_layer.graph import erasing, outbox, present, writer
from collab_layer.graph.names import find
from collab_layer.graph.tables import work
from collab_layer.types.interaction import Interaction
from collab_layer.types.time import DAY, SECOND

SHORT = SECOND // 5


def _observe(store, *names, now=1):
    with store.database.write() as connection:
        told = [Interaction(actor=name, target="item:x") for name in names]
        writer.observe(connection, store.adjacency, "acme", told, now)


def _claims(store, lease=outbox.LEASE, **options):
    with store.database.write() as connection:
        return outbox.claim(connection, "acme", lease=lease, **options)


def _claim(store, lease=outbox.LEASE, **options):
    return next(iter(_claims(store, lease, **options)), None)


def _ours(store, *held):
    with store.database.write() as connection:
        return outbox.check(connection, held)[1]


def _set(store, **values):
    with store.database.write() as connection:
        connection.execute(update(work).values(**values))


def _get(store, column):
    with store.database.read() as connection:
        return connection.execute(column.table.select()).mappings().one()[column.name]


def test_the_databases_clock_tells_microseconds(store):
    with store.database.read() as connection:
        assert abs(present.read(connection) - time.time() * SECOND) < 5 * SECOND


def test_a_claim_is_not_given_twice_while_its_lease_lasts(store):
    _observe(store, "user:a")
    assert _claim(store, SHORT) is not None
    assert _claim(store) is None
    time.sleep(SHORT / SECOND + 0.05)
    assert _claim(store) is not None


def test_the_slow_worker_is_fenced_off_once_another_took_over(store):
    _observe(store, "user:a")
    slow = _claim(store, 0)
    time.sleep(0.01)
    fast = _claim(store)
    assert _ours(store, slow) == []
    assert _ours(store, fast) == [fast]
    with store.database.write() as connection:
        outbox.settle(connection, [fast])
    assert _ours(store, slow) == []


def test_an_erasure_drops_work_in_flight(store):
    _observe(store, "user:a")
    held = _claim(store)
    with store.database.write() as connection:
        erasing.fence(connection, "acme")
    assert _ours(store, held) == []


def test_what_came_in_meanwhile_stays_due(store):
    _observe(store, "user:a")
    held = _claim(store)
    _observe(store, "user:a")
    with store.database.write() as connection:
        outbox.settle(connection, [held])
    left = _claim(store)
    assert left is not None
    assert len(left.interactions) == 1
    assert not set(left.interactions) & set(held.interactions)


def test_failures_wait_longer_each_time_and_are_parked_with_their_reason(store):
    _observe(store, "user:a")
    for attempt in range(outbox.MAX_ATTEMPTS):
        held = _claim(store, ignore_due=True)
        assert held is not None, attempt
        with store.database.write() as connection:
            before = present.read(connection)
            parked = outbox.fail(connection, held, "the store said no")
        assert 0 <= _get(store, work.c.due) - before - SECOND * 2**attempt < SECOND
        assert _claim(store) is None
    assert parked
    with store.database.read() as connection:
        assert outbox.counts(connection, "acme") == (0, 1)


def test_new_work_wakes_a_parked_entity(store):
    _observe(store, "user:a")
    held = _claim(store)
    with store.database.write() as connection:
        for _ in range(outbox.MAX_ATTEMPTS):
            held = held.__class__(**{**{f: getattr(held, f) for f in held.__slots__}, "attempts": outbox.MAX_ATTEMPTS})
            outbox.fail(connection, held, "no")
    assert _claim(store, ignore_due=True) is None
    _observe(store, "user:a")
    assert _claim(store) is not None


def _ids(store, *names):
    with store.database.read() as connection:
        found = find(connection, "acme", names)
    return [found[name] for name in names]


def test_the_longest_waiting_entity_goes_first(store):
    _observe(store, "user:a")
    time.sleep(0.005)
    _observe(store, "user:b")
    a, b = _ids(store, "user:a", "user:b")
    assert _claim(store).entity == a
    assert _claim(store).entity == b


def test_whoever_tells_more_keeps_its_place_in_line(store):
    for name in ("user:a", "user:b", "user:a"):
        _observe(store, name)
        time.sleep(0.005)
    a, _ = _ids(store, "user:a", "user:b")
    assert _claim(store).entity == a


@pytest.mark.parametrize("off", [-DAY, DAY])
def test_the_clock_of_a_writer_decides_nothing(store, off):
    _observe(store, "user:a", now=time.time_ns() // 1_000 + off)
    time.sleep(0.005)
    _observe(store, "user:b", now=time.time_ns() // 1_000)
    a, b = _ids(store, "user:a", "user:b")
    assert [_claim(store).entity, _claim(store).entity] == [a, b]


def test_what_was_promised_before_the_databases_clock_was_set_back_binds_nobody(store):
    _observe(store, "user:a")
    with store.database.read() as connection:
        ahead = present.read(connection) + DAY
    _set(store, due=ahead, lease_until=ahead)
    assert _claim(store) is not None


def _told(store, who, count):
    with store.database.write() as connection:
        told = [Interaction(actor=who, target=f"item:{n}") for n in range(count)]
        writer.observe(connection, store.adjacency, "acme", told, 1)


def test_several_are_claimed_at_once_and_each_is_lost_or_settled_by_itself(store):
    _observe(store, "user:a", "user:b", "user:c")
    a, b, c = held = _claims(store, most=8)
    with store.database.write() as connection:
        outbox.disturb(connection, "acme", b.entity)
    assert _ours(store, *held) == [a, c]
    with store.database.write() as connection:
        outbox.settle(connection, [a])
        outbox.release(connection, [c])
    assert [one.entity for one in _claims(store, most=8)] == [b.entity, c.entity]


def test_what_is_claimed_at_once_is_no_more_than_one_may_take_on(store):
    _told(store, "user:few", 1)
    _told(store, "user:many", outbox.MAX_BATCH)
    _told(store, "user:more", 1)
    assert [len(one.interactions) for one in _claims(store, most=8)] == [1]
    assert [len(one.interactions) for one in _claims(store, most=8)] == [outbox.MAX_BATCH]
    assert [len(one.interactions) for one in _claims(store, most=8)] == [1]


def test_an_entity_whose_records_are_read_again_leaves_room_for_few_others(store):
    _observe(store, *(f"user:{n}" for n in range(8)))
    with store.database.write() as connection:
        outbox.queue_refresh(connection, "acme", _ids(store, *(f"user:{n}" for n in range(8))))
    assert len(_claims(store, most=8)) == outbox.MAX_BATCH // outbox.REREAD


def test_what_is_free_is_counted_as_far_as_it_matters(store):
    _observe(store, "user:a", "user:b")
    with store.database.read() as connection:
        assert outbox.free(connection, "acme") == 2
        assert outbox.free(connection, "other") == 0
    held = _claim(store)
    with store.database.write() as connection:
        outbox.fail(connection, held, "no")
    with store.database.read() as connection:
        assert (outbox.free(connection, "acme"), outbox.free(connection, "acme", ignore_due=True)) == (1, 2)
