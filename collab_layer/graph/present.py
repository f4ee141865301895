"""The database's own clock, for what processes must agree on: leases, and who has waited longest.

In:   nothing; it stands in a statement like a column.
Out:  microseconds since 1970.
Never: the clock of the process. A worker whose clock is an hour off takes no lease too early, leaves none behind for
an hour, and sees work as soon as it is due.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Connection, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class present(FunctionElement[int]):
    """Now, by the database; the same throughout a statement. SQLite tells milliseconds."""

    inherit_cache = True
    type = BigInteger()


class earlier(FunctionElement[int]):
    """The lesser of two values of one row."""

    inherit_cache = True
    type = BigInteger()


def read(connection: Connection) -> int:
    """Now, by the database."""
    return connection.execute(select(present())).scalar_one()


@compiles(present)
def _of_postgres(element: present, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS BIGINT)"


@compiles(present, "sqlite")
def _of_sqlite(element: present, compiler: SQLCompiler, **options: Any) -> str:
    # From the Julian day, since older ones know no fractions of a second since 1970.
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000"


@compiles(earlier)
def _least(element: earlier, compiler: SQLCompiler, **options: Any) -> str:
    return f"LEAST({compiler.process(element.clauses, **options)})"


@compiles(earlier, "sqlite")
def _least_of_sqlite(element: earlier, compiler: SQLCompiler, **options: Any) -> str:
    return f"MIN({compiler.process(element.clauses, **options)})"


__all__ = ["earlier", "present", "read"]
