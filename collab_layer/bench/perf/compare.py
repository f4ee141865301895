"""Two runs side by side: each figure as a ratio to the older one.

In:   the rows of this run, the JSON of an older one.
Out:  rows `<figure>.change`: above 1 is more. Whether that is better the unit says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collab_layer.bench.report import Row
from collab_layer.errors import InputError


def changes(rows: Sequence[Row], before: Path) -> list[Row]:
    """A ratio for every figure that both have.

    Raises:
        InputError: The file is not what `collab bench perf --json` printed.
    """
    try:
        told: Any = json.loads(before.read_text(encoding="utf-8"))
        old = {str(row["name"]): row["value"] for row in told["rows"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"`{before}` is no output of `collab bench perf --json`") from error
    numbers = {name: float(value) for name, value in old.items() if isinstance(value, int | float)}
    return [Row(f"{row.name}.change", row.value / numbers[row.name], unit="x") for row in rows if numbers.get(row.name)]


__all__ = ["changes"]
