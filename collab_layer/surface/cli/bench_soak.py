"""`collab bench soak`: mixed load for a while, with workers killed on the way.

In:   a duration, a seed, perhaps an empty database.
Out:  one row per figure; exit status 1 if something grew, was lost, or happened twice.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from collab_layer.surface.cli.bench_show import show, teller
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import progress


def register(bench: typer.Typer) -> None:
    """Add the command."""
    bench.command("soak")(soak)


def soak(
    duration: Annotated[float, typer.Option(help="Seconds that the load lasts, from 10.")] = 300.0,
    seed: Annotated[int, typer.Option(help="Of what is told and asked.")] = 0,
    url: Annotated[str | None, typer.Option(help="An empty database, such as postgresql://…; else SQLite.")] = None,
    as_json: Json = False,
) -> None:
    """Tell, read, forget and restart workers for a while: nothing may grow, get lost, or happen twice."""
    from collab_layer.bench.perf.soak import measure

    with progress() as bar:
        report = asyncio.run(measure(url, duration, seed, teller(bar)))
    show(report, as_json)


__all__ = ["register"]
