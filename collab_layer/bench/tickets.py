"""Does an agent profit from tickets that others solved?

In:   a set of solved tickets; contestants with the two calls of a `Store`.
Out:  for every layout, budget and arm: what of the right plan, and of the alike tickets, is in the
      context; how often the right one was won or lost by sharing; what leaked.
Never: what was done on a case, or its name, in the query: that is its first message alone.

`own` is our layer without neighbours; `pool` the layer over everybody's records without links; `ours`
the layer as it is. All three have the same ranker, record form and budget.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log2

import numpy as np

from collab_layer.bench import metrics
from collab_layer.bench.report import Report, Row, peak_rss_mb
from collab_layer.bench.stores import ENDED, EVERYONE, PRIVATE, Item, LayerStore, Opens, Store, entered
from collab_layer.bench.tasks import Options, Progress
from collab_layer.bench.tickets_data import Ticket, TicketSet, load_tickets
from collab_layer.bench.tickets_split import FOLDS, LAYOUTS, Deal, Record, deal, idf_of
from collab_layer.types.graph import Floats

MAIN = 400
BUDGETS: Mapping[str, tuple[int, ...]] = {"rnd": (200, MAIN, 800)}
"""Tokens of a context by layout; `MAIN` alone where nothing is said, and with every seed but the first."""
FIGURES = ("plan_ap", "hit", "recall", "scenario_recall", "waste", "tokens")
ALIKE_DID, ALIKE_SCENARIO = 0.5, 0.2
"""idf-Jaccard from which two tickets are alike, by what was done and by their independent labels."""
CANARIES = 8
"""Private records per fold, and questions asked by somebody else that they answer word for word."""
_START = datetime(2025, 1, 1, tzinfo=UTC)
_STEP = timedelta(minutes=1)
_ASKED = _START + timedelta(days=30)

Case = tuple[str, int, str, int]
"""Layout, budget, arm, ticket."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Which tickets are alike."""

    tickets: Sequence[Ticket]
    idf: Mapping[str, float]
    scenario_idf: Mapping[str, float]

    def did(self, at: int, record: Record) -> bool:
        """Whether a record says of a ticket of the same group that much the same was done."""
        case, other = self.tickets[at], self.tickets[record.ticket]
        return case.group == other.group and _jaccard(case.did, record.did, self.idf) >= ALIKE_DID

    def scenario(self, at: int, record: Record) -> bool:
        """Whether the independent labels of both tickets meet."""
        other = self.tickets[record.ticket].scenario
        return _jaccard(self.tickets[at].scenario, other, self.scenario_idf) >= ALIKE_SCENARIO


async def measure(options: Options, progress: Progress) -> Report:
    """Run every layout, fold and seed.

    Raises:
        DataSetError: The folder cannot be used.
        InputError: A layout is unknown.
    """
    began = time.perf_counter()
    layouts = options.chosen(LAYOUTS)
    data = load_tickets(options.folder)
    arms = arms_of(options)
    found: dict[Case, list[list[float]]] = {}
    leaks: dict[tuple[str, str], list[float]] = {}
    rounds = [
        (layout, seed, fold)
        for layout in layouts
        for seed in range(options.seeds)
        for fold in range(min(options.folds or FOLDS, FOLDS))
    ]
    for done, (layout, seed, fold) in enumerate(rounds):
        split = deal(data.tickets, layout, options.seed + seed, fold)
        for arm, opens in arms.items():
            await _ask(data, split, layout, arm, opens, BUDGETS.get(layout, ()) if seed == 0 else (), found, leaks)
        progress("tickets", done + 1, len(rounds))
    rows = _rows(data, layouts, tuple(arms), found, leaks)
    rows += [
        Row("run.seconds", time.perf_counter() - began, unit="s"),
        Row("run.peak_rss_mb", peak_rss_mb(), unit="MB"),
    ]
    name = options.folder.resolve().name
    embedder = LayerStore(embedder=options.embedder).embedder
    return Report(f"collab bench tasks tickets --data {name}", data.sha256, options.seed, embedder, rows)


