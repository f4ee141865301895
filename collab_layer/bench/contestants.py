"""Who competes, with which weights: all fitted on the fitting trials, none on a trial that is scored.

In:   answered fitting trials and a kind of candidate lists.
Out:  weights per contestant, and what the gate of ours said.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.bench import baselines, pools
from collab_layer.bench.asking import COLUMNS, CURATED, FEATURES, RULES, Answered
from collab_layer.stages.fit import Case, fit, fit_gated
from collab_layer.stages.rank import DEFAULT_WEIGHTS, OWN

EDGES = "item_edges"
ISOLATED, OURS, PLAIN = "isolated", "ours", "ours_without_edges"


@dataclass(frozen=True, slots=True)
class Contest:
    """Weights per contestant, and what the gate of ours said."""

    weights: Mapping[str, Mapping[str, float]]
    opened: bool
    gain: float
    low: float


def contestants(fitting: Sequence[Answered], kind: str, seeds: int) -> Contest:
    """Weights per contestant.

    `isolated`: own features, fitted. `popularity`, `random`, the pools and the baselines: alone.
    `generic`, `domain`: own features and what owners curated by other rules hold, fitted.
    `default`: the weights before any fitting. `fitted`: all features, fitted.
    `ours_without_edges`: ours without edges between things. `ours`: what the layer would use, that
    is `fitted` if it beats `isolated` on cases it was not fitted on, else `isolated`.
    `own_ease`: the own features and EASE, fitted.
    """
    cases = [one.case(kind, seed) for one in fitting for seed in range(seeds)]
    groups = [at for at in range(len(fitting)) for _ in range(seeds)]
    pull = float(seeds)  # the lists of a trial weigh as one case
    plain = fit_gated(cases, features=[name for name in FEATURES if name != EDGES], groups=groups)
    ours = fit_gated(cases, features=FEATURES, groups=groups)
    alone = [name for name in (*baselines.NAMES, *pools.NAMES) if _there(cases, name)]
    weights: dict[str, Mapping[str, float]] = {
        ISOLATED: fit(cases, features=OWN, l2=pull),
        "popularity": {"popularity": 1.0},
        **{name: {name: 1.0} for name in alone},
        "default": dict(DEFAULT_WEIGHTS),
        "fitted": fit(cases, features=FEATURES, l2=pull),
        PLAIN: plain.weights,
        OURS: ours.weights,
    }
    for rule in RULES:
        names = [f"{rule}.{name}" for name in CURATED]
        if any(_there(cases, name) for name in names):
            weights[rule] = fit(cases, features=(*OWN, *names), l2=pull)
    if "ease" in alone:
        weights["own_ease"] = fit(cases, features=(*OWN, "ease"), l2=pull)
    return Contest(weights, ours.open, ours.gain, ours.low)


def _there(cases: Sequence[Case], name: str) -> bool:
    return name in COLUMNS and any(np.any(case.columns.get(name, np.zeros(1))) for case in cases)


__all__ = ["EDGES", "ISOLATED", "OURS", "PLAIN", "Contest", "contestants"]
