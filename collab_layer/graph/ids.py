"""Ids inside the store: time-ordered integers, unique across processes.

63 bits: 41 of milliseconds since 2020, 12 of a random process number, 10 of a counter.
Source of the layout: Twitter's Snowflake (2010); the process number is random here, so
that nobody has to hand numbers out.
"""

from __future__ import annotations

import os
import secrets
import threading
import time

EPOCH_MS = 1_577_836_800_000
_PROCESS_BITS, _COUNT_BITS = 12, 10


class IdMaker:
    """Makes ids that rise within a process, also when the clock is set back."""

    def __init__(self) -> None:
        self._process = secrets.randbits(_PROCESS_BITS)
        self._lock = threading.Lock()
        self._last = 0
        self._count = 0

    def __call__(self) -> int:
        """The next id."""
        with self._lock:
            now = time.time_ns() // 1_000_000 - EPOCH_MS
            if now > self._last:
                self._last, self._count = now, 0
            elif self._count + 1 < 1 << _COUNT_BITS:
                self._count += 1
            else:
                self._last, self._count = self._last + 1, 0
            return (self._last << (_PROCESS_BITS + _COUNT_BITS)) | (self._process << _COUNT_BITS) | self._count


next_id = IdMaker()
if hasattr(os, "register_at_fork"):  # two children of one process must not share its number
    os.register_at_fork(after_in_child=next_id.__init__)


def interaction_id(number: int) -> str:
    """The opaque id of an interaction."""
    return f"i{number:x}"


def number_of(id_: str) -> int | None:
    """The number behind an opaque id such as `i1a2b`; None if there is none."""
    try:
        number = int(id_[1:], 16)
    except ValueError:
        return None
    return number if 0 <= number < 2**63 else None


def pair_of(id_: str) -> tuple[int, int] | None:
    """Owner and thing of a holding's id, `h1f.2a`; None if it is none."""
    owner, _, thing = id_[1:].partition(".")
    try:
        return int(owner, 16), int(thing, 16)
    except ValueError:
        return None
