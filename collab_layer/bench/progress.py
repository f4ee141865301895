"""Who is told how far a measurement is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much is done, and of how much."""


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""
    return None


__all__ = ["Progress", "silent"]
