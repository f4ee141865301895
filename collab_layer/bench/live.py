"""What neighbours change in a layer that is in use.

In:   an open layer, perhaps owners.
Out:  a `Report`: for the tenant and each owner the change of the hit rate by experiment, in both
      orders of what was served, and by replay; the state of the gate, and who is muted.
Never: a ranking of its own; names of owners that were not asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from collab_layer.bench.report import Report, Row
from collab_layer.sync import CollabLayer
from collab_layer.types.lift import Lift

WAYS = ("experiment", "both_orders", "replay")
WHOLE = "all"


def report(layer: CollabLayer, owners: Sequence[str]) -> Report:
    """Measure a layer in use.

    Raises:
        UnknownIdError: Nobody is known under one of the names.
        NotPermittedError: The layer acts for a principal.
    """
    whole = layer.lift()
    rows = [
        Row("live.gate", float(whole.gate.state in ("open", "set")), unit=f"1 if neighbours count; {whole.gate.state}"),
        Row("live.muted_owners", float(layer.health().counts["muted"]), unit="owners"),
        *_rows(f"live.{WHOLE}", whole),
    ]
    for owner in dict.fromkeys(owners):
        rows += _rows(f"live.{owner}", layer.lift(owner))
    command = " ".join(["collab bench live", *(f"--owner {owner}" for owner in dict.fromkeys(owners))])
    return Report(command, hashlib.sha256(whole.model_dump_json().encode()).hexdigest(), 0, layer.embedder, rows)


def _rows(prefix: str, found: Lift) -> list[Row]:
    rows = [Row(f"{prefix}.muted", float(found.muted), unit="1 if muted")]
    for way in WAYS:
        one = getattr(found, way)
        if one is None:
            continue
        rows.append(Row(f"{prefix}.{way}.alone.h1", one.alone))
        rows.append(Row(f"{prefix}.{way}.together.h1", one.together))
        change = Row(f"{prefix}.{way}.change", one.change, one.low, one.high, "difference")
        rows.append(change if way == "replay" else _harmless(change, found.muted))
        rows.append(Row(f"{prefix}.{way}.alone_cases", float(one.alone_cases), unit="choices"))
        rows.append(Row(f"{prefix}.{way}.together_cases", float(one.together_cases), unit="choices"))
        if one.alone_served:
            rows.append(Row(f"{prefix}.{way}.alone_taken", one.alone_cases / one.alone_served))
            rows.append(Row(f"{prefix}.{way}.together_taken", one.together_cases / one.together_served))
    return rows


def _harmless(row: Row, muted: bool) -> Row:
    """Harm that is not muted misses the bar."""
    harms = row.high is not None and row.high < 0
    return Row(row.name, row.value, row.low, row.high, row.unit, "upper bound >= 0, or muted", muted or not harms)


__all__ = ["report"]
