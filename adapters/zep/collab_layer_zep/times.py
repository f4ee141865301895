"""When a fact holds, from the times that Zep keeps of it.

In:   `valid_at`, `invalid_at`, `created_at`, `expired_at` and our `collab_ended_at`, as text.
Out:  the span in which it holds, or None where it never did; the filter for a moment.
Pure: no clock, no I/O.

A fact begins at `valid_at`, else when it was stored. It ends at `invalid_at`, else when Zep
retired it. `expired_at` alone does not decide: Zep also sets it on a fact whose end is known.
Zep v4 cannot set an end afterwards; `collab_ended_at` is an attribute that stands for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, cast

BEGINS: Final = ("valid_at", "created_at")
ENDS: Final = ("invalid_at", "expired_at")
ENDED: Final = "collab_ended_at"
"""Attribute with the time from which an owner holds a fact no longer."""
SLACK: Final = timedelta(days=1)
"""More than any offset from UTC, should the service compare times as text."""

Condition = tuple[str, str, datetime | None]
"""Field, operator, value."""


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
    begin, end = _first(row, BEGINS), _end(row)
    if begin is None:
        raise UnreadableTimeError(BEGINS[0])
    return None if end is not None and end <= begin else Span(begin, end)


def _end(row: Mapping[str, Any]) -> datetime | None:
    attributes = row.get("attributes")
    ours = cast("Mapping[str, Any]", attributes).get(ENDED) if isinstance(attributes, Mapping) else None
    ends = [_first(row, ENDS), None if ours is None else _moment(ENDED, ours)]
    return min((end for end in ends if end is not None), default=None)


def _first(row: Mapping[str, Any], fields: tuple[str, ...]) -> datetime | None:
    for field in fields:
        value = row.get(field)
        if value is not None and value != "":
            return _moment(field, value)
    return None


def _moment(field: str, value: Any) -> datetime:
    """A stored time in UTC; one without a zone is UTC."""
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(read, datetime):
            raise UnreadableTimeError(field)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableTimeError(field) from error


def window(at: datetime) -> list[list[Condition]]:
    """What Zep is asked for so that nothing that holds at a time is lost: any of these groups, all of each.

    What comes back is checked again with `Span.holds`.
    """
    low, high = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    late = at + SLACK if high - at > SLACK else high
    early = at - SLACK if at - low > SLACK else low
    begins: list[list[Condition]] = [
        [("valid_at", "lte", late)],
        [("valid_at", "is_null", None), ("created_at", "lte", late)],
    ]
    ends: list[Condition] = [("invalid_at", "gt", early), ("invalid_at", "is_null", None)]
    return [[*begin, end] for begin in begins for end in ends]


__all__ = ["BEGINS", "ENDED", "ENDS", "SLACK", "Condition", "Span", "UnreadableTimeError", "span_of", "window"]
