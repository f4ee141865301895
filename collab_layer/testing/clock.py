"""A clock that moves only when told to.

In:   a start, and steps.
Out:  aware UTC datetimes; safe to share between threads.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Lock

from collab_layer.types.time import utc

START = datetime(2026, 1, 1, tzinfo=UTC)


class FixedClock:
    """Stands still at `start` until `advance` or `set` is called.

    Args:
        start: An aware time; 1 January 2026 UTC if left out.

    Raises:
        InputError: `start` has no time zone.
    """

    def __init__(self, start: datetime = START) -> None:
        self._now = utc(start)
        self._lock = Lock()

    def __call__(self) -> datetime:
        """The time it stands at."""
        return self._now

    def advance(
        self,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        microseconds: float = 0,
    ) -> datetime:
        """Move by a duration, also a negative one, and return the new time."""
        step = timedelta(
            weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=microseconds
        )
        with self._lock:
            self._now += step
            return self._now

    def set(self, now: datetime) -> datetime:
        """Jump to an aware time and return it in UTC.

        Raises:
            InputError: The time has no time zone.
        """
        with self._lock:
            self._now = utc(now)
            return self._now


__all__ = ["START", "FixedClock"]
