"""How every `collab bench` command shows its rows and tells how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from collab_layer.surface.cli.output import console, emit, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress, TaskID

    from collab_layer.bench.report import Report


def show(report: Report, as_json: bool) -> None:
    """The rows; exit status 1 where one misses its bar."""
    if as_json:
        emit(report.to_json())
    else:
        rows = [(row.name, row.value, row.low, row.high, row.unit, row.bar or "") for row in report.rows]
        console().print(table(report.command, ("figure", "value", "low", "high", "unit", "bar"), rows))
    if not report.ok:
        raise typer.Exit(1)


def teller(bar: Progress) -> Callable[[str, int, int], None]:
    """What a measurement calls to move a progress bar; a bar per thing that is being done."""
    tasks: dict[str, TaskID] = {}

    def tell(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bar.add_task(what, total=total)
        bar.update(tasks[what], completed=done, total=total)

    return tell


__all__ = ["show", "teller"]
