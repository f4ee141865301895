"""From raw features of candidate lists to figures: contestants, lifts, harm, terciles, bars.

In:   answered trials.
Out:  rows for both kinds of candidates.
Pure. No weight is fitted on a trial that is scored, and no choice is made on one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.bench import candidates, metrics
from collab_layer.bench.baselines import NAMES
from collab_layer.bench.candidates import Trial
from collab_layer.bench.report import Row
from collab_layer.stages.fit import Case, fit, fit_gated
from collab_layer.stages.rank import DEFAULT_WEIGHTS, OWN, rank
from collab_layer.types.graph import Floats

FEATURES = tuple(DEFAULT_WEIGHTS)
EDGES = "item_edges"
ISOLATED, OURS = "isolated", "ours"
THIRDS = ("low", "mid", "high")


@dataclass(frozen=True, slots=True)
class Answered:
    """A trial and the raw features of its candidates: by item, shape (features and baselines,).

    `held` is how many items the user held when it was asked.
    """

    trial: Trial
    raw: Mapping[int, Floats]
    held: int = 0

    def case(self, kind: str, seed: int) -> Case:
        """One of its lists as columns, the right candidate in row 0."""
        table = np.stack([self.raw[item] for item in self.trial.lists[kind][seed].tolist()])
        names = (*FEATURES, *NAMES)
        return Case(dict(zip(names[: table.shape[1]], table.T, strict=True)), 0)


@dataclass(frozen=True, slots=True)
class Contest:
    """Weights per contestant, and what the gate of ours said."""

    weights: Mapping[str, Mapping[str, float]]
    opened: bool
    gain: float
    low: float


def score(name: str, answered: Sequence[Answered], seeds: int) -> list[Row]:
    """Fit on the fitting trials, score the others; rows for both kinds of candidates."""
    fitting = [one for one in answered if one.trial.fitting]
    tested = [one for one in answered if not one.trial.fitting]
    rows = [Row(f"{name}.users", float(len(tested)), unit="users")]
    for kind in candidates.KINDS:
        prefix = f"{name}.{kind}{candidates.NEGATIVES}"
        contest = contestants(fitting, kind, seeds)
        lists = [[one.case(kind, seed) for seed in range(seeds)] for one in tested]
        place = {who: _places(lists, used) for who, used in contest.weights.items()}
        rows += _figures(prefix, place)
        rows += _against_the_best(prefix, place)
        rows += _thirds(prefix, place, np.array([one.held for one in tested]))
        rows += [Row(f"{prefix}.weight.{what}", value, unit="weight") for what, value in contest.weights[OURS].items()]
        rows.append(Row(f"{prefix}.gate", float(contest.opened), unit="1 if open"))
        rows.append(Row(f"{prefix}.gate.gain", contest.gain, contest.low, None, unit="difference on fitting trials"))
    return [_barred(name, row) for row in rows]


def contestants(fitting: Sequence[Answered], kind: str, seeds: int) -> Contest:
    """Weights per contestant.

    `isolated`: own features, fitted. `popularity`, `random` and the baselines: alone. `default`:
    the weights before any fitting. `fitted`: all features, fitted. `plain`: ours without edges
    between things. `ours`: what the layer would use, that is `fitted` if it beats `isolated` on
    cases it was not fitted on, else `isolated`. `own_ease`: the own features and EASE, fitted.
    """
    cases = [one.case(kind, seed) for one in fitting for seed in range(seeds)]
    groups = [at for at in range(len(fitting)) for _ in range(seeds)]
    pull = float(seeds)  # the lists of a trial weigh as one case
    plain = fit_gated(cases, features=[name for name in FEATURES if name != EDGES], groups=groups)
    ours = fit_gated(cases, features=FEATURES, groups=groups)
    there = [name for name in NAMES if any(np.any(case.columns.get(name, np.zeros(1))) for case in cases)]
    weights: dict[str, Mapping[str, float]] = {
        ISOLATED: fit(cases, features=OWN, l2=pull),
        "popularity": {"popularity": 1.0},
        **{name: {name: 1.0} for name in there},
        "default": dict(DEFAULT_WEIGHTS),
        "fitted": fit(cases, features=FEATURES, l2=pull),
        "plain": plain.weights,
        OURS: ours.weights,
    }
    if "ease" in there:
        weights["own_ease"] = fit(cases, features=(*OWN, "ease"), l2=pull)
    return Contest(weights, ours.open, ours.gain, ours.low)


def _places(lists: Sequence[Sequence[Case]], weights: Mapping[str, float]) -> np.ndarray:
    """Place of the right candidate, shape (users, seeds)."""
    scores = [np.stack([rank(case.columns, weights) for case in cases]) for cases in lists]
    return metrics.places(np.stack(scores))


def _figures(prefix: str, place: Mapping[str, np.ndarray]) -> list[Row]:
    first = {who: metrics.hits(found) for who, found in place.items()}
    base = first[ISOLATED].mean(axis=1)
    rows: list[Row] = []
    for who, found in place.items():
        mine = first[who].mean(axis=1)
        for at in (1, 3, 5):
            rows.append(_row(f"{prefix}.{who}.h{at}", metrics.mean(metrics.hits(found, at).mean(axis=1), 0)))
            rows.append(_row(f"{prefix}.{who}.n{at}", metrics.mean(metrics.ndcg(found, at).mean(axis=1), 0)))
        if who != ISOLATED:
            rows.append(_row(f"{prefix}.{who}.lift", metrics.lift(base, mine, 0)))
            rows.append(_row(f"{prefix}.{who}.minus_isolated", metrics.mean(mine - base, 0), "difference"))
            rows.append(_row(f"{prefix}.{who}.harm", metrics.mean(metrics.harm(first[ISOLATED], first[who]), 0)))
            rows.append(_row(f"{prefix}.{who}.worse", metrics.mean(metrics.worse(place[ISOLATED], found), 0)))
    return rows


def _against_the_best(prefix: str, place: Mapping[str, np.ndarray]) -> list[Row]:
    """Ours minus every other contestant, and minus the best of them."""
    mine = metrics.hits(place[OURS]).mean(axis=1)
    others = {who: metrics.hits(found).mean(axis=1) for who, found in place.items() if who not in (OURS, "fitted")}
    best = max(others, key=lambda who: float(others[who].mean()))
    return [_row(f"{prefix}.ours.minus_best", metrics.mean(mine - others[best], 0), f"difference to {best}")]


def _thirds(prefix: str, place: Mapping[str, np.ndarray], held: np.ndarray) -> list[Row]:
    """Lift of ours by how much the users hold."""
    order = np.argsort(held, kind="stable")
    rows: list[Row] = []
    for third, part in zip(THIRDS, np.array_split(order, 3), strict=True):
        if len(part):
            before, after = (metrics.hits(place[who][part]).mean(axis=1) for who in (ISOLATED, OURS))
            rows.append(_row(f"{prefix}.ours.lift_{third}_activity", metrics.lift(before, after, 0)))
    return rows


def _row(name: str, figure: metrics.Interval, unit: str = "share") -> Row:
    return Row(name, figure.value, figure.low, figure.high, unit)


def _barred(name: str, row: Row) -> Row:
    """The bars, for popularity-matched candidates only."""
    what = row.name.removeprefix(f"{name}.pop{candidates.NEGATIVES}.")
    if name == "ml1m" and what == "isolated.h1":
        return row.against(">=", 0.30)
    if name == "ml1m" and what == "ours.lift":
        return row.against(">=", 0.45, low=0.30)
    if name == "ml1m" and what == "ours.minus_best":
        return row.against(">=", 0.0)
    if what == "ours.harm":
        bar = {"ml1m": 0.075, "mls": 0.04}.get(name)
        return row if bar is None else row.against("<=", bar)
    if name == "mls" and what == "ours.minus_isolated":
        return row.against(">=", -0.02, low=-0.02)
    return row


__all__ = ["FEATURES", "Answered", "Contest", "contestants", "score"]
