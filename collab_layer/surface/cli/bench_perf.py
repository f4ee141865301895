"""`collab bench perf`: what the layer costs, over graphs made from a seed.

In:   sizes, a seed, perhaps an empty database and an earlier run.
Out:  one row per figure; exit status 1 if a figure misses its bar.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from collab_layer.surface.cli.bench_show import show, teller
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import progress

SIZES = (10_000, 100_000)


def register(bench: typer.Typer) -> None:
    """Add the command."""
    bench.command("perf")(perf)


def perf(
    edges: Annotated[list[int] | None, typer.Option(help="Size of a graph; repeat it to see growth.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything drawn.")] = 0,
    writes: Annotated[int, typer.Option(min=0, help="Interactions told one at a time; 0 leaves writing out.")] = 2_000,
    url: Annotated[str | None, typer.Option(help="An empty database, such as postgresql://…; else SQLite.")] = None,
    workers: Annotated[int, typer.Option(min=0, max=64, help="So many worker processes against one; 0: not.")] = 0,
    compare: Annotated[Path | None, typer.Option(help="What an earlier run printed with --json.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw curation by size into this .svg or .png.")] = None,
    as_json: Json = False,
) -> None:
    """How fast and how large: curation, context, writing, start, memory, over graphs made from a seed.

    Sizes are 10,000 and 100,000 edges if left out; a million takes minutes to fill.
    """
    from dataclasses import replace

    from collab_layer.bench.perf import compare as earlier
    from collab_layer.bench.perf import plot as picture
    from collab_layer.bench.perf.run import Plan, measure

    with progress() as bar:
        plan = Plan(tuple(sorted(set(edges or SIZES))), seed, writes, url=url, workers=workers)
        report = asyncio.run(measure(plan, teller(bar)))
    if plot is not None:
        picture.draw(report.rows, plot)
    if compare is not None:
        report = replace(report, rows=[*report.rows, *earlier.changes(report.rows, compare)])
    show(report, as_json)


__all__ = ["register"]
