"""`collab bench tasks NAME`: questions beside taste, put to our layer and to others.

In:   a task's name, a set where it needs one, further stores by `package.module:factory`.
Out:  one row per figure; exit status 1 if a figure misses its bar.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.bench_show import show, teller
from collab_layer.surface.cli.options import Embedder, Json
from collab_layer.surface.cli.output import console, emit, progress, remark, table


def register(bench: typer.Typer) -> None:
    """Add the commands."""
    bench.command("tasks")(tasks)
    bench.command("leaderboard")(leaderboard)
    bench.command("report")(report)


def tasks(
    name: Annotated[str | None, typer.Argument(help="Which task; left out, they are listed.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="An evaluation set as its publisher lays it out.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A part of the task; may be repeated.")] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(
            "--store", metavar="NAME[=MODULE:FACTORY]", help="A further contestant, as mem0; may be repeated."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="How many seeds.")] = 1,
    folds: Annotated[
        int | None, typer.Option(min=1, help="How many parts of the set are asked; all if left out.")
    ] = None,
    embedder: Embedder = None,
    as_json: Json = False,
) -> None:
    """Tickets, threads and the like: what sharing is worth where memory is text."""
    from collab_layer.bench import embedders
    from collab_layer.bench.options import Options
    from collab_layer.bench.store_names import named_stores
    from collab_layer.bench.tasks import named
    from collab_layer.bench.tasks import tasks as every

    if name is None:
        rows = [(task.name, task.asks) for task in every().values()]
        return (
            emit([{"name": name, "asks": asks} for name, asks in rows])
            if as_json
            else console().print(table("Tasks", ("task", "asks"), rows))
        )
    used = embedders.opened(embedder)
    options = Options(
        data=data,
        seed=seed,
        seeds=seeds,
        folds=folds,
        stores=named_stores(store or (), used),
        embedder=used,
        only=tuple(only or ()),
    )
    task = named(name)
    with progress() as bar:
        report = asyncio.run(task.measure(options, teller(bar)))
    show(report, as_json)


def leaderboard(
    files: Annotated[list[Path], typer.Argument(help="Entries, or runs printed with --json.")],
    as_json: Json = False,
) -> None:
    """Who helps most and harms least: net = help - 2 * harm; no rank above 1 % leakage."""
    from collab_layer.bench.leaderboard import entries, standings

    found = standings(entries(files))
    if as_json:
        return emit(
            [{**one.entry.model_dump(), "net": one.entry.net, "rank": one.rank, "why": one.why} for one in found]
        )
    rows = [
        (one.rank or "–", one.entry.system, one.entry.task, one.entry.net, one.entry.help, one.entry.harm,
         one.entry.leakage, one.entry.embedder, one.entry.data_sha256[:12], one.why)
        for one in found
    ]  # fmt: skip
    heads = ("rank", "system", "task", "net", "help", "harm", "leakage", "embedder", "data", "")
    return console().print(table("Leaderboard", heads, rows))


def report(
    files: Annotated[list[Path], typer.Argument(help="Runs printed with --json.")],
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="Where the page goes.")],
    as_json: Json = False,
) -> None:
    """One page with drawings out of runs; it needs no network and no script."""
    from collab_layer.bench.page import page
    from collab_layer.bench.runs import load_run

    text = page([load_run(path) for path in files])
    try:
        html.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"`{html}` cannot be written: {error.strerror or error}") from error
    emit({"html": str(html), "bytes": len(text.encode())}) if as_json else remark(f"Wrote {html}.")


__all__ = ["register"]
