"""`collab demo --data DIR`: what sharing is worth on an evaluation set, with the cost of the run.

In:   a folder as its publisher lays it out.
Out:  one row per figure; exit status 1 if a figure misses its bar.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from collab_layer.surface.cli.output import console, emit, progress, table

if TYPE_CHECKING:
    from collab_layer.bench.report import Report, Row

CONTESTANTS = (
    "random",
    "popularity",
    "isolated",
    "naive_pool",
    "naive_search",
    "itemknn",
    "ease",
    "gfcf",
    "ials",
    "mem0",
    "own_ease",
    "generic",
    "domain",
    "default",
    "fitted",
    "layer",
    "ours_without_edges",
    "ours",
)
METRICS = {"h1": "H@1", "n5": "N@5", "lift": "lift of H@1", "harm": "harm", "worse": "placed lower"}


def measure(
    data: Path,
    *,
    seeds: int,
    as_json: bool,
    users: int | None = None,
    full: bool = False,
    mem0: bool = False,
    embedder: str | None = None,
) -> None:
    """Run the benchmark and print it.

    Raises:
        DataSetError: The folder cannot be used.
        InputError: There is no embedder of that name.
    """
    from collab_layer.bench import embedders, lift

    used = embedders.opened(embedder)
    with progress() as bar:
        tasks = {what: bar.add_task(what, total=None, start=False) for what in ("describing", "observing", "ranking")}

        def tell(what: str, done: int, total: int) -> None:
            bar.start_task(tasks[what])
            bar.update(tasks[what], completed=done, total=total)

        report = lift.run(data, seeds=seeds, users=users, full=full, mem0=mem0, embedder=used, progress=tell)
    if as_json:
        emit(report.to_json())
    else:
        _show(report)
    if not report.ok:
        raise typer.Exit(1)


def _show(report: Report) -> None:
    out = console()
    figures = {row.name: row for row in report.rows}
    for prefix in _prefixes(report):
        rows = [
            (who, *(_figure(figures.get(f"{prefix}.{who}.{metric}")) for metric in METRICS))
            for who in CONTESTANTS
            if f"{prefix}.{who}.h1" in figures
        ]
        out.print(table(f"{prefix} (95 % intervals below each figure)", ("memory", *METRICS.values()), rows))
    barred = [(row.name, row.value, row.bar, "reached" if row.ok else "missed") for row in report.rows if row.bar]
    if barred:
        out.print(table("Bars", ("figure", "value", "bar", ""), barred, numeric=("value",)))
    seconds, peak = figures["run.seconds"].value, figures["run.peak_rss_mb"].value
    out.print(f"{seconds:.0f} s, at most {peak:.0f} MB; embedder {report.embedder}; data {report.data_sha256[:12]}")
    out.print(
        "isolated: each owner's own memory, tuned. ours: with neighbours, behind the gate; layer: with the weights of "
        "the layer's own gate. own_ease: own memory and EASE, fitted alike. generic, domain: other curation. "
        "harm: share of lists that isolated got right and this one wrong."
    )


def _prefixes(report: Report) -> list[str]:
    """`set.candidates`, in the order measured."""
    return list(
        dict.fromkeys(row.name.removesuffix(".ours.h1") for row in report.rows if row.name.endswith(".ours.h1"))
    )


def _figure(row: Row | None) -> str:
    if row is None:
        return ""
    interval = "" if row.low is None or row.high is None else f"\n{row.low:.2f}..{row.high:.2f}"
    return f"{row.value:.2f}{interval}"
