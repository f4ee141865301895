import pytest

from collab_layer.errors import StaleLeaseError
from collab_layer.graph import erasing, outbox, writer
from collab_layer.types.interaction import Interaction

SECOND = outbox.SECOND


def _observe(store, *names):
    with store.database.write() as connection:
        writer.observe(
            connection, store.adjacency, "acme", [Interaction(actor=name, target="item:x") for name in names], 1
        )


def _claim(store, now):
    with store.database.write() as connection:
        return outbox.claim(connection, "acme", now)


def test_a_claim_is_not_given_twice_while_its_lease_lasts(store):
    _observe(store, "user:a")
    assert _claim(store, 10) is not None
    assert _claim(store, 10 + outbox.LEASE - 1) is None
    assert _claim(store, 10 + outbox.LEASE) is not None


def test_the_slow_worker_is_fenced_off_once_another_took_over(store):
    _observe(store, "user:a")
    slow = _claim(store, 10)
    fast = _claim(store, 10 + outbox.LEASE)
    with store.database.write() as connection:
        outbox.check(connection, fast, "user:a")
        outbox.settle(connection, fast, 20)
    with pytest.raises(StaleLeaseError), store.database.write() as connection:
        outbox.check(connection, slow, "user:a")


def test_an_erasure_drops_work_in_flight(store):
    _observe(store, "user:a")
    held = _claim(store, 10)
    with store.database.write() as connection:
        erasing.fence(connection, "acme")
    with pytest.raises(StaleLeaseError, match="erased"), store.database.write() as connection:
        outbox.check(connection, held, "user:a")


def test_what_came_in_meanwhile_stays_due(store):
    _observe(store, "user:a")
    held = _claim(store, 10)
    _observe(store, "user:a")
    with store.database.write() as connection:
        outbox.settle(connection, held, 20)
    left = _claim(store, 30)
    assert left is not None
    assert len(left.interactions) == 1
    assert not set(left.interactions) & set(held.interactions)


def test_failures_wait_longer_each_time_and_are_parked_with_their_reason(store):
    _observe(store, "user:a")
    now = 10
    for attempt in range(outbox.MAX_ATTEMPTS):
        held = _claim(store, now)
        assert held is not None, attempt
        with store.database.write() as connection:
            parked = outbox.fail(connection, held, now, "the store said no")
        assert _claim(store, now) is None
        now += SECOND * 2**attempt
    assert parked
    with store.database.read() as connection:
        assert outbox.counts(connection, "acme") == (0, 1)


def test_new_work_wakes_a_parked_entity(store):
    _observe(store, "user:a")
    held = _claim(store, 10)
    with store.database.write() as connection:
        for _ in range(outbox.MAX_ATTEMPTS):
            held = held.__class__(**{**{f: getattr(held, f) for f in held.__slots__}, "attempts": outbox.MAX_ATTEMPTS})
            outbox.fail(connection, held, 10, "no")
    assert _claim(store, 10**12) is None
    _observe(store, "user:a")
    assert _claim(store, 10**12) is not None


def test_the_longest_waiting_entity_goes_first(store):
    _observe(store, "user:a")
    with store.database.write() as connection:
        writer.observe(connection, store.adjacency, "acme", [Interaction(actor="user:b", target="item:x")], 99)
    with store.database.read() as connection:
        from collab_layer.graph.names import find

        ids = find(connection, "acme", ["user:a", "user:b"])
    assert _claim(store, 100).entity == ids["user:a"]
    assert _claim(store, 100).entity == ids["user:b"]
