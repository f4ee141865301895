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
from datetime import datetime
from typing import Any, Final

from collab_layer.ports.stored_facts import Span, around, first_moment, span_between

BEGINS: Final = ("valid_at", "reference_time", "created_at")
ENDS: Final = ("invalid_at", "expired_at")


def span_of(row: Mapping[str, Any]) -> Span | None:
    """When a stored fact holds; None if it ends before it begins.

    Raises:
        UnreadableTimeError: A time that decides cannot be read, or there is none to begin at.
    """
    return span_between(first_moment(row, BEGINS), first_moment(row, ENDS), BEGINS[0])


def window(at: datetime) -> dict[str, datetime]:
    """Bounds for a query that must lose nothing, as its parameters."""
    early, late = around(at)
    return {"early": early, "late": late}


__all__ = ["BEGINS", "ENDS", "span_of", "window"]
