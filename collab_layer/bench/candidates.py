"""The questions of the benchmark: who is asked when, for which item, among which others.

In:   a `DataSet` and the number of candidate seeds.
Out:  steps in time order: what everybody did since, then the trials to rank at that point.
Never: an event at or after a trial's target in any earlier step; a candidate the user ever held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from collab_layer.bench.data import MIN_HISTORY, DataSet, Event
from collab_layer.errors import DataSetError

KINDS = ("pop", "uni")
NEGATIVES = 9
LONGER = (19, 99)
"""Wrong candidates of the longer lists: one list of each kind and trial, the shorter the beginning of the longer."""
NEAREST = 300
BURN_IN = 0.1
"""Share of the last likes, by time, before which nobody is asked (timed sets)."""
FITTING = 0.4
"""Share of the last likes, by time, before which trials are for fitting only (timed sets)."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trial:
    """One question: which of these did the user take next?

    Attributes:
        user: Who.
        target: The item that was taken.
        fitting: True if weights may be fitted on it; else it is only scored.
        lists: By kind, candidate items of shape (seeds, 10), the target first.
        longer: By kind, one list of up to 100 that begins with the first of `lists`; of trials that are scored.
    """

    user: int
    target: int
    fitting: bool
    lists: Mapping[str, Numbers]
    longer: Mapping[str, Numbers] = field(default_factory=dict[str, Numbers])

    @property
    def union(self) -> list[int]:
        """Every candidate of any list once, ascending."""
        every = [held.ravel() for held in (*self.lists.values(), *self.longer.values())]
        return np.unique(np.concatenate(every)).tolist()

    def short(self) -> Trial:
        """The same without the longer lists."""
        return replace(self, longer={})


@dataclass(frozen=True, slots=True)
class Step:
    """Events to observe, and the trials asked right after them."""

    events: Sequence[tuple[int, Event]]
    trials: Sequence[Trial]


def plan(data: DataSet, seeds: int) -> list[Step]:
    """All steps of a set.

    Untimed: two steps. First everything but everybody's last two items; the second-last item
    of every second user is a fitting trial. Then everybody's second-last item; the last item
    of every user is a test trial.

    Timed: a replay. A user's last like is a trial at its moment, with everything of everybody
    before it. Trials before the 0.4 quantile of these moments are for fitting, and users
    active on both sides are asked once on each; the first tenth is not asked at all.

    Raises:
        DataSetError: There are too few items to draw candidates from.
    """
    items = np.array(sorted(data.texts), np.int64)
    if len(items) <= NEGATIVES:
        raise DataSetError(f"{len(items)} items, more than {NEGATIVES} are needed to draw candidates")
    drawer = _Drawer(items, data, seeds)
    return list(_replay(data, drawer) if data.timed else _last_out(data, drawer))


def drawn(steps: Sequence[Step], most: int | None, seed: int = 0) -> list[Step]:
    """The same steps with at most so many test and so many fitting trials, drawn at random; None keeps all."""
    if most is None:
        return list(steps)
    trials = [trial for step in steps for trial in step.trials]
    random = np.random.default_rng(seed)
    kept: set[tuple[bool, int]] = set()
    for fitting in (True, False):
        users = [trial.user for trial in trials if trial.fitting == fitting]
        some: list[int] = random.permutation(len(users))[:most].tolist()
        kept.update((fitting, users[at]) for at in some)
    return [Step(step.events, [one for one in step.trials if (one.fitting, one.user) in kept]) for step in steps]


def digest(steps: Sequence[Step]) -> str:
    """SHA-256 over every trial and its candidates: equal means the same questions."""
    total = hashlib.sha256()
    for step in steps:
        for trial in step.trials:
            total.update(f"{trial.user} {trial.target} {int(trial.fitting)}\n".encode())
            for kind in sorted(trial.lists):
                total.update(kind.encode() + trial.lists[kind].astype("<i8").tobytes())
            for kind in sorted(trial.longer):
                total.update(b"longer" + kind.encode() + trial.longer[kind].astype("<i8").tobytes())
    return total.hexdigest()


def _last_out(data: DataSet, drawer: _Drawer) -> Iterator[Step]:
    users = [user for user in sorted(data.histories) if len(data.histories[user]) > MIN_HISTORY + 1]
    cut = set(users)
    early = [
        (user, event)
        for user in sorted(data.histories)
        for event in (data.histories[user][:-2] if user in cut else data.histories[user][:-1])
    ]
    drawer.observe(early)
    yield Step(early, [drawer.trial(user, data.histories[user][-2].item, fitting=True) for user in users[::2]])
    late = [(user, data.histories[user][-2]) for user in users]
    drawer.observe(late)
    yield Step(late, [drawer.trial(user, data.histories[user][-1].item, fitting=False) for user in users])


