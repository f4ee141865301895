"""What commands print: a table for people, or one JSON value.

Data goes to stdout, remarks and errors to stderr. Colours and boxes appear on a
terminal only; text from stores is printed as it is, never read as markup.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

T = TypeVar("T")


def console(*, stderr: bool = False) -> Console:
    """Where to print, as wide as the terminal or COLUMNS says."""
    from rich.console import Console  # rich loads only when something is printed

    return Console(stderr=stderr, highlight=False)


def emit(value: Any) -> None:
    """Print a value as JSON; pydantic values and lists of them are understood."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def plain(value: Any) -> Any:
    """A value made of dicts, lists, text and numbers only."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  any value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]  any value
    return value


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numeric: Sequence[str] = ()) -> Table:
    """A table whose cells are taken literally; `numeric` columns are set to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        out.add_column(column, justify="right" if column in numeric else "left", overflow="fold")
    for row in rows:
        out.add_row(*(Text(cell if isinstance(cell, str) else number(cell)) for cell in row))
    return out


def listing(
    found: Sequence[T],
    row: Callable[[T], Sequence[Any]],
    title: str,
    columns: Sequence[str],
    *,
    empty: str,
    as_json: bool,
    numeric: Sequence[str] = (),
) -> None:
    """What a command that lists prints: JSON if asked for, a sentence where there is nothing, else a table."""
    if as_json:
        emit(found)
    elif not found:
        sys.stdout.write(f"{empty}\n")
    else:
        console().print(table(title, columns, map(row, found), numeric=numeric))


def number(value: Any) -> str:
    """A number with as many digits as a reader needs; nothing for `None`."""
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def progress() -> Progress:
    """A bar on stderr while a terminal is watching, nothing otherwise."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    err = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


def remark(text: str) -> None:
    """One line on stderr, for people."""
    sys.stderr.write(text + "\n")
