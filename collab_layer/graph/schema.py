"""The database's schema version: made new, brought forward, or refused.

A new database gets the tables as they are in `graph.tables`; one of an older version goes through the migrations in
`migrations/versions`, for which alone alembic is imported. Both ways lead to the same tables (a test compares them).
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, text

from collab_layer.errors import NewerSchemaError, StoreError
from collab_layer.graph.engine import Database
from collab_layer.graph.tables import metadata

HEAD = "0014"
KNOWN = ("0001", "0002", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012", "0013", "0014")
_ROWS = 1_000_000
_VERSION = Table(  # alembic's own
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_LOCK = 0x636F6C6C6162  # one opener at a time on PostgreSQL


def ensure(database: Database) -> None:
    """Bring the database to `HEAD`.

    Raises:
        NewerSchemaError: A newer version wrote it.
        StoreError: It holds tables of something else.
    """
    found = version(database)
    if found == HEAD:
        return
    if found is not None and found not in KNOWN:
        raise NewerSchemaError(
            str(database.label), f"it was written by a newer version (schema {found}); upgrade collab-layer"
        )
    with database.write() as connection:
        if not database.sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        found = _found(connection)  # another process may have been faster
        if found == HEAD:
            return
        others = inspect(connection).get_table_names() if found is None else []
        if not database.sqlite:  # where programs share a schema
            others = [name for name in others if name == "interactions"]
        if others:
            raise StoreError(str(database.label), "it holds tables of something else; choose another file or database")
        if found is None:
            _VERSION.create(connection, checkfirst=True)
            metadata.create_all(connection, checkfirst=False)
            connection.execute(insert(_VERSION).values(version_num=HEAD))
        else:
            migrate(connection)
        if database.sqlite:
            teach_planner(connection)
    database.dispose()  # connections made before do not know the statistics


def migrate(connection: Connection, to: str = HEAD) -> None:
    """Take a database through the migrations up to one of them; an empty one through all of them."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def teach_planner(connection: Connection) -> None:
    """Tell SQLite's planner what the columns are like; it never gathers statistics by itself.

    An index that is dropped takes its statistics along. Without them the planner takes "tenant = ?" alone for selective
    and reads whole tables. The figures are shapes, not counts: a tenant holds nearly all rows, each further column of
    a key leaves few. Source: the format of `sqlite_stat1`, sqlite.org/fileformat2.html.
    """
    connection.exec_driver_sql("ANALYZE alembic_version")  # of one row: makes the table
    connection.exec_driver_sql("DELETE FROM sqlite_stat1")
    for table in metadata.sorted_tables:
        wide = bool(table.dialect_options["sqlite"]["with_rowid"])
        key = f"sqlite_autoindex_{table.name}_1" if wide else table.name
        shapes = [(key, len(table.primary_key.columns), True, _ROWS)]
        for index in table.indexes:
            rows = _ROWS if index.dialect_options["sqlite"]["where"] is None else _ROWS // 100
            shapes.append((str(index.name), len(index.columns), bool(index.unique), rows))
        for name, width, unique, rows in shapes:
            left = [rows, rows] + [max(1, rows // 50_000**step) for step in range(1, width)]
            if unique:
                left[-1] = 1
            row = (table.name, name, " ".join(str(count) for count in left))
            connection.exec_driver_sql("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", row)
    connection.exec_driver_sql("ANALYZE sqlite_schema")


def version(database: Database) -> str | None:
    """The schema version found, None for an empty database."""
    with database.read() as connection:
        return _found(connection)


def _found(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    row = connection.execute(text("SELECT version_num FROM alembic_version")).first()
    return None if row is None else str(row[0])
