"""What starting costs: importing, the help page, and the memory of a process that has a graph open.

In:   a filled database.
Out:  rows `perf.start.<figure>`; each measured in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

from collab_layer.bench.report import Row, peak_rss_mb
from collab_layer.config import Settings
from collab_layer.sync import CollabLayer

IMPORT_S, HELP_S, RESIDENT_MB = 0.3, 0.5, 400.0
_CLOCK = "import time; before = time.process_time()\n{code}\nprint(time.process_time() - before)"
_PROGRAMS = {
    "import": ("import collab_layer", IMPORT_S),
    "import_layer": ("from collab_layer import CollabLayer", None),
}
_HELP = (
    "import contextlib, io\nfrom collab_layer.surface.cli.main import main\n"
    "with contextlib.redirect_stdout(io.StringIO()):\n    main(['--help'])"
)


def measure(tries: int) -> Iterator[Row]:
    """CPU seconds, the least of so many tries; that of Python itself is left out of imports, not of the help page."""
    for name, (code, bar) in _PROGRAMS.items():
        row = Row(f"perf.start.{name}.cpu_s", min(_seconds(code) for _ in range(tries)), unit="s")
        yield row if bar is None else row.against("<=", bar)
    whole = min(_seconds(_HELP, from_start=True) for _ in range(tries))
    yield Row("perf.start.help.cpu_s", whole, unit="s").against("<=", HELP_S)


def resident(url: str, tenant: str, owners: Sequence[int], edges: int) -> Row:
    """Peak memory of a process that opened the graph and read around some owners."""
    call = f"from collab_layer.bench.perf.starting import read; read({url!r}, {tenant!r}, {list(owners)!r})"
    row = Row("perf.memory.open_mb", json.loads(_run(call)), unit="MB")
    return row.against("<=", RESIDENT_MB) if edges <= 1_000_000 else row


def read(url: str, tenant: str, owners: Sequence[int]) -> None:
    """Read around each owner, then print the most memory that this took."""
    with CollabLayer.open(url, tenant=tenant, settings=Settings(worker=False)) as layer:
        for owner in owners:
            layer.neighbors(f"user:u{owner}")
        print(json.dumps(peak_rss_mb()))


def _seconds(code: str, *, from_start: bool = False) -> float:
    program = f"{code}\nimport time; print(time.process_time())" if from_start else _CLOCK.format(code=code)
    return float(_run(program))


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


__all__ = ["measure", "read", "resident"]
