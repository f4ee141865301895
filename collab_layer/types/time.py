"""Time at the edge and inside.

At the edge: aware datetimes in UTC. Inside: microseconds since 1970 as int64, so
that columns of times are numpy arrays.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator

from collab_layer.errors import InputError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
"""Microseconds in a second."""
DAY = 86_400 * SECOND
"""Microseconds in a day."""
FOREVER = 2**62
"""A time after every other; `valid_to` of what still holds."""


def utc(value: Any) -> datetime:
    """Make an aware UTC datetime of a datetime or ISO 8601 text.

    Raises:
        InputError: No time zone, one that cannot be used, unreadable, or outside years 1 to 9999.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise InputError(f"`{value[:40]}` is no ISO 8601 time, for example 2026-05-01T12:00:00Z") from error
    if not isinstance(value, datetime):
        raise InputError(f"`{value!r}` is no time; pass a datetime with a time zone")
    try:
        offset = value.utcoffset()
    except (ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError) as error:
        # `utcoffset` runs the caller's own zone; an abstract `tzinfo` raises NotImplementedError.
        raise InputError("the time's zone does not say how far it is from UTC; use zoneinfo or UTC") from error
    if offset is None:
        raise InputError(
            f"the time {value.isoformat()} has no zone; add tzinfo, for example datetime.now(timezone.utc)"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InputError(f"the time {value.isoformat()} is out of range") from error


def micros(value: datetime) -> int:
    """Microseconds since 1970 of an aware datetime."""
    return (value - EPOCH) // timedelta(microseconds=1)


def moment(value: int) -> datetime:
    """The aware UTC datetime of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=value)


UtcTime = Annotated[datetime, BeforeValidator(utc)]
