"""Which of our keys is which edge of Zep's: v4 takes no id from a client and has no upsert.

In:   keys, owners, uuids; never a text.
Out:  rows of a SQLite file beside the layer's database; claims, so that one writer at a time
      works on an owner, in whichever thread or process.

What Zep holds decides. The file saves looking for it, and a lost file is made good by looking;
only the members of mirrored groups are known nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from collab_layer.errors import BackendError, BackendTimeoutError
from collab_layer.ports.write_ahead import write_ahead

LEASE_S = 30.0
"""How long a claim outlives its holder; it is renewed while the holder lives."""
_BUSY_S = 15.0
_PAUSE_S = (0.02, 0.5)
_CHUNK = 400
_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    store TEXT, key TEXT, owner TEXT NOT NULL, graph TEXT NOT NULL, edge TEXT NOT NULL,
    PRIMARY KEY (store, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS graphs (
    store TEXT, owner TEXT, graph TEXT NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY (store, owner)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (
    store TEXT, place TEXT, token TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (store, place)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS members (
    store TEXT, grp TEXT, member TEXT, team TEXT NOT NULL, state TEXT NOT NULL, token TEXT NOT NULL,
    PRIMARY KEY (store, grp, member)
) WITHOUT ROWID;
"""

T = TypeVar("T")


class Item(NamedTuple):
    """What was written under a key."""

    key: str
    owner: str
    graph: str
    edge: str


class Member(NamedTuple):
    """A member of a mirrored group.

    Attributes:
        member: The entity.
        team: The entity that stands for the group.
        state: `joining` and `leaving` until the layer has been told, else `present`.
        token: Under which the layer is told, so that telling it again changes nothing.
    """

    member: str
    team: str
    state: str
    token: str


