"""Many rows, of one table or several, to one statement of PostgreSQL: each column goes as one array.

In:   a connection, tables, rows of each that all name the same columns.
Out:  the rows stored in one round trip, as one insert for each of them would store them.
Never: for SQLite, where a statement is no round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from sqlalchemy import BigInteger, Boolean, Connection, Float, Integer, LargeBinary, SmallInteger, Table

from collab_layer.graph import lean

LEAST = 4
"""Rows from which one statement is cheaper than one for each."""
PAGE = 5_000
"""Rows that one statement takes at most, so that no parameter grows without bounds."""
_TYPES = (
    (SmallInteger, "smallint"),
    (BigInteger, "bigint"),
    (Integer, "integer"),
    (Boolean, "boolean"),
    (Float, "double precision"),
    (LargeBinary, "bytea"),
)
"""Strings go as `text`: a cast to a narrower type would cut them where storing refuses them."""
_NUMBERS = (Integer, Boolean, Float)


def insert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows."""
    _run(connection, table, _statement(table, tuple(rows[0]), None), rows)


def insert_all(connection: Connection, parts: Sequence[tuple[Table, Sequence[dict[str, Any]]]]) -> None:
    """Insert rows of several tables, none of which is empty; more than a page of any goes by itself."""
    small = [(table, rows) for table, rows in parts if len(rows) <= PAGE]
    for table, rows in parts:
        if len(rows) > PAGE:
            insert(connection, table, rows)
    if all(len(rows) < LEAST for _, rows in small):
        _insert_few(connection, small)
    elif small:
        given: dict[str, str] = {}
        for at, (table, rows) in enumerate(small):
            given |= {f"{at}_{name}": array(table.columns[name].type, [row[name] for row in rows]) for name in rows[0]}
        connection.exec_driver_sql(_one_of_all(tuple((table, tuple(rows[0])) for table, rows in small)), given)


def _insert_few(connection: Connection, parts: Sequence[tuple[Table, Sequence[dict[str, Any]]]]) -> None:
    """The same without arrays, which cost the server more than they save."""
    shape = tuple((table, tuple(rows[0]), len(rows)) for table, rows in parts)
    if shape:
        placed = [
            row[name] for (_, names, _), (_, rows) in zip(shape, parts, strict=True) for row in rows for name in names
        ]
        lean.run(connection, _few_of_all(shape), placed)


def upsert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], update: tuple[str, ...]) -> int:
    """Insert rows; on a conflict of the key update the columns named, or leave the row alone.

    Returns:
        Rows inserted or updated.
    """
    if update:  # one statement cannot update a row twice
        rows = _last(rows, tuple(column.name for column in table.primary_key.columns), update)
    return _run(connection, table, _statement(table, tuple(rows[0]), update), rows)


def change(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], key: tuple[str, ...]) -> None:
    """Set the other columns of rows that are told by these; one that is not there is passed over."""
    _run(connection, table, _change(table, tuple(rows[0]), key), rows)


def array(kind: Any, values: Iterable[Any]) -> str:
    """Values of one type as PostgreSQL reads an array; the driver looks at each one several times."""
    if isinstance(kind, LargeBinary):
        return f"{{{_of_bytes(values)}}}"
    return f"{{{_of_numbers(values) if isinstance(kind, _NUMBERS) else _of_texts(values)}}}"


def type_name(kind: Any) -> str:
    """What PostgreSQL calls a type as an array's values are sent."""
    return next((name for one, name in _TYPES if isinstance(kind, one)), "text")


def _last(rows: Sequence[dict[str, Any]], key: Sequence[str], update: Sequence[str]) -> list[dict[str, Any]]:
    """What is left of rows with one key when each updates the one before."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        this = tuple(row[name] for name in key)
        found[this] = {**found[this], **{name: row[name] for name in update}} if this in found else row
    return list(found.values())


def _run(connection: Connection, table: Table, statement: str, rows: Sequence[dict[str, Any]]) -> int:
    touched = 0
    for start in range(0, len(rows), PAGE):
        part = rows[start : start + PAGE]
        given = {name: array(table.columns[name].type, [row[name] for row in part]) for name in rows[0]}
        touched += connection.exec_driver_sql(statement, given).rowcount
    return touched


@lru_cache(maxsize=128)
def _statement(table: Table, names: tuple[str, ...], update: tuple[str, ...] | None) -> str:
    """An insert of arrays; `update` None lets a conflict fail, an empty one leaves the row alone."""
    line = _line(table, names)
    if update is None:
        return line
    if not update:
        return f"{line} ON CONFLICT DO NOTHING"
    key = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    changed = ", ".join(f'"{name}" = excluded."{name}"' for name in update)
    return f"{line} ON CONFLICT ({key}) DO UPDATE SET {changed}"


@lru_cache(maxsize=32)
def _change(table: Table, names: tuple[str, ...], key: tuple[str, ...]) -> str:
    given = ", ".join(f"%({name})s::{type_name(table.columns[name].type)}[]" for name in names)
    new = ", ".join(f'"{name}" = given."{name}"' for name in names if name not in key)
    same = " AND ".join(f'{table.name}."{name}" = given."{name}"' for name in key)
    listed = ", ".join(f'"{name}"' for name in names)
    return f"UPDATE {table.name} SET {new} FROM unnest({given}) AS given ({listed}) WHERE {same}"


@lru_cache(maxsize=32)
def _one_of_all(shape: tuple[tuple[Table, tuple[str, ...]], ...]) -> str:
    return _chained([_line(table, names, f"{at}_") for at, (table, names) in enumerate(shape)])


@lru_cache(maxsize=64)
def _few_of_all(shape: tuple[tuple[Table, tuple[str, ...], int], ...]) -> str:
    lines: list[str] = []
    numbers = count(1)
    for table, names, size in shape:
        values = (", ".join(f"${next(numbers)}" for _ in names) for _ in range(size))
        lines.append(f"{_into(table, names)} VALUES {', '.join(f'({row})' for row in values)}")
    return _chained(lines)


def _chained(lines: Sequence[str]) -> str:
    *first, last = lines
    return f"WITH {', '.join(f'p{at} AS ({line})' for at, line in enumerate(first))} {last}" if first else last


def _into(table: Table, names: Sequence[str]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"INSERT INTO {table.name} ({quoted})"


def _line(table: Table, names: Sequence[str], prefix: str = "") -> str:
    given = ", ".join(f"%({prefix}{name})s::{type_name(table.columns[name].type)}[]" for name in names)
    return f"{_into(table, names)} SELECT * FROM unnest({given})"


def _of_numbers(values: Iterable[Any]) -> str:
    return ",".join(map(str, values)).replace("None", "NULL")


def _of_bytes(values: Iterable[Any]) -> str:
    return ",".join("NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values)


def _of_texts(values: Iterable[Any]) -> str:
    """Quoted in one go, parted by what no text may hold; where one does, the driver refuses it."""
    texts = list(values)
    if None not in texts:
        joined = _escaped("\0".join(texts))
        if joined.count("\0") == len(texts) - 1:
            return '"' + joined.replace("\0", '","') + '"'
    return ",".join("NULL" if text is None else f'"{_escaped(text)}"' for text in texts)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


__all__ = ["LEAST", "array", "change", "insert", "insert_all", "type_name", "upsert"]
