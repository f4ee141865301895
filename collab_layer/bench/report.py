"""A measurement as rows: one figure each, with its interval and its bar."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from collab_layer.bench.metrics import Interval

_TESTS = {">=": operator.ge, "<=": operator.le, ">": operator.gt}

Sense = Literal[">=", "<=", ">"]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes:
        name: `set.candidates.contestant.metric`.
        value: The figure.
        low, high: Its 95 % interval, if it has one.
        unit: `share`, `s`, `MB` and so on.
        bar: What was asked for, such as `>= 0.25`; None where nothing was.
        ok: Whether it was reached; None without a bar.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    unit: str = "share"
    bar: str | None = None
    ok: bool | None = None

    @classmethod
    def of(cls, name: str, figure: Interval, unit: str = "share") -> Row:
        """A figure with its interval."""
        return cls(name, figure.value, figure.low, figure.high, unit)

    def against(self, sense: Sense, bar: float, *, positive: bool = False, low: float | None = None) -> Row:
        """The same row with a bar.

        With `positive` the whole interval must lie above 0 as well, with `low` its lower end not below that.
        """
        reached = bool(_TESTS[sense](self.value, bar))
        text = f"{sense} {bar:g}"
        if low is not None:
            reached = reached and self.low is not None and self.low >= low
            text += f", interval from {low:g}"
        if positive:
            reached = reached and self.low is not None and self.low > 0
            text += ", interval above 0"
        return Row(self.name, self.value, self.low, self.high, self.unit, text, reached)

    def not_below(self, bar: float) -> Row:
        """The same row with a bar for the lower end of its interval."""
        reached = self.low is not None and self.low >= bar
        return Row(self.name, self.value, self.low, self.high, self.unit, f"lower bound >= {bar:g}", reached)


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of one run, and what it ran on.

    Attributes:
        command: What to type to repeat it.
        data_sha256: Of the files read.
        seed: The first random seed.
        embedder: Id of the embedder used.
        rows: In the order in which they were measured.
        frozen: What was fixed before the run, such as grants and attacks: name to SHA-256.
    """

    command: str
    data_sha256: str
    seed: int
    embedder: str
    rows: Sequence[Row]
    frozen: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def ok(self) -> bool:
        """False if any row misses its bar."""
        return all(row.ok is not False for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints; numbers that are not finite become null."""
        rows = [{key: _plain(value) for key, value in asdict(row).items()} for row in self.rows]
        frozen = {"frozen": dict(self.frozen)} if self.frozen else {}
        return {
            "command": self.command,
            "data_sha256": self.data_sha256,
            "seed": self.seed,
            "embedder": self.embedder,
            **frozen,
            "rows": rows,
        }


def peak_rss_mb() -> float:
    """The most memory this process held so far, in MB of 2**20 bytes; NaN on Windows, which does not say.

    Linux hands the figure of `getrusage` on to a program that a process starts, whose own may be far
    less: there it is read from `/proc`.
    """
    if sys.platform == "win32":
        return math.nan
    import resource

    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


__all__ = ["Report", "Row", "Sense", "peak_rss_mb"]
