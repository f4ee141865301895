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
from datetime import datetime
from typing import Any, Final, cast

from collab_layer.ports.stored_facts import Span, around, first_moment, moment, span_between

BEGINS: Final = ("valid_at", "created_at")
ENDS: Final = ("invalid_at", "expired_at")
ENDED: Final = "collab_ended_at"
"""Attribute with the time from which an owner holds a fact no longer."""
Condition = tuple[str, str, datetime | None]
"""Field, operator, value."""


def span_of(row: Mapping[str, Any]) -> Span | None:
    """When a stored fact holds; None if it ends before it begins.

    Raises:
        UnreadableTimeError: A time that decides cannot be read, or there is none to begin at.
    """
    return span_between(first_moment(row, BEGINS), _end(row), BEGINS[0])


def _end(row: Mapping[str, Any]) -> datetime | None:
    attributes = row.get("attributes")
    ours = cast("Mapping[str, Any]", attributes).get(ENDED) if isinstance(attributes, Mapping) else None
    ends = [first_moment(row, ENDS), None if ours is None else moment(ENDED, ours)]
    return min((end for end in ends if end is not None), default=None)


def window(at: datetime) -> list[list[Condition]]:
    """What Zep is asked for so that nothing that holds at a time is lost: any of these groups, all of each.

    What comes back is checked again with `Span.holds`.
    """
    early, late = around(at)
    begins: list[list[Condition]] = [
        [("valid_at", "lte", late)],
        [("valid_at", "is_null", None), ("created_at", "lte", late)],
    ]
    ends: list[Condition] = [("invalid_at", "gt", early), ("invalid_at", "is_null", None)]
    return [[*begin, end] for begin in begins for end in ends]


__all__ = ["BEGINS", "ENDED", "ENDS", "Condition", "span_of", "window"]
