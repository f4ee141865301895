"""Graphs that somebody spoiled: noise in every history, and attackers who push one item.

In:   the steps of a set.
Out:  the same trials after other events; rows that say what it did.
Pure: chance comes from fixed seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np

from collab_layer.bench import metrics
from collab_layer.bench.asking import Answered, case_of
from collab_layer.bench.candidates import Step
from collab_layer.bench.contestants import contestants
from collab_layer.bench.data import DataSet, Event
from collab_layer.bench.report import Row
from collab_layer.bench.scoring import SHORT, Board, versus
from collab_layer.stages.few import Weights

CUTS = (1, 3, 10)
"""Newest own things that a history is cut to."""
NOISE = (0.1, 0.3)
"""Fake items in every history, as a share of the true ones."""
ATTACKERS = 0.05
"""Attackers, as a share of the users."""
KIND = "pop"


def spoiled(data: DataSet, steps: Sequence[Step], pushed: int) -> dict[str, list[Step]]:
    """By name, steps with the same trials."""
    found = {"noise0": [Step(step.events, [trial.short() for trial in step.trials]) for step in steps]}
    found |= {f"noise{round(100 * share)}": noisy(data, steps, share) for share in NOISE}
    return {**found, f"attack{round(100 * ATTACKERS)}": attackers(data, steps, pushed)}


def noisy(data: DataSet, steps: Sequence[Step], share: float) -> list[Step]:
    """After each like, with this chance, a like of an item that its user never held and is never asked for."""
    random = np.random.default_rng(0)
    items = sorted({event.item for held in data.histories.values() for event in held})
    barred = {user: {event.item for event in held} for user, held in data.histories.items()}
    for step in steps:
        for trial in step.trials:
            barred[trial.user].update(trial.short().union)
    out: list[Step] = []
    for step in steps:
        events: list[tuple[int, Event]] = []
        for user, event in step.events:
            events.append((user, event))
            if random.random() < share:
                fake = items[int(random.integers(len(items)))]
                if fake not in barred[user]:
                    barred[user].add(fake)
                    events.append((user, Event(fake, event.at)))
        out.append(Step(events, [trial.short() for trial in step.trials]))
    return out


def pushed(data: DataSet, steps: Sequence[Step]) -> int:
    """The item that attackers push: the median in popularity of all that anybody held before the first trial."""
    counts: dict[int, int] = {}
    for step in steps:
        for _, event in step.events:
            counts[event.item] = counts.get(event.item, 0) + 1
        if step.trials:
            break
    order = sorted(counts, key=lambda item: (counts[item], item))
    return order[len(order) // 2] if order else min(data.texts)


def attackers(data: DataSet, steps: Sequence[Step], pushed: int) -> list[Step]:
    """New users, each of whom holds the pushed item and copies what one real user holds before the first trial."""
    random = np.random.default_rng(0)
    count = max(1, round(ATTACKERS * len(data.histories)))
    known: dict[int, list[Event]] = {}
    first = next(at for at, step in enumerate(steps) if step.trials)
    for step in steps[: first + 1]:
        for user, event in step.events:
            known.setdefault(user, []).append(event)
    models = random.choice(sorted(known), count, replace=count > len(known)).tolist()
    begin = max(data.histories) + 1
    last = max(event.at for held in known.values() for event in held)
    fresh = [(begin + at, event) for at, model in enumerate(models) for event in _copied(known[model], pushed, last)]
    out = [Step(step.events, [trial.short() for trial in step.trials]) for step in steps]
    out[first] = Step([*out[first].events, *fresh], out[first].trials)
    return out


def score(name: str, answered: Sequence[Answered], seeds: int) -> list[Row]:
    """What every contestant makes of a spoiled graph, with weights fitted on it."""
    fitting = [one for one in answered if one.trial.fitting]
    tested = [one for one in answered if not one.trial.fitting]
    contest = contestants(fitting, KIND, seeds)
    held = [one.held for one in tested]
    board = Board.of([[one.case(KIND, seed) for seed in range(seeds)] for one in tested], held)
    rows = versus(f"{name}.{SHORT}", {who: board.places(used) for who, used in contest.weights.items()})
    rows.append(Row(f"{name}.{SHORT}.gate", float(contest.opened), unit="1 if open"))
    rows.append(Row(f"{name}.{SHORT}.users", float(len(tested)), unit="users"))
    return rows


def attacked(name: str, answered: Sequence[Answered], pushed: int, seeds: int) -> list[Row]:
    """How often the pushed item comes first where it stands among the others instead of the right one."""
    fitting = [one for one in answered if one.trial.fitting]
    tested = [one for one in answered if not one.trial.fitting and pushed not in one.trial.lists[KIND]]
    if not tested:
        return []
    weights: Mapping[str, Weights] = contestants(fitting, KIND, seeds).weights
    lists = [
        [case_of(one.raw, [pushed, *one.trial.lists[KIND][seed][1:].tolist()]) for seed in range(seeds)]
        for one in tested
    ]
    board = Board.of(lists, [one.held for one in tested])
    rows: list[Row] = []
    for who, used in weights.items():
        figure = metrics.mean(metrics.hits(board.places(used)).mean(axis=1), 0)
        rows.append(Row.of(f"{name}.{SHORT}.{who}.pushed_first", figure))
    return rows


def _copied(held: Sequence[Event], pushed: int, at: datetime) -> Iterator[Event]:
    yield from (event for event in held if event.item != pushed)
    yield Event(pushed, at)


__all__ = ["CUTS", "attacked", "attackers", "noisy", "pushed", "score", "spoiled"]
