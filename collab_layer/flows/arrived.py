"""Records as they were told, until the worker has read them: a store may have moved on by then.

In memory only, and bounded: nobody else's text is written down here that a grant does not cover. What
is not here any more is asked of the store, which may only know the newest version.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from collab_layer.types.entity import MemoryRecord, MemoryRef

MAX_CHARS = 16_000_000
_MIN_COST = 200

Key = tuple[str, str, str, str]


class Arrived:
    """One process's records, oldest out first; safe from any thread."""

    def __init__(self) -> None:
        self._records: OrderedDict[Key, MemoryRecord] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def put(self, tenant: str, record: MemoryRecord) -> None:
        """Keep a record for a while."""
        with self._lock:
            self._drop(_key(tenant, record.ref))
            self._records[_key(tenant, record.ref)] = record
            self._chars += _cost(record)
            while self._chars > MAX_CHARS:
                self._drop(next(iter(self._records)))

    def get(self, tenant: str, ref: MemoryRef) -> MemoryRecord | None:
        """The record of that very version, if it is still here."""
        return self._records.get(_key(tenant, ref))

    def forget(self, tenant: str) -> None:
        """Something was erased: keep nothing of the tenant."""
        with self._lock:
            for key in [key for key in self._records if key[0] == tenant]:
                self._drop(key)

    def done(self, tenant: str, ref: MemoryRef) -> None:
        """The worker has read it."""
        with self._lock:
            self._drop(_key(tenant, ref))

    def _drop(self, key: Key) -> None:
        gone = self._records.pop(key, None)
        self._chars -= 0 if gone is None else _cost(gone)


def _key(tenant: str, ref: MemoryRef) -> Key:
    return tenant, ref.backend, ref.id, ref.version


def _cost(record: MemoryRecord) -> int:
    return len(record.text) + _MIN_COST
