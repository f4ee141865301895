"""From raw features of candidate lists to figures: lifts, harm, terciles, bars.

In:   answered trials.
Out:  rows for each kind and length of candidate lists, and for cut histories.
Pure. No weight is fitted on a trial that is scored, and no choice is made on one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.bench import candidates, mem0_taste, metrics
from collab_layer.bench.asking import COLUMNS, FEATURES, Answered, case_of
from collab_layer.bench.contestants import ISOLATED, OURS, Contest, contestants
from collab_layer.bench.report import Row
from collab_layer.stages.few import Weights
from collab_layer.stages.fit import Case
from collab_layer.stages.rank import standardise
from collab_layer.types.graph import Counts, Floats

THIRDS = ("low", "mid", "high")
LAYER = "layer"
"""Ours with the weights of the layer's own gate, as `refit` left it by then."""
SHORT = f"pop{candidates.NEGATIVES}"
_BARS = {
    f"ml1m.{SHORT}.isolated.h1": (">=", 0.30, None),
    f"ml1m.{SHORT}.ours.lift": (">=", 0.45, 0.30),
    f"ml1m.{SHORT}.ours.minus_best": (">=", 0.0, None),
    f"ml1m.{SHORT}.ours.harm": ("<=", 0.075, None),
    f"ml1m.last1.{SHORT}.ours.lift": (">=", 0.40, None),
    f"ml1m.last3.{SHORT}.ours.lift": (">=", 0.30, None),
    f"mls.{SHORT}.ours.minus_isolated": (">=", -0.02, -0.02),
    f"mls.{SHORT}.ours.harm": ("<=", 0.04, None),
}


@dataclass(frozen=True, slots=True)
class Board:
    """Lists of the scored trials, each feature standardised within its list, the right candidate first.

    Attributes:
        names: Of the features, f of them.
        lists: Per trial, shape (seeds, c, f); c may differ between trials.
        held: How many things the user of each trial is ranked by.
    """

    names: Sequence[str]
    lists: Sequence[Floats]
    held: Sequence[int]

    @classmethod
    def of(cls, cases: Sequence[Sequence[Case]], held: Sequence[int]) -> Board:
        """From the lists of each trial."""
        names = tuple(cases[0][0].columns)
        return cls(names, [np.stack([_table(case, names) for case in mine]) for mine in cases], held)

    def places(self, weights: Weights) -> Counts:
        """Place of the right candidate, shape (trials, seeds)."""
        return np.stack([self.place(at, weights) for at in range(len(self.lists))])

    def place(self, at: int, weights: Weights) -> Counts:
        """The same of one trial, shape (seeds,)."""
        used = weights.at(self.held[at])
        return metrics.places(self.lists[at] @ np.array([used.get(name, 0.0) for name in self.names]))


def score(name: str, answered: Sequence[Answered], seeds: int) -> list[Row]:
    """Fit on the fitting trials, score the others."""
    fitting = [one for one in answered if one.trial.fitting]
    tested = [one for one in answered if not one.trial.fitting]
    rows = [Row(f"{name}.users", float(len(tested)), unit="users")]
    for kind in candidates.KINDS:
        contest = contestants(fitting, kind, seeds)
        prefix = f"{name}.{kind}{candidates.NEGATIVES}"
        held = [one.held for one in tested]
        board = Board.of([[one.case(kind, seed) for seed in range(seeds)] for one in tested], held)
        place = {who: board.places(used) for who, used in contest.weights.items()}
        gates = [one.gate for one in tested if one.gate is not None]
        if len(gates) == len(tested):
            each = [board.place(at, Weights(gate.weights, gate.few)) for at, gate in enumerate(gates)]
            place[LAYER] = np.stack(each)
        rows += _figures(prefix, place)
        rows += _against_the_best(prefix, place)
        rows += _over_mem0(prefix, place)
        rows += _thirds(prefix, place, np.array(held))
        rows += _gate(prefix, contest)
        rows += _longer(f"{name}.{kind}", tested, kind, contest)
        rows += _cuts(name, tested, kind, seeds, contest)
    rows += _opened(name, tested)
    return [barred(row) for row in rows]


def barred(row: Row) -> Row:
    """The same row with its bar, if it has one."""
    if row.name not in _BARS:
        return row
    sense, bar, low = _BARS[row.name]
    return row.against(sense, bar, low=low)  # pyright: ignore[reportArgumentType]


def versus(prefix: str, place: Mapping[str, Counts]) -> list[Row]:
    """H@1 of every contestant, and what it changes against isolated memory."""
    first = {who: metrics.hits(found) for who, found in place.items()}
    base = first[ISOLATED].mean(axis=1)
    rows: list[Row] = []
    for who, found in place.items():
        mine = first[who].mean(axis=1)
        rows.append(Row.of(f"{prefix}.{who}.h1", metrics.mean(mine, 0)))
        if who != ISOLATED:
            rows.append(Row.of(f"{prefix}.{who}.lift", metrics.lift(base, mine, 0)))
            rows.append(Row.of(f"{prefix}.{who}.minus_isolated", metrics.mean(mine - base, 0), "difference"))
            rows.append(Row.of(f"{prefix}.{who}.harm", metrics.mean(metrics.harm(first[ISOLATED], first[who]), 0)))
            rows.append(Row.of(f"{prefix}.{who}.worse", metrics.mean(metrics.worse(place[ISOLATED], found), 0)))
    return rows


