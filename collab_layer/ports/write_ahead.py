"""A SQLite file that several processes open at the same moment, the first of them ever included.

In:   a connection without a transaction, and how long to wait.
Out:  how the file keeps its log from now on.
"""

from __future__ import annotations

import random
import sqlite3
import time
from typing import Final

_PAUSE_S: Final = 0.01


def write_ahead(connection: sqlite3.Connection, *, wait_s: float) -> str:
    """Have a file keep a write-ahead log; the mode it has, which is another where none can be kept, as in memory.

    To turn a new file takes it for oneself. SQLite gives up at once where somebody else is about to, whatever
    timeout the connection has, since two who wait for each other would wait for ever; so we ask again.

    Args:
        connection: Outside of any transaction.
        wait_s: How long others may hold the file, in seconds.

    Raises:
        sqlite3.OperationalError: Somebody still holds it then, or it cannot be read.
    """
    until = time.monotonic() + wait_s
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(random.uniform(_PAUSE_S / 2, _PAUSE_S))
        else:
            return str(mode)


__all__ = ["write_ahead"]
