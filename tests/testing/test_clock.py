"""A fixed clock moves only when told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from collab_layer.errors import InputError
from collab_layer.testing import FixedClock


def test_it_stands_still_until_it_is_moved():
    clock = FixedClock()
    start = clock()
    assert clock() == start
    assert clock.advance(days=1, hours=2, minutes=3) == start + timedelta(days=1, hours=2, minutes=3)
    assert clock.advance(seconds=-60) == clock()
    assert clock() - start == timedelta(days=1, hours=2, minutes=2)


def test_it_reads_utc_whatever_zone_it_was_given():
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    clock = FixedClock(noon)
    assert clock().tzinfo is UTC
    assert clock() == clock.set(noon) == noon


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(InputError, match="zone"):
        FixedClock(datetime(2026, 3, 1))
    with pytest.raises(InputError, match="zone"):
        FixedClock().set(datetime(2026, 3, 1))
