"""A statement that is compiled once, and run by the driver itself.

In:   a statement that is built once and kept, and values for its parameters by name.
Out:  its rows, whose parts have the names of its columns; or how many rows it touched.
Never: a list of parameters that grows, since that is another statement for every length (`one_of` takes many values
as one), nor a column whose type makes something else of what the driver gives, such as JSON, nor a None written into
the statement, where `null()` does.

On a statement and its result SQLAlchemy spends more than SQLite takes to run it, or PostgreSQL's driver to send it and
read the answer. So what is asked for every interaction told is run like this. Who counts statements sees these too.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError

Given = Mapping[str, Any]


class Lean:
    """One statement, for both databases.

    Attributes:
        statement: As SQLAlchemy runs it.
    """

    def __init__(self, statement: Executable) -> None:
        self.statement = statement
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, given: Given) -> list[Any]:
        """Its rows."""
        compiled = self._for(connection)
        cursor = run(connection, compiled.text, compiled.placed(given))
        return list(map(compiled.row(cursor), cursor.fetchall()))

    def tuples(self, connection: Connection, given: Given) -> list[tuple[Any, ...]]:
        """The same without names, where there are many."""
        compiled = self._for(connection)
        return run(connection, compiled.text, compiled.placed(given)).fetchall()

    def run(self, connection: Connection, given: Given) -> int:
        """How many rows it touched."""
        compiled = self._for(connection)
        return run(connection, compiled.text, compiled.placed(given)).rowcount

    def each(self, connection: Connection, rows: Sequence[Given]) -> None:
        """Run it for each of some rows, which are many."""
        if connection.dialect.name == "sqlite":
            compiled = self._for(connection)
            connection.exec_driver_sql(compiled.text, [tuple(compiled.placed(row)) for row in rows])
        else:
            connection.execute(self.statement, rows)

    def _for(self, connection: Connection) -> _Compiled:
        name = connection.dialect.name
        found = self._compiled.get(name)
        if found is None:
            found = self._compiled[name] = _Compiled(self.statement, connection)
        return found


def run(connection: Connection, text: str, placed: Sequence[Any]) -> Any:
    """The driver's cursor after a statement in its own words: `?` for each value, or `$1`, `$2`, … for PostgreSQL.

    Raises:
        DBAPIError: As SQLAlchemy raises it; a connection that broke is not used again.
    """
    driver: Any = connection.connection.driver_connection
    cursor = driver.cursor() if connection.dialect.name == "sqlite" else _numbered(driver)
    for told in connection.dispatch.before_cursor_execute:
        told(connection, cursor, text, placed, None, False)
    try:
        return cursor.execute(text, placed)
    except driver.Error as error:
        cut = connection.dialect.is_disconnect(error, driver, cursor)
        if cut:
            connection.invalidate(error)
        raise DBAPIError.instance(text, None, error, driver.Error, connection_invalidated=cut) from error


class _Compiled:
    """A statement in the words of one driver."""

    def __init__(self, statement: Any, connection: Connection) -> None:
        dialect = connection.dialect
        if dialect.name != "sqlite":  # by number: the driver need not look for names
            dialect = type(dialect)(paramstyle="numeric_dollar")  # pyright: ignore[reportCallIssue]
        compiled = statement.compile(dialect=dialect)
        self.text = str(compiled)
        self._order = tuple[str, ...](compiled.positiontup or ())
        self._fixed: dict[str, Any] = {name: value for name, value in compiled.params.items() if value is not None}
        kinds = {name: compiled.binds[name].type.dialect_impl(dialect) for name in self._order}
        made = {name: kind.bind_processor(dialect) for name, kind in kinds.items()}
        self._made: list[tuple[str, Callable[[Any], Any]]] = [(name, make) for name, make in made.items() if make]
        self._row: Callable[[Sequence[Any]], Any] | None = None

    def placed(self, given: Given) -> list[Any]:
        """The values in their order."""
        values = {**self._fixed, **given}
        for name, make in self._made:
            values[name] = make(values[name])
        return [values[name] for name in self._order]

    def row(self, cursor: Any) -> Callable[[Sequence[Any]], Any]:
        """What gives values the names of their columns."""
        if self._row is None:
            names: list[str] = [column[0] for column in cursor.description]
            self._row = namedtuple("Row", names, rename=True)._make  # pyright: ignore[reportUntypedNamedTuple]
        return self._row


def _numbered(driver: Any) -> Any:
    from psycopg import RawCursor  # the extra may not be there

    return RawCursor(driver)


__all__ = ["Given", "Lean", "run"]
