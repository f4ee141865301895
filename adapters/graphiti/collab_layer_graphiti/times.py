"""When a fact holds, from the five times that Graphiti keeps of it.

In:   `valid_at`, `invalid_at`, `created_at`, `expired_at`, `reference_time` as stored.
Out:  the span in which it holds, or None where it never did or its times cannot be read.
Pure: no clock, no I/O.

A fact begins at `valid_at`, else when its source was said, else when it was stored. It ends
at `invalid_at`, else when it was retired. `expired_at` alone does not decide: Graphiti also
sets it on a fact whose end is known and still ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

BEGINS: Final = ("valid_at", "reference_time", "created_at")
ENDS: Final = ("invalid_at", "expired_at")
SLACK: Final = timedelta(days=1)
"""More than any offset from UTC: stores compare times as text, whatever zone they are written in."""


class Span(NamedTuple):
    """From `begin`, inclusive, to `end`, exclusive; None is open."""

    begin: datetime
    end: datetime | None

    def holds(self, at: datetime) -> bool:
        """Whether the fact holds at an aware time."""
        return self.begin <= at and (self.end is None or at < self.end)


class UnreadableTimeError(ValueError):
    """A stored time is no time; `field` says which."""

    def __init__(self, field: str) -> None:
        self.field = field
        super().__init__(f"`{field}` is no time")


def span_of(row: Mapping[str, Any]) -> Span | None:
    """When a stored fact holds; None if it ends before it begins.

    Raises:
        UnreadableTimeError: A time that decides cannot be read, or there is none to begin at.
    """
    begin, end = _first(row, BEGINS), _first(row, ENDS)
    if begin is None:
        raise UnreadableTimeError(BEGINS[0])
    return None if end is not None and end <= begin else Span(begin, end)


def _first(row: Mapping[str, Any], fields: tuple[str, ...]) -> datetime | None:
    for field in fields:
        value = row.get(field)
        if value is not None and value != "":
            return _moment(field, value)
    return None


def _moment(field: str, value: Any) -> datetime:
    """A stored time in UTC; one without a zone is UTC, as Graphiti takes it."""
    native = value.to_native() if hasattr(value, "to_native") else value
    try:
        read = datetime.fromisoformat(native) if isinstance(native, str) else native
        if not isinstance(read, datetime):
            raise UnreadableTimeError(field)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableTimeError(field) from error


def window(at: datetime) -> dict[str, datetime]:
    """Bounds for a query that must lose nothing: what it gives is checked again with `Span.holds`."""
    low, high = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    return {
        "early": at - SLACK if at - low > SLACK else low,
        "late": at + SLACK if high - at > SLACK else high,
    }


__all__ = ["BEGINS", "ENDS", "SLACK", "Span", "UnreadableTimeError", "span_of", "window"]
