"""A column of whole numbers as one text, and back.

In:   a column of a statement that groups or takes all rows together; the text that it gave.
Out:  an expression; the numbers, in the order of the rows.
Where thousands of rows are read as they are, a driver makes a tuple and as many objects of each: twice to ten times
what the database needs to find them, and work for the collector of garbage. Columns joined in one statement keep
their rows side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from collab_layer.types.graph import Ids


class _InOne(FunctionElement[str]):
    type = Text()
    inherit_cache = True


@compiles(_InOne)
def _string_agg(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return f"string_agg(CAST({compiler.process(element.clauses, **options)} AS TEXT), ',')"


@compiles(_InOne, "sqlite")
def _group_concat(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return f"group_concat({compiler.process(element.clauses, **options)})"


def in_one(column: ColumnElement[int]) -> ColumnElement[str]:
    """All values of a column, joined by commas; NULL of no rows."""
    return _InOne(column)


def numbers(text: str | None) -> Ids:
    """What was joined, shape (n,)."""
    return np.fromstring(text, np.int64, sep=",") if text else np.zeros(0, np.int64)


__all__ = ["in_one", "numbers"]
