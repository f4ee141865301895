"""Does an agent profit from tickets that others solved?

In:   a set of solved tickets; contestants with the two calls of a `Store`.
Out:  for every layout, budget and arm: what of the right plan, and of the alike tickets, is in the
      context; how often the right one was won or lost by sharing; what leaked; what it cost.
Never: what was done on a case, or its name, in the query: that is its first message alone.

`own` is our layer without neighbours; `pool` the layer over everybody's records without links; `ours`
the layer as it is. All three have the same ranker, record form and budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from collab_layer.bench.layer_store import LayerStore
from collab_layer.bench.metered import entered
from collab_layer.bench.options import Options
from collab_layer.bench.phases import Phases
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report
from collab_layer.bench.stores import ENDED, EVERYONE, PRIVATE, Opens, Store
from collab_layer.bench.tickets_data import Ticket, TicketSet, load_tickets
from collab_layer.bench.tickets_rows import MAIN, Heard, budgets_of, rows_of
from collab_layer.bench.tickets_scores import figures, labels_of
from collab_layer.bench.tickets_split import FOLDS, LAYOUTS, Deal, Record, deal

CANARIES = 8
"""Private records per fold, and questions asked by somebody else that they answer word for word."""
_START = datetime(2025, 1, 1, tzinfo=UTC)
_STEP = timedelta(minutes=1)
_ASKED = _START + timedelta(days=30)


async def measure(options: Options, progress: Progress) -> Report:
    """Run every layout, fold and seed.

    Raises:
        DataSetError: The folder cannot be used.
        InputError: A layout is unknown.
    """
    phases = Phases()
    layouts = options.chosen(LAYOUTS)
    data = load_tickets(options.folder)
    arms, heard = arms_of(options), Heard()
    rounds = [
        (layout, seed, fold)
        for layout in layouts
        for seed in range(options.seeds)
        for fold in range(min(options.folds or FOLDS, FOLDS))
    ]
    for done, (layout, seed, fold) in enumerate(rounds):
        split = deal(data.tickets, layout, options.seed + seed, fold)
        budgets = budgets_of(layout) if seed == 0 else (MAIN,)
        for arm, opens in arms.items():
            await _ask(data, split, (layout, arm), opens, budgets, heard)
        progress("tickets", done + 1, len(rounds))
    rows = rows_of(data, layouts, tuple(arms), heard)
    rows += phases.rows()
    name = options.folder.resolve().name
    return Report(f"collab bench tasks tickets --data {name}", data.sha256, options.seed, options.embedder.id, rows)


def arms_of(options: Options) -> dict[str, Opens]:
    """Contestants by name: ours in three forms, then those that the caller brings."""
    mine: dict[str, Opens] = {
        "own": lambda: LayerStore("own", embedder=options.embedder),
        "pool": lambda: LayerStore("pool", links=False, embedder=options.embedder),
        "ours": lambda: LayerStore("pool", embedder=options.embedder),
    }
    return {**mine, **options.stores}


async def _ask(
    data: TicketSet, split: Deal, whose: tuple[str, str], opens: Opens, budgets: Sequence[int], heard: Heard
) -> None:
    """Tell a fresh contestant every record of a split, then ask for every case; `whose` is layout and arm."""
    layout, arm = whose
    labels = labels_of(data.tickets)
    async with entered(opens, heard.costs[arm]) as store:
        told: dict[str, Record] = {}
        for at, record in enumerate(split.records):
            text = data.tickets[record.ticket].text + ENDED + ", ".join(sorted(record.did))
            links = [f"decision:{said}" for said in sorted(record.did)]
            told[await store.add(record.owner, text, links, _START + at * _STEP, EVERYONE)] = record
        for case, asks in split.cases:
            for budget in budgets:
                items = await store.context(asks, data.tickets[case].text, _ASKED, budget)
                scored = figures(labels, case, split.records, items, told)
                heard.found[layout, budget, arm, case].append(scored)
        heard.leaks[layout, arm] += await _leaks(store, data.tickets, split)


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


__all__ = ["arms_of", "measure"]
