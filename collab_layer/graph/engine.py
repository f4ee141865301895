"""A store URL to an engine: SQLite in WAL mode, or PostgreSQL.

In:   a URL or a file name.
Out:  a `Database` whose `read()` and `write()` give one transaction each.
Every failure of the driver leaves as one of our own errors; a transaction that fails
leaves nothing behind.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    InvalidatePoolError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from collab_layer.errors import (
    InputError,
    StoreBusyError,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from collab_layer.graph import bulk
from collab_layer.ports.write_ahead import write_ahead

BUSY_TIMEOUT_S = 5.0
CHECKPOINT_WAIT_MS = 500
LOG_PAGES = 4_000
"""Pages of the write-ahead log, 16 MB, after which whoever commits folds it into the file (SQLite).

With SQLite's own 1,000 one answer in fifteen did so, and took 4 ms longer.
"""
PREPARED = 300
"""Statements that one connection of PostgreSQL keeps prepared; a worker and readers of one process have some 150."""
TRUSTED_S = 1.0
"""For how long a connection of which the system reports no end is taken to stand without asking the server."""


class Database:
    """One database, shared by every tenant and thread of the process."""

    def __init__(self, url: str, *, durable: bool = False) -> None:
        self.url = parse_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.label = self.url.database if self.sqlite else self.url.render_as_string(hide_password=True)
        self.durable = durable
        self.uncompacted = False
        """Replaced bytes may still lie in the write-ahead log."""
        self.rebuilt_for: frozenset[tuple[str, str]] = frozenset()
        """Erasures, as (tenant, receipt), whose bytes are in the file no more, and perhaps in the log."""
        self._writing = threading.RLock()
        try:
            self.engine = self._engine()
        except ModuleNotFoundError as error:
            raise InputError("PostgreSQL needs the extra: pip install 'collab-layer[postgres]'") from error

    def _engine(self) -> Engine:
        if self.sqlite:
            engine = create_engine(self.url, pool_size=8, max_overflow=32, connect_args={"timeout": BUSY_TIMEOUT_S})
            event.listen(engine, "connect", self._prepare_sqlite)
            return engine
        # The connection used last: what is asked often is prepared there.
        engine = create_engine(self.url, pool_size=8, max_overflow=32, pool_use_lifo=True)
        event.listen(engine, "connect", self._prepare_postgresql)
        event.listen(engine, "checkout", self._look)
        return engine

    def _prepare_sqlite(self, connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        write_ahead(connection, wait_s=BUSY_TIMEOUT_S)
        for pragma in (
            "secure_delete=ON",
            f"synchronous={'FULL' if self.durable else 'NORMAL'}",
            "foreign_keys=OFF",
            "temp_store=MEMORY",
            "cache_size=-16384",
            "mmap_size=268435456",
            f"wal_autocheckpoint={LOG_PAGES}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    def _prepare_postgresql(self, connection: Any, record: ConnectionPoolEntry) -> None:
        from psycopg.types.numeric import Int8BinaryDumper

        # By their size the driver would tell numbers apart, and prepare a statement anew for every mixture.
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        connection.prepared_max = PREPARED

    def _look(self, connection: Any, record: ConnectionPoolEntry, proxy: PoolProxiedConnection) -> None:
        """Exchange a connection that the server has ended, as one that is restarted does (PostgreSQL).

        The end of a connection that was used just now is known here as soon as the server's word of it has come; what
        is asked before that fails, as it does where the connection ends in the middle of a transaction. Of one that lay
        idle the server is asked, since a machine between, or the server's own, may have forgotten it without a word.
        """
        now = time.monotonic()
        used = record.info.get("used", now)
        record.info["used"] = now
        try:
            if now - used > TRUSTED_S:
                self.engine.dialect.do_ping(connection)
            else:
                connection.pgconn.consume_input()  # reads what was sent unasked: the reason first,
                connection.pgconn.consume_input()  # then the end. Without either it returns at once
        except connection.OperationalError as error:
            raise InvalidatePoolError from error

    @contextmanager
    def read(self) -> Generator[Connection]:
        """One snapshot; nothing can be written through it by our own code."""
        with self._translated(), self.engine.connect() as connection:
            if self.sqlite:
                connection.exec_driver_sql("BEGIN")
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection
            connection.rollback()

    @contextmanager
    def write(self) -> Generator[Connection]:
        """One transaction: committed as a whole on exit, or not at all."""
        if not self.sqlite:
            with self._translated(), self.engine.begin() as connection:
                yield connection
            return
        with self._writing, self._translated(), self.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def dispose(self) -> None:
        """Close every connection; the WAL is folded back by the last one."""
        self.engine.dispose()

    def compact(self) -> bool:
        """Fold the write-ahead log into the file, so that replaced bytes leave it too (SQLite).

        Whoever reads just now keeps the log alive; then the next `drain`, an idle worker or
        the closing of the last connection folds it. Whether it worked.
        """
        if not self.sqlite:
            return True
        with self._translated(), self.engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={CHECKPOINT_WAIT_MS}")
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar_one()
            connection.exec_driver_sql(f"PRAGMA busy_timeout={int(BUSY_TIMEOUT_S * 1000)}")
        self.uncompacted = bool(busy)
        return not busy

    def rebuild(self) -> None:
        """Write the file anew from its rows (SQLite); `compact` then takes the old bytes out of the log.

        `secure_delete` overwrites rows where they lie now. Where SQLite had moved them from, as pages were
        split and packed, it leaves a copy that no row points to. Reading goes on meanwhile; writers wait.
        """
        if not self.sqlite:
            return
        with self._writing, self._translated(), closing(self._own_connection()) as connection:
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute("VACUUM")

    def size(self) -> int:
        """Bytes of the file (SQLite), without the log."""
        return Path(str(self.url.database)).stat().st_size if self.sqlite else 0

    def _own_connection(self) -> sqlite3.Connection:
        """Outside of the pool: what is rebuilt lies in a temporary file meanwhile, not in memory."""
        return sqlite3.connect(str(self.url.database), timeout=BUSY_TIMEOUT_S, isolation_level=None)

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._own(error) from error
        except PoolTimeoutError as error:
            raise StoreBusyError(str(self.label), "all its connections are in use; try again") from error
        except sqlite3.Error as error:
            raise self._own(error) from error

    def _own(self, error: Exception) -> StoreError:
        text = str(getattr(error, "orig", None) or error)
        label = str(self.label)
        low = text.lower()
        if "deadlock" in low or "could not serialize" in low:
            return StoreConflictError(label, "it collided with another process; try again")
        if "locked" in low or "busy" in low:
            return StoreBusyError(label, "another process holds the database; try again, or close the other process")
        if "readonly" in low or "read-only" in low:
            return StoreReadOnlyError(label, "it is read-only; check the rights of the file, its folder or your role")
        if "disk is full" in low or "no space" in low or "could not extend" in low:
            return StoreFullError(label, "the disk is full; nothing was stored, free some space and try again")
        if "disk i/o error" in low:
            return StoreUnavailableError(label, "the disk gave an error; see that it is sound and has free space")
        if "unable to open" in low:
            return StoreUnavailableError(label, "it cannot be opened; check that the folder exists and may be written")
        if "not a database" in low:
            return StoreUnavailableError(label, "the file is not a collab-layer database")
        if isinstance(error, IntegrityError):
            return StoreConflictError(label, "another process wrote the same rows first; try again")
        cut = isinstance(error, DBAPIError) and error.connection_invalidated
        if cut or isinstance(error, OperationalError):
            return StoreUnavailableError(label, f"it cannot be reached: {text.splitlines()[0][:200]}")
        return StoreError(label, text.splitlines()[0][:300])


def parse_url(url: str) -> URL:
    """A URL, or the name of an SQLite file.

    Raises:
        InputError: Neither SQLite nor PostgreSQL, or an SQLite database in memory, which
            threads and processes cannot share.
    """
    if "://" not in url:
        if not url or url == ":memory:" or "\x00" in url:
            raise InputError("name a database file, for example `collab.db`; a database in memory cannot be shared")
        return URL.create("sqlite", database=str(Path(url).expanduser()))
    try:
        parsed = make_url(url)
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise InputError(f"the store URL cannot be read: {error}") from error
    name = parsed.get_backend_name()
    if name == "sqlite":
        return parse_url(parsed.database or "")
    if name != "postgresql" and name != "postgres":
        raise InputError(f"`{name}` is not supported; use an SQLite file or postgresql://…")
    return parsed.set(drivername="postgresql+psycopg")


def upsert(connection: Connection, table: Any, rows: list[dict[str, Any]], *, update: tuple[str, ...] = ()) -> int:
    """Insert rows; on a conflict of the key update the columns named, or leave the row alone.

    Returns:
        Rows inserted or updated, as far as the driver tells.
    """
    if not rows:
        return 0
    if connection.dialect.name == "sqlite":
        return _run(connection, _upsert("sqlite", table, update), rows)
    if len(rows) >= bulk.LEAST:
        return bulk.upsert(connection, table, rows, update)
    return connection.execute(_upsert(connection.dialect.name, table, update), rows).rowcount


def insert(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    """Insert rows, which all name the same columns."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        _run(connection, _insert(table), rows)
    elif len(rows) >= bulk.LEAST:
        bulk.insert(connection, table, rows)
    else:
        connection.execute(_insert(table), rows)


