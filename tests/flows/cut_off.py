"""A call that is cancelled while its thread, which nothing can stop, waits for the database."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

from sqlalchemy import event


async def cut_off_as_it_writes(tools, file, call):
    """Cancel a coroutine just before its first write to an SQLite file goes through, and wait for its end."""
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    def look(connection, cursor, statement, *rest):
        if statement == "BEGIN IMMEDIATE":
            loop.call_soon_threadsafe(begun.set)

    event.listen(tools.store.database.engine, "before_cursor_execute", look)
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(call)
        await asyncio.wait_for(begun.wait(), 10)
        task.cancel()
        await asyncio.sleep(0)
        holder.execute("ROLLBACK")
    await asyncio.wait({task}, timeout=10)
    assert task.cancelled()