class Ledger:
    """The rows of one store.

    Args:
        path: The SQLite file; made at the first use.
        store: Name of the backend.
    """

    def __init__(self, path: str | os.PathLike[str], store: str) -> None:
        self._path, self._store, self._made = os.fspath(path), store, False

    # -- items -----------------------------------------------------------------------------

    async def items(self, keys: Sequence[str]) -> dict[str, Item]:
        """What was written under keys, as far as this file knows."""
        query = "SELECT key, owner, graph, edge FROM items WHERE store = ? AND key IN ({})"

        def read(db: sqlite3.Connection) -> dict[str, Item]:
            found: dict[str, Item] = {}
            for start in range(0, len(keys), _CHUNK):
                part = keys[start : start + _CHUNK]
                rows = db.execute(query.format(",".join("?" * len(part))), (self._store, *part))
                found |= {row[0]: Item(*row) for row in rows}
            return found

        return await self._run(read)

    async def keep(self, items: Iterable[Item]) -> None:
        """Note what was written; what a key had before gives way."""
        rows = [(self._store, *item) for item in items]
        await self._run(lambda db: db.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?)", rows))

    async def drop(self, keys: Iterable[str]) -> None:
        """Forget keys."""
        rows = [(self._store, key) for key in keys]
        await self._run(lambda db: db.executemany("DELETE FROM items WHERE store = ? AND key = ?", rows))

    async def drop_edges(self, graph: str, edges: Iterable[str]) -> None:
        """Forget whatever was noted of edges."""
        rows = [(self._store, graph, edge) for edge in edges]
        sql = "DELETE FROM items WHERE store = ? AND graph = ? AND edge = ?"
        await self._run(lambda db: db.executemany(sql, rows))

    # -- reserved graphs ---------------------------------------------------------------------

    async def graph(self, owner: str) -> tuple[str | None, int]:
        """The reserved graph of an owner, and how often anything was taken back from it."""
        sql = "SELECT graph, epoch FROM graphs WHERE store = ? AND owner = ?"
        row = await self._run(lambda db: db.execute(sql, (self._store, owner)).fetchone())
        return (row[0], row[1]) if row else (None, 0)

    async def keep_graph(self, owner: str, graph: str) -> None:
        """Note the reserved graph of an owner."""
        sql = "INSERT OR REPLACE INTO graphs VALUES (?, ?, ?, 0)"
        await self._run(lambda db: db.execute(sql, (self._store, owner, graph)))

    async def drop_graph(self, owner: str, graph: str) -> None:
        """Forget a reserved graph and all that was in it."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM graphs WHERE store = ? AND owner = ?", (self._store, owner))
            db.execute("DELETE FROM items WHERE store = ? AND graph = ?", (self._store, graph))

        await self._run(work)

    async def turn(self, owner: str) -> int:
        """Raise an owner's epoch, so that no idempotency key of before is used again; the new one."""
        sql = "UPDATE graphs SET epoch = epoch + 1 WHERE store = ? AND owner = ? RETURNING epoch"
        row = await self._run(lambda db: db.execute(sql, (self._store, owner)).fetchone())
        return int(row[0]) if row else 0

    # -- groups --------------------------------------------------------------------------------

    async def members(self, group: str) -> dict[str, Member]:
        """Who is in a group, or was when it was last looked at."""
        sql = "SELECT member, team, state, token FROM members WHERE store = ? AND grp = ?"
        rows = await self._run(lambda db: db.execute(sql, (self._store, group)).fetchall())
        return {row[0]: Member(*row) for row in rows}

    async def groups(self) -> list[str]:
        """Groups that were mirrored and have members."""
        sql = "SELECT DISTINCT grp FROM members WHERE store = ? ORDER BY grp"
        return [row[0] for row in await self._run(lambda db: db.execute(sql, (self._store,)).fetchall())]

    async def keep_members(self, group: str, members: Iterable[Member]) -> None:
        """Note how members stand."""
        rows = [(self._store, group, *one) for one in members]
        sql = "INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?, ?)"
        await self._run(lambda db: db.executemany(sql, rows))

    async def drop_members(self, group: str, members: Iterable[str]) -> None:
        """Forget members that have left."""
        rows = [(self._store, group, one) for one in members]
        sql = "DELETE FROM members WHERE store = ? AND grp = ? AND member = ?"
        await self._run(lambda db: db.executemany(sql, rows))

    # -- claims ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def alone(self, place: str, wait_s: float) -> AsyncGenerator[None]:
        """Work on a place while nobody else does.

        Raises:
            BackendTimeoutError: Somebody else still does after `wait_s` seconds.
        """
        token = uuid.uuid4().hex
        await self._claim(place, token, wait_s)
        renewing = asyncio.create_task(self._renew(place, token))
        try:
            yield
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing
            sql = "DELETE FROM claims WHERE store = ? AND place = ? AND token = ?"
            await asyncio.shield(self._run(lambda db: db.execute(sql, (self._store, place, token))))

    async def _claim(self, place: str, token: str, wait_s: float) -> None:
        pause, until = _PAUSE_S[0], time.monotonic() + wait_s
        while not await self._run(lambda db: self._take(db, place, token)):
            if time.monotonic() >= until:
                raise BackendTimeoutError(self._store, f"another writer has `{place}` in hand")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE_S[1])

    def _take(self, db: sqlite3.Connection, place: str, token: str) -> bool:
        sql = (
            "INSERT INTO claims VALUES (?, ?, ?, ?) ON CONFLICT (store, place) DO UPDATE "
            "SET token = excluded.token, until = excluded.until "
            "WHERE claims.until <= ? OR claims.token = excluded.token"
        )
        now = time.time()
        return db.execute(sql, (self._store, place, token, now + LEASE_S, now)).rowcount == 1

    async def _renew(self, place: str, token: str) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 3)
            await self._run(lambda db: self._take(db, place, token))

    # -- the file --------------------------------------------------------------------------------

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._with_file, work)

    def _with_file(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)) as db:
                db.execute("PRAGMA secure_delete = ON")
                if not self._made:
                    self._make(db)
                db.execute("BEGIN IMMEDIATE")
                try:
                    made = work(db)
                except BaseException:
                    db.execute("ROLLBACK")
                    raise
                db.execute("COMMIT")
                return made
        except sqlite3.Error as error:
            raise BackendError(self._store, f"the ledger `{self._path}` cannot be used: {_why(error)}") from error

    def _make(self, db: sqlite3.Connection) -> None:
        if write_ahead(db, wait_s=_BUSY_S) not in ("wal", "memory"):
            raise sqlite3.OperationalError("write-ahead logging is not available there")
        db.executescript(_SCHEMA)
        self._made = True


def _why(error: sqlite3.Error) -> str:
    return f"{error}; check its folder, or choose another `ledger`"


__all__ = ["LEASE_S", "Item", "Ledger", "Member"]
