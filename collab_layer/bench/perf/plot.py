"""Curation by the size of the graph, as a picture.

In:   rows of a run.
Out:  a file; its ending says which kind. Needs matplotlib: the extra `plot`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from collab_layer.bench.report import Row
from collab_layer.errors import InputError

CASES = ("typical", "hub_user", "hub_item")


def draw(rows: Sequence[Row], path: Path) -> None:
    """CPU of each case at p50 and p99 against edges.

    Raises:
        InputError: matplotlib is not installed, or cannot write this kind of file.
    """
    try:
        matplotlib: Any = import_module("matplotlib.figure")
    except ModuleNotFoundError as error:
        raise InputError("a plot needs the extra: pip install 'collab-layer[plot]'") from error
    figure = matplotlib.Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for case in CASES:
        for style, percentile in (("-", 50), ("--", 99)):
            points = _points(rows, case, percentile)
            axes.plot([x for x, _ in points], [y for _, y in points], style, marker="o", label=f"{case} p{percentile}")
    axes.set(xscale="log", yscale="log", xlabel="edges", ylabel="CPU, ms", title="curate")
    axes.legend()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise InputError(f"`{path}` cannot be drawn: {error}") from error


def _points(rows: Sequence[Row], case: str, percentile: int) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for row in rows:
        parts = row.name.split(".")
        if parts[:2] == ["perf", "curate"] and parts[3:] == [case, f"cpu_p{percentile}_ms"]:
            found.append((float(parts[2]), row.value))
    return sorted(found)


__all__ = ["draw"]
