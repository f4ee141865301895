"""Runs as one page that needs nothing but a browser.

In:   runs, as `collab bench … --json` printed them.
Out:  HTML with its drawings inside: no network, no script; every word of a run is escaped.
Never: a figure that is not in a run.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from collab_layer.bench.runs import Figure, Run
from collab_layer.errors import CollabError

TEMPLATE = Path(__file__).with_name("page.html.j2")
INSTALL = "pip install 'collab-layer[report]'"
WIDTH, LABELS, LINE = 960.0, 430.0, 22.0
_WIDE = "mwжмфшщыю"
DRAWN = 40
"""Figures that one drawing shows; the table has all."""
_COST = frozenset(("s", "ms", "us", "µs", "MB", "tokens", "calls", "$", "USD", "1/s", "ratio"))
_THIRDS = ("low", "mid", "high")
_SECTIONS = (
    ("Lift", "What neighbours add: differences and ratios against memory alone, or against another arm."),
    ("Harm", "What neighbours take away, and what was told to those who may not know it."),
    ("Terciles", "By how much the asking owner had noted by itself."),
    ("Cost", "Time, memory, tokens and calls."),
    ("All other figures", "As measured."),
)


@dataclass(frozen=True, slots=True)
class _Mark:
    label: str
    x: float
    low: float
    high: float
    y: float


def page(runs: Sequence[Run]) -> str:
    """The whole page.

    Raises:
        CollabError: The template library is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise CollabError(f"a page needs jinja2; {INSTALL}") from error
    figures = [row for run in runs for row in run.rows]
    held = [[row for row in figures if section_of(row) == at] for at in range(len(_SECTIONS))]
    sections = [_section(*_SECTIONS[at], rows) for at, rows in enumerate(held) if rows]
    barred = [row for row in figures if row.ok is not None]
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(TEMPLATE.read_text(encoding="utf-8"))
    behind = json.dumps([run.model_dump() for run in runs], ensure_ascii=False, indent=1)
    met = sum(bool(row.ok) for row in barred)
    return template.render(runs=runs, sections=sections, bars=len(barred), met=met, behind=behind)


def section_of(row: Figure) -> int:
    """In which part of the page a figure goes."""
    last = row.name.rpartition(".")[2]
    if row.unit in _COST:
        return 3
    if "tercile" in row.name or set(_THIRDS) & set(re.split(r"[._]", row.name)):
        return 2
    if last in ("harm", "harm_over_mem0", "worse", "leakage", "exposure"):
        return 1
    return 0 if last in ("lift", "help", "change") or "_over_" in last or "minus_" in last else 4


def _section(title: str, says: str, rows: Sequence[Figure]) -> dict[str, Any]:
    units = dict.fromkeys(row.unit for row in rows) if title != _SECTIONS[-1][0] else ()
    drawn = [_drawing(unit, [row for row in rows if row.unit == unit and _finite(row.value)]) for unit in units]
    return {
        "title": title,
        "says": says,
        "drawings": [one for one in drawn if one is not None],
        "rows": [_shown(row) for row in rows],
    }


def _drawing(unit: str, rows: Sequence[Figure]) -> dict[str, Any] | None:
    """Figures of one unit on one scale, which has 0 on it; None where there is nothing to see."""
    drawn = rows[:DRAWN]
    ends = [value for row in drawn for value in (row.value, row.low, row.high) if value is not None and _finite(value)]
    least, most = (min([0.0, *ends]), max([0.0, *ends])) if ends else (0.0, 0.0)
    wide = most - least
    if not wide:
        return None

    def place(value: float | None) -> float:
        inside = 0.0 if value is None else (min(max(value, least), most) - least) / wide
        return round(LABELS + inside * (WIDTH - LABELS - 10), 1)

    marks = [
        _Mark(
            _cut(row.name),
            place(row.value),
            place(row.value if row.low is None else row.low),
            place(row.value if row.high is None else row.high),
            (at + 0.7) * LINE,
        )
        for at, row in enumerate(drawn)
    ]
    return {
        "unit": unit,
        "marks": marks,
        "zero": place(0.0),
        "least": f"{least:.3g}",
        "most": f"{most:.3g}",
        "width": WIDTH,
        "labels": LABELS,
        "height": len(marks) * LINE + 30,
        "left_out": len(rows) - len(drawn),
    }


def _shown(row: Figure) -> dict[str, Any]:
    known = _finite(row.low) and _finite(row.high)
    return {
        "name": row.name,
        "value": f"{row.value:.4g}" if _finite(row.value) else "not finite",
        "interval": f"{row.low:.4g} to {row.high:.4g}" if known else "",
        "unit": row.unit,
        "bar": row.bar or "",
        "ok": row.ok,
    }


def _cut(name: str) -> str:
    """A name whole, or as much of its end as fits beside a drawing in letters of 12 pixels."""
    wide = list(accumulate(map(_pixels, reversed(name))))
    fits = sum(one <= LABELS - 20 for one in wide)
    return name if fits == len(name) else f"…{name[len(name) - fits :]}"


def _pixels(letter: str) -> float:
    """About how wide a letter is, rather too wide: small ones, capitals, those with three stems, ideographs."""
    if unicodedata.east_asian_width(letter) in "WF":
        return 13.0
    return 7.5 + 2.0 * letter.isupper() + 4.0 * (letter.lower() in _WIDE)


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


__all__ = ["page", "section_of"]
