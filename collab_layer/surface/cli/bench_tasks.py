"""`collab bench tasks NAME`: questions beside taste, put to our layer and to others.

In:   a task's name, a set where it needs one, further stores by `package.module:factory`.
Out:  one row per figure; exit status 1 if a figure misses its bar.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from collab_layer.surface.cli.bench_show import show, teller
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, progress, table


def register(bench: typer.Typer) -> None:
    """Add the commands."""
    bench.command("tasks")(tasks)


def tasks(
    name: Annotated[str | None, typer.Argument(help="Which task; left out, they are listed.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="An evaluation set as its publisher lays it out.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A part of the task; may be repeated.")] = None,
    store: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="NAME=MODULE:FACTORY", help="A further contestant; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="How many seeds.")] = 1,
    folds: Annotated[
        int | None, typer.Option(min=1, help="How many parts of the set are asked; all if left out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tickets, threads and the like: what sharing is worth where memory is text."""
    from collab_layer.bench.stores import named_stores
    from collab_layer.bench.tasks import Options, named
    from collab_layer.bench.tasks import tasks as every

    if name is None:
        rows = [(task.name, task.asks) for task in every().values()]
        return (
            emit([{"name": name, "asks": asks} for name, asks in rows])
            if as_json
            else console().print(table("Tasks", ("task", "asks"), rows))
        )
    options = Options(
        data=data, seed=seed, seeds=seeds, folds=folds, stores=named_stores(store or ()), only=tuple(only or ())
    )
    task = named(name)
    with progress() as bar:
        report = asyncio.run(task.measure(options, teller(bar)))
    show(report, as_json)


__all__ = ["register"]