def _figures(prefix: str, place: Mapping[str, Counts]) -> list[Row]:
    rows = versus(prefix, place)
    for who, found in place.items():
        for at in (1, 3, 5):
            if at > 1:  # the first is in every table
                rows.append(Row.of(f"{prefix}.{who}.h{at}", metrics.mean(metrics.hits(found, at).mean(axis=1), 0)))
            rows.append(Row.of(f"{prefix}.{who}.n{at}", metrics.mean(metrics.ndcg(found, at).mean(axis=1), 0)))
    return rows


def _against_the_best(prefix: str, place: Mapping[str, Counts]) -> list[Row]:
    """Ours minus the best contestant that is none of ours."""
    mine = metrics.hits(place[OURS]).mean(axis=1)
    others = {who: metrics.hits(found).mean(axis=1) for who, found in place.items()}
    for who in (OURS, "fitted", LAYER):
        others.pop(who, None)
    best = max(others, key=lambda who: float(others[who].mean()))
    return [Row.of(f"{prefix}.ours.minus_best", metrics.mean(mine - others[best], 0), f"difference to {best}")]


def _over_mem0(prefix: str, place: Mapping[str, Counts]) -> list[Row]:
    """Ours against Mem0's own search, where that competes."""
    if mem0_taste.NAME not in place:
        return []
    before, after = metrics.hits(place[mem0_taste.NAME]), metrics.hits(place[OURS])
    return [
        Row.of(f"{prefix}.ours.lift_over_mem0", metrics.lift(before.mean(axis=1), after.mean(axis=1), 0)),
        Row.of(f"{prefix}.ours.harm_over_mem0", metrics.mean(metrics.harm(before, after), 0)),
    ]


def _thirds(prefix: str, place: Mapping[str, Counts], held: np.ndarray) -> list[Row]:
    """Lift of ours by how much the users hold."""
    order = np.argsort(held, kind="stable")
    rows: list[Row] = []
    for third, part in zip(THIRDS, np.array_split(order, 3), strict=True):
        if len(part):
            before, after = (metrics.hits(place[who][part]).mean(axis=1) for who in (ISOLATED, OURS))
            rows.append(Row.of(f"{prefix}.ours.lift_{third}_activity", metrics.lift(before, after, 0)))
    return rows


def _gate(prefix: str, contest: Contest) -> list[Row]:
    rows: list[Row] = []
    for name, found in (("", contest.much), ("few.", contest.few)):
        if found.cases:
            weights = found.weights.items()
            rows += [Row(f"{prefix}.{name}weight.{what}", value, unit="weight") for what, value in weights]
            rows.append(Row(f"{prefix}.{name}gate", float(found.open), unit="1 if open"))
            rows.append(
                Row(f"{prefix}.{name}gate.gain", found.gain, found.low, None, unit="difference on fitting trials")
            )
    return rows


def _longer(prefix: str, tested: Sequence[Answered], kind: str, contest: Contest) -> list[Row]:
    """The same weights over longer lists, where there are enough other candidates."""
    rows: list[Row] = []
    for others in candidates.LONGER:
        lists = [one.trial.longer.get(kind, ())[: others + 1] for one in tested]
        if lists and all(len(each) == others + 1 for each in lists):
            cases = [
                [case_of(one.raw, [int(thing) for thing in each])] for one, each in zip(tested, lists, strict=True)
            ]
            board = Board.of(cases, [one.held for one in tested])
            rows += _figures(f"{prefix}{others}", {who: board.places(used) for who, used in contest.weights.items()})
    return rows


def _cuts(name: str, tested: Sequence[Answered], kind: str, seeds: int, contest: Contest) -> list[Row]:
    """The same lists and weights for those who hold only the newest few of their things."""
    rows: list[Row] = []
    for cut in sorted({cut for one in tested for cut in one.cut}):
        asked = [one for one in tested if cut in one.cut]
        lists = [[one.case_of_cut(cut, kind, seed) for seed in range(seeds)] for one in asked]
        board = Board.of(lists, [cut] * len(asked))
        known = {who: used for who, used in contest.weights.items() if set(used.much) <= set(board.names)}
        prefix = f"{name}.last{cut}.{kind}{candidates.NEGATIVES}"
        rows += versus(prefix, {who: board.places(used) for who, used in known.items()})
        rows.append(Row(f"{prefix}.users", float(len(asked)), unit="users"))
    return rows


def _opened(name: str, tested: Sequence[Answered]) -> list[Row]:
    """How often the layer's own gate was open when a scored question was asked."""
    gates = [one.gate for one in tested if one.gate is not None]
    if not gates:
        return []
    last = gates[-1]
    return [
        Row(
            f"{name}.layer.gate_open", sum(gate.state == "open" for gate in gates) / len(gates), unit="share of trials"
        ),
        Row(f"{name}.layer.gate.gain", last.gain, last.low, None, unit="difference on past choices"),
        Row(f"{name}.layer.gate.cases", float(last.cases), unit="past choices"),
    ]


def _table(case: Case, names: Sequence[str]) -> Floats:
    return standardise(np.stack([case.columns[name] for name in names])).T


__all__ = ["COLUMNS", "FEATURES", "Board", "barred", "score", "versus"]