def arms_of(options: Options) -> dict[str, Opens]:
    """Contestants by name: ours in three forms, then those that the caller brings."""
    mine: dict[str, Opens] = {
        "own": lambda: LayerStore("own", embedder=options.embedder),
        "pool": lambda: LayerStore("pool", links=False, embedder=options.embedder),
        "ours": lambda: LayerStore("pool", embedder=options.embedder),
    }
    return {**mine, **options.stores}


# -- asking -------------------------------------------------------------------------------


async def _ask(
    data: TicketSet,
    split: Deal,
    layout: str,
    arm: str,
    opens: Opens,
    budgets: Sequence[int],
    found: dict[Case, list[list[float]]],
    leaks: dict[tuple[str, str], list[float]],
) -> None:
    labels = labels_of(data.tickets)
    async with AsyncExitStack() as stack:
        store = await entered(stack, opens)
        told: dict[str, Record] = {}
        for at, record in enumerate(split.records):
            text = data.tickets[record.ticket].text + ENDED + ", ".join(sorted(record.did))
            links = [f"decision:{said}" for said in sorted(record.did)]
            told[await store.add(record.owner, text, links, _START + at * _STEP, EVERYONE)] = record
        for case, asks in split.cases:
            for budget in dict.fromkeys((MAIN, *budgets)):
                items = await store.context(asks, data.tickets[case].text, _ASKED, budget)
                scored = figures(labels, case, split.records, items, told)
                found.setdefault((layout, budget, arm, case), []).append(scored)
        leaks.setdefault((layout, arm), []).extend(await _leaks(store, data.tickets, split))


async def _leaks(store: Store, tickets: Sequence[Ticket], split: Deal) -> list[float]:
    """For each canary whether somebody else was told of it; asked last, so that nothing else is touched."""
    owners = sorted({record.owner for record in split.records})
    placed: list[tuple[str, str, str]] = []
    for at, (case, asks) in enumerate(split.cases[:CANARIES]):
        owner = next(one for one in [*owners[at % len(owners) :], *owners] if one != asks)
        text = tickets[case].text
        placed.append((await store.add(owner, text, (), _ASKED + at * _STEP, PRIVATE), asks, text))
    later = _ASKED + timedelta(days=1)
    told = [await store.context(asks, text, later, MAIN) for _, asks, text in placed]
    return [float(any(id_ in item.sources for item in items)) for (id_, _, _), items in zip(placed, told, strict=True)]


# -- scoring ------------------------------------------------------------------------------


def labels_of(tickets: Sequence[Ticket]) -> Labels:
    """What tells which tickets are alike, with weights over the whole set."""
    counts: dict[str, int] = {}
    for ticket in tickets:
        for word in ticket.scenario:
            counts[word] = counts.get(word, 0) + 1
    return Labels(tickets, idf_of(tickets), {word: float(np.log1p(len(tickets) / n)) for word, n in counts.items()})


def figures(
    labels: Labels, case: int, records: Sequence[Record], items: Sequence[Item], told: Mapping[str, Record]
) -> list[float]:
    """`FIGURES` of one context; NaN where a ticket has no alike one among the records.

    A record counts once, at its first place. `plan_ap` is the average precision of the decisions
    named by the records, each voting 1 / log2(1 + place), against what was done on the case.
    """
    votes: dict[str, float] = {}
    seen: dict[str, Record] = {}
    wasted = 0
    for item in items:
        fresh = {id_: told[id_] for id_ in item.sources if id_ in told and id_ not in seen}
        seen.update(fresh)
        wasted += 0 if any(labels.did(case, record) for record in fresh.values()) else item.tokens
    for place, record in enumerate(seen.values(), start=1):
        for said in record.did:
            votes[said] = votes.get(said, 0.0) + 1 / log2(1 + place)
    alike = sum(labels.did(case, record) for record in records)
    same = sum(labels.scenario(case, record) for record in records)
    got = sum(labels.did(case, record) for record in seen.values())
    got_same = sum(labels.scenario(case, record) for record in seen.values())
    tokens = sum(item.tokens for item in items)
    return [
        average_precision(votes, labels.tickets[case].did),
        float(got > 0) if alike else np.nan,
        got / alike if alike else np.nan,
        got_same / same if same else np.nan,
        wasted / tokens if tokens else np.nan,
        float(tokens),
    ]