def _replay(data: DataSet, drawer: _Drawer) -> Iterator[Step]:
    events = sorted(
        ((event.at, user, event) for user, held in data.histories.items() for event in held),
        key=lambda one: (one[0], one[1], one[2].item),
    )
    at = 0
    for moment, user, event, fitting in _moments(data):
        start = at
        while at < len(events) and events[at][0] < moment:
            at += 1
        fresh = [(who, what) for _, who, what in events[start:at]]
        drawer.observe(fresh)
        yield Step(fresh, [drawer.trial(user, event.item, fitting=fitting)])


def _moments(data: DataSet) -> list[tuple[datetime, int, Event, bool]]:
    """When whom to ask for what, in time order. Likes of one moment count as after each other's target."""
    ends = sorted(held[-1].at for held in data.histories.values())
    begin, cut = ends[int(BURN_IN * len(ends))], ends[int(FITTING * len(ends))]
    found: list[tuple[datetime, int, Event, bool]] = []
    for user, held in data.histories.items():
        before = [event for event in held if event.at < cut]
        for events, fitting in ((before, True), (held, False)):
            # What happened at the target's own moment cannot be told from what came after it.
            known = sum(event.at < events[-1].at for event in events) if events else 0
            if known >= MIN_HISTORY and events[-1].at >= begin and (events[-1].at < cut) == fitting:
                found.append((events[-1].at, user, events[-1], fitting))
    return sorted(found, key=lambda one: (one[0], one[1], one[3]))


class _Drawer:
    """Counts holders as they come, and draws each trial's candidates from what is held by then."""

    def __init__(self, items: Numbers, data: DataSet, seeds: int) -> None:
        self._items, self._data, self._seeds = items, data, seeds
        self._place = {item: at for at, item in enumerate(items.tolist())}
        self._holders = np.zeros(len(items), np.int64)

    def observe(self, events: Sequence[tuple[int, Event]]) -> None:
        for _, event in events:
            self._holders[self._place[event.item]] += 1

    def trial(self, user: int, target: int, *, fitting: bool) -> Trial:
        held = np.array([self._place[event.item] for event in self._data.histories[user]], np.int64)
        lists: dict[str, Numbers] = {}
        longer: dict[str, Numbers] = {}
        for number, kind in enumerate(KINDS):
            rows = np.empty((self._seeds, NEGATIVES + 1), np.int64)
            for seed in range(self._seeds):
                random = np.random.default_rng([seed, user, target, number])
                others = draw(kind, self._place[target], self._holders, held, random)
                rows[seed] = self._items[np.concatenate([[self._place[target]], others])]
                if seed == 0 and not fitting:
                    more = drawn_on(kind, self._place[target], self._holders, np.union1d(held, others), random)
                    longer[kind] = np.concatenate([rows[seed], self._items[more]])
            lists[kind] = rows
        return Trial(user, target, fitting, lists, longer)


def draw(kind: str, target: int, holders: Numbers, held: Numbers, random: np.random.Generator) -> Numbers:
    """Draw nine wrong candidates without repeats.

    Args:
        kind: `uni`: any item somebody holds. `pop`: one of the 300 nearest to the target in
            popularity rank, 150 above and 150 below, ties in random order; so popularity
            alone is no help.
        target: Row of the right item; it is counted as held even if nobody holds it yet.
        holders: How many hold each item by then, shape (items,).
        held: Rows the user ever holds, later ones included; never drawn.
        random: Where chance comes from.

    Returns:
        Rows, shape (9,).

    Raises:
        DataSetError: Fewer than nine items may be drawn.
    """
    pool = _pool(kind, target, holders, held, random, NEGATIVES)
    if len(pool) < NEGATIVES:
        raise DataSetError(f"fewer than {NEGATIVES} items are held by others; the set is too small")
    return np.sort(random.choice(pool, NEGATIVES, replace=False))


def drawn_on(kind: str, target: int, holders: Numbers, held: Numbers, random: np.random.Generator) -> Numbers:
    """Up to ninety more wrong candidates in random order, fewer where there are no more; as in `draw`."""
    more = LONGER[-1] - NEGATIVES
    pool = _pool(kind, target, holders, held, random, more)
    return random.permutation(pool)[:more]


def _pool(kind: str, target: int, holders: Numbers, held: Numbers, random: np.random.Generator, wanted: int) -> Numbers:
    """Rows to draw from; fewer than wanted only where there are no more."""
    free = holders > 0
    free[held] = False
    free[target] = False
    if kind != "pop":
        return np.flatnonzero(free)
    order = np.lexsort((random.permutation(len(holders)), -holders))
    order = order[(holders[order] > 0) | (order == target)]
    at = int(np.flatnonzero(order == target)[0])
    window = order[max(0, at - NEAREST // 2) : at + NEAREST // 2 + 1]
    near = window[free[window]]
    if len(near) < wanted:  # a user who holds nearly all of them: the nearest of the others
        distance = np.abs(np.arange(len(order)) - at)[free[order]]
        near = order[free[order]][np.argsort(distance, kind="stable")][:wanted]
    return near


__all__ = ["KINDS", "LONGER", "NEGATIVES", "Numbers", "Step", "Trial", "digest", "draw", "drawn", "drawn_on", "plan"]
