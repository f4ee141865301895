"""Now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns an aware UTC datetime."""


def system_clock() -> datetime:
    """The machine's clock."""
    return datetime.now(UTC)
