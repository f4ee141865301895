"""Erased rows to a file that holds none of their bytes; then their receipts no longer wait for it.

In:   what is committed as erased; the rows of `awaiting` that say so.
Out:  the file written anew and its log folded (SQLite), the rows gone. Whoever reads meanwhile keeps the
      old bytes in the log: then everything is left to the next `drain` or idle worker, after a restart too.
Never raises for a store that is busy or full: the erasure itself is committed, its receipt stays pending.
"""

from __future__ import annotations

import logging

from collab_layer.errors import StoreError
from collab_layer.flows.tools import Tools
from collab_layer.graph import receipts

log = logging.getLogger("collab_layer")

AT_ONCE_BYTES = 32 * 2**20
"""A larger file is written anew by a worker, once for all that was erased by then."""


def at_once(tools: Tools) -> bool:
    """Take erased bytes out of the file if that is quick; whether none is left. Blocking."""
    if tools.store.database.size() <= AT_ONCE_BYTES:
        return scrub(tools)
    tools.store.database.compact()
    return False


def scrub(tools: Tools) -> bool:
    """Take erased bytes out of the file and its log; whether none is left. Blocking."""
    database = tools.store.database
    try:
        with database.read() as connection:
            owed = receipts.file_owed(connection)
        if not owed:
            return not database.uncompacted or database.compact()
        if not owed <= database.rebuilt_for:  # a reader only held up the folding
            database.rebuild()
            database.rebuilt_for = owed
        if not database.compact():
            return False
        with database.write() as connection:
            receipts.file_done(connection, owed)
    except StoreError as error:
        log.warning("erased bytes stay in the file for now, and receipts pending: %s", error)
        return False
    return True


__all__ = ["AT_ONCE_BYTES", "at_once", "scrub"]
