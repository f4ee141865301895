"""A column to the condition that it is one of many values, as one parameter.

In:   a connection, a column, values of the column's type.
Out:  a condition that uses the column's index, however many values there are.
A list of parameters is limited to some tens of thousands, and parsed anew for every length.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import ARRAY, ColumnElement, Connection, any_, bindparam, func, literal, select

T = TypeVar("T")
PAGE = 20_000
"""Values that one statement is given at most."""


def among(connection: Connection, column: Any, values: Iterable[str] | Iterable[int]) -> ColumnElement[bool]:
    """Whether the column is one of the values; of none it is not."""
    if connection.dialect.name == "sqlite":
        listed = func.json_each(bindparam(None, json.dumps(list(values)))).table_valued("value")
        return column.in_(select(listed.c.value))
    return column == any_(literal(list(values), ARRAY(column.type)))


def pages(values: Sequence[T], size: int = PAGE) -> Iterator[Sequence[T]]:
    """The values in parts that one statement takes."""
    return (values[start : start + size] for start in range(0, len(values), size))


__all__ = ["PAGE", "among", "pages"]
