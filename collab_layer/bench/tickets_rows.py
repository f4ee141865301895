"""From scored contexts to rows: means, differences to memory alone and to the pool, bars.

In:   figures of every context that was asked for.
Out:  rows by layout, budget and arm.
Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from collab_layer.bench import metrics
from collab_layer.bench.metered import Costs
from collab_layer.bench.report import Row
from collab_layer.bench.store_names import alone_of
from collab_layer.bench.tickets_data import TicketSet
from collab_layer.bench.tickets_scores import FIGURES
from collab_layer.types.graph import Floats

MAIN = 400
_BUDGETS: Mapping[str, tuple[int, ...]] = {"rnd": (200, MAIN, 800)}
Case = tuple[str, int, str, int]
"""Layout, budget, arm, ticket."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What was found.

    Attributes:
        found: `FIGURES` of each context of a case, one per seed.
        leaks: By layout and arm, for each canary whether somebody else was told of it.
        costs: By arm.
    """

    found: dict[Case, list[Sequence[float]]] = field(default_factory=lambda: defaultdict(list))
    leaks: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    costs: dict[str, Costs] = field(default_factory=lambda: defaultdict(Costs))


def budgets_of(layout: str) -> tuple[int, ...]:
    """Tokens of a context in the first deal of a layout; in later ones it is `MAIN` alone."""
    return _BUDGETS.get(layout, (MAIN,))


def rows_of(data: TicketSet, layouts: Sequence[str], arms: Sequence[str], heard: Heard) -> list[Row]:
    """All rows."""
    rows = [Row("tickets.cases", float(len(data.tickets)), unit="tickets")]
    for layout in layouts:
        for budget in budgets_of(layout):
            table = {arm: _table(heard, layout, budget, arm, len(data.tickets)) for arm in arms}
            prefix = f"tickets.{layout}{budget}"
            for arm in arms:
                rows += [_row(f"{prefix}.{arm}.{name}", table[arm][:, at]) for at, name in enumerate(FIGURES)]
                alone = alone_of(arm, arms)
                rows += [] if arm == alone else _over_alone(f"{prefix}.{arm}", alone, table[alone], table[arm])
            rows += _over_pool(f"{prefix}.ours", table["pool"], table["ours"])
        rows += [Row(f"tickets.{layout}.{arm}.leakage", float(np.mean(heard.leaks[layout, arm]))) for arm in arms]
    rows += [row for arm in arms for row in heard.costs[arm].rows(f"tickets.{arm}")]
    return [_barred(row) for row in rows] if data.name == "statebench" else rows


def _table(heard: Heard, layout: str, budget: int, arm: str, count: int) -> Floats:
    """Means over the seeds, shape (tickets, figures); NaN where no seed has a value."""
    out = np.full((count, len(FIGURES)), np.nan)
    for at in range(count):
        values = np.array(heard.found.get((layout, budget, arm, at), [[np.nan] * len(FIGURES)]))
        for column in range(len(FIGURES)):
            held = values[~np.isnan(values[:, column]), column]
            out[at, column] = held.mean() if len(held) else np.nan
    return out


def _over_alone(prefix: str, alone: str, own: Floats, mine: Floats) -> list[Row]:
    plan, hit = FIGURES.index("plan_ap"), FIGURES.index("hit")
    gain = mine[:, hit] - own[:, hit]
    known = ~np.isnan(gain)
    return [
        _row(f"{prefix}.plan_ap_over_{alone}", mine[:, plan] - own[:, plan]),
        _row(f"{prefix}.hit_over_{alone}", gain),
        _row(f"{prefix}.help", np.maximum(gain[known], 0)),
        _row(f"{prefix}.harm", np.maximum(-gain[known], 0)),
    ]


def _over_pool(prefix: str, pool: Floats, ours: Floats) -> list[Row]:
    rows = [
        _row(f"{prefix}.{name}_over_pool", ours[:, at] - pool[:, at])
        for at, name in enumerate(FIGURES)
        if name in ("plan_ap", "hit", "scenario_recall")
    ]
    recall = FIGURES.index("recall")
    known = ~np.isnan(pool[:, recall]) & ~np.isnan(ours[:, recall])
    lift = metrics.lift(pool[known, recall], ours[known, recall], 0)
    return [*rows, Row.of(f"{prefix}.recall_lift_over_pool", lift)]


def _row(name: str, values: Floats) -> Row:
    known = values[~np.isnan(values)]
    unit = "tokens" if name.endswith(".tokens") else "share"
    if not len(known):
        return Row(name, float("nan"), unit=unit)
    found = metrics.mean(known, 0)
    return Row.of(name, found, unit)


def _barred(row: Row) -> Row:
    match row.name:
        case "tickets.rnd400.ours.plan_ap_over_own":
            return row.against(">=", 0.05, positive=True)
        case "tickets.many400.ours.plan_ap_over_own":
            return row.against(">=", 0.25, positive=True)
        case "tickets.rnd400.ours.hit_over_pool":
            return row.not_below(-0.02)
        case "tickets.rnd400.ours.recall_lift_over_pool":
            return row.against(">=", 0.08)
        case _:
            return row.against("<=", 0.01) if row.name.endswith(".ours.leakage") else row


__all__ = ["MAIN", "Heard", "budgets_of", "rows_of"]
