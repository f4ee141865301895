"""A column to the condition that it is one of many values, as one parameter.

In:   a column, and values of its type; or a parameter that they are given by when the statement is run.
Out:  a condition that uses the column's index, however many values there are.
A list of parameters is limited to some tens of thousands, and parsed anew for every length: a statement with
one parameter is built once, and planned once where the database keeps plans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from sqlalchemy import ARRAY, ColumnElement, Connection, Dialect, Text, any_, bindparam, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

from collab_layer.graph.bulk import array, type_name

T = TypeVar("T")
PAGE = 20_000
"""Values that one statement is given at most."""


class _Written(UserDefinedType[Any]):
    """An array in the database, and its text here: the driver would look at each value several times."""

    cache_ok = True
    render_bind_cast = True

    def __init__(self, of: type[TypeEngine[Any]]) -> None:
        self.of = of

    def get_col_spec(self, **options: Any) -> str:
        """As PostgreSQL calls it."""
        return f"{type_name(self.of())}[]"


class _Listed(TypeDecorator[Any]):
    """Values of one type as one parameter: an array, or JSON for SQLite."""

    impl = Text
    cache_ok = True

    def __init__(self, of: type[TypeEngine[Any]]) -> None:
        super().__init__()
        self.of = of

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text() if dialect.name == "sqlite" else _Written(self.of)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return json.dumps(list(value)) if dialect.name == "sqlite" else array(self.of(), value)


class _OneOf(FunctionElement[bool]):
    # Of no type: SQLite is asked whether a Boolean function `= 1`, and then takes no index.
    inherit_cache = True


@compiles(_OneOf)
def _any_of_array(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, values = element.clauses
    return f"{compiler.process(column, **options)} = ANY({compiler.process(values, **options)})"


@compiles(_OneOf, "sqlite")
def _in_json(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, values = element.clauses
    listed = f"SELECT value FROM json_each({compiler.process(values, **options)})"
    return f"{compiler.process(column, **options)} IN ({listed})"


def one_of(column: Any, name: str) -> ColumnElement[bool]:
    """Whether the column is one of the values of a parameter, a sequence that is given with each run."""
    kind = cast("type[TypeEngine[Any]]", type(column.type))
    return _OneOf(column, bindparam(name, type_=_Listed(kind)))


def among(connection: Connection, column: Any, values: Iterable[str] | Iterable[int]) -> ColumnElement[bool]:
    """Whether the column is one of the values; of none it is not."""
    if connection.dialect.name == "sqlite":
        listed = func.json_each(bindparam(None, json.dumps(list(values)))).table_valued("value")
        return column.in_(select(listed.c.value))
    return column == any_(literal(list(values), ARRAY(column.type)))


def pages(values: Sequence[T], size: int = PAGE) -> Iterator[Sequence[T]]:
    """The values in parts that one statement takes."""
    return (values[start : start + size] for start in range(0, len(values), size))


__all__ = ["PAGE", "among", "one_of", "pages"]