def insert_all(connection: Connection, parts: Sequence[tuple[Any, list[dict[str, Any]]]]) -> None:
    """Insert rows of several tables, in one statement where each is a round trip."""
    parts = [(table, rows) for table, rows in parts if rows]
    if connection.dialect.name != "sqlite" and parts:
        bulk.insert_all(connection, parts)
        return
    for table, rows in parts:
        _run(connection, _insert(table), rows)


def change(connection: Connection, table: Any, rows: list[dict[str, Any]], *, key: tuple[str, ...]) -> None:
    """Set columns of rows that are told by the others, the key; one that is not there is passed over."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        line, values = _change(table, tuple(rows[0]), key)
        connection.exec_driver_sql(line, list(map(values, rows)))
    else:
        bulk.change(connection, table, rows, key)


def insert_of(dialect: str, table: Any) -> Any:
    """An insert of the dialect, which knows what to do on a conflict."""
    if dialect == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql

    return insert_in_postgresql(table)


def _run(connection: Connection, statement: Any, rows: Sequence[dict[str, Any]]) -> int:
    """Hand rows to the driver of SQLite as they are: what would prepare each of them takes longer than storing it.

    Returns:
        Rows inserted or updated.
    """
    line, values = _for_sqlite(statement, tuple(rows[0]))
    return connection.exec_driver_sql(line, list(map(values, rows))).rowcount


@lru_cache(maxsize=256)
def _for_sqlite(statement: Any, names: tuple[str, ...]) -> tuple[str, Callable[[dict[str, Any]], tuple[Any, ...]]]:
    """An insert as text, and what it takes of a row; no column of ours needs its values made into others."""
    compiled = statement.compile(dialect=sqlite.dialect(), column_keys=list(names))
    return str(compiled), itemgetter(*compiled.positiontup)


@lru_cache(maxsize=64)
def _change(
    table: Any, names: tuple[str, ...], key: tuple[str, ...]
) -> tuple[str, Callable[[dict[str, Any]], tuple[Any, ...]]]:
    others = [name for name in names if name not in key]
    new, same = (joint.join(f'"{name}" = ?' for name in some) for joint, some in ((", ", others), (" AND ", key)))
    values: Callable[[dict[str, Any]], tuple[Any, ...]] = itemgetter(*others, *key)
    return f"UPDATE {table.name} SET {new} WHERE {same}", values


@lru_cache(maxsize=64)
def _insert(table: Any) -> Any:
    return table.insert()


@lru_cache(maxsize=256)
def _upsert(dialect: str, table: Any, update: tuple[str, ...]) -> Any:
    statement = insert_of(dialect, table)
    if not update:
        return statement.on_conflict_do_nothing()
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={name: statement.excluded[name] for name in update},
    )