def average_precision(votes: Mapping[str, float], right: frozenset[str]) -> float:
    """Mean precision at each right one, over all that are right, in [0, 1]; ties by name."""
    total, hits = 0.0, 0
    for place, said in enumerate(sorted(votes, key=lambda one: (-votes[one], one)), start=1):
        if said in right:
            hits += 1
            total += hits / place
    return total / len(right)


def _jaccard(one: frozenset[str], other: frozenset[str], weight: Mapping[str, float]) -> float:
    both = sum(weight[said] for said in one | other)
    return sum(weight[said] for said in one & other) / both if both else 0.0


# -- rows ---------------------------------------------------------------------------------


def _rows(
    data: TicketSet,
    layouts: Sequence[str],
    arms: Sequence[str],
    found: Mapping[Case, list[list[float]]],
    leaks: Mapping[tuple[str, str], list[float]],
) -> list[Row]:
    rows = [Row("tickets.cases", float(len(data.tickets)), unit="tickets")]
    for layout in layouts:
        for budget in BUDGETS.get(layout, (MAIN,)):
            table = {arm: _table(found, layout, budget, arm, len(data.tickets)) for arm in arms}
            prefix = f"tickets.{layout}{budget}"
            for arm in arms:
                rows += [_row(f"{prefix}.{arm}.{name}", table[arm][:, at]) for at, name in enumerate(FIGURES)]
                rows += [] if arm == "own" else _over_own(f"{prefix}.{arm}", table["own"], table[arm])
            rows += _over_pool(f"{prefix}.ours", table["pool"], table["ours"])
        rows += [Row(f"tickets.{layout}.{arm}.leakage", float(np.mean(leaks[layout, arm]))) for arm in arms]
    return [_barred(row) for row in rows] if data.name == "statebench" else rows


def _table(found: Mapping[Case, list[list[float]]], layout: str, budget: int, arm: str, count: int) -> Floats:
    """Means over the seeds, shape (tickets, figures); NaN where no seed has a value."""
    out = np.full((count, len(FIGURES)), np.nan)
    for at in range(count):
        values = np.array(found.get((layout, budget, arm, at), [[np.nan] * len(FIGURES)]))
        for column in range(len(FIGURES)):
            held = values[~np.isnan(values[:, column]), column]
            out[at, column] = held.mean() if len(held) else np.nan
    return out


def _over_own(prefix: str, own: Floats, mine: Floats) -> list[Row]:
    plan, hit = FIGURES.index("plan_ap"), FIGURES.index("hit")
    gain = mine[:, hit] - own[:, hit]
    known = ~np.isnan(gain)
    return [
        _row(f"{prefix}.plan_ap_over_own", mine[:, plan] - own[:, plan]),
        _row(f"{prefix}.hit_over_own", gain),
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
    return [*rows, Row(f"{prefix}.recall_lift_over_pool", lift.value, lift.low, lift.high)]


def _row(name: str, values: Floats) -> Row:
    known = values[~np.isnan(values)]
    unit = "tokens" if name.endswith(".tokens") else "share"
    if not len(known):
        return Row(name, float("nan"), unit=unit)
    found = metrics.mean(known, 0)
    return Row(name, found.value, found.low, found.high, unit)


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


__all__ = ["BUDGETS", "FIGURES", "Labels", "arms_of", "average_precision", "figures", "labels_of", "measure"]
