"""Who competes, with which weights: all fitted on the fitting trials, none on a trial that is scored.

In:   answered fitting trials and a kind of candidate lists.
Out:  weights per contestant, and what the gate of ours said.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.bench.asking import COLUMNS, CURATED, FEATURES, OTHERS, RULES, Answered
from collab_layer.stages.few import CUTS, Weights
from collab_layer.stages.fit import Case, Fitted, fit, fit_gated
from collab_layer.stages.rank import BESIDE, DEFAULT_WEIGHTS, OWN

EDGES = "item_edges"
ISOLATED, OURS, PLAIN = "isolated", "ours", "ours_without_edges"


@dataclass(frozen=True, slots=True)
class Contest:
    """Weights per contestant, and what the two gates of ours said: of whole histories, and of cut ones."""

    weights: Mapping[str, Weights]
    much: Fitted
    few: Fitted

    @property
    def opened(self) -> bool:
        """Whether neighbours count for those who hold much."""
        return self.much.open


def contestants(fitting: Sequence[Answered], kind: str, seeds: int) -> Contest:
    """Weights per contestant.

    What is fitted is fitted twice, as the layer does it: on whole histories, and on histories cut
    to the newest few things, where there are any; between the two by how much a user holds.

    `isolated`: own features, fitted. `popularity`, `random`, the pools and the baselines: alone.
    `generic`, `domain`: own features and what owners curated by other rules hold, fitted.
    `default`: the weights before any fitting. `fitted`: all features, fitted.
    `ours_without_edges`: ours without edges between things. `ours`: what the layer would use, that
    is `fitted` if it beats `isolated` on cases it was not fitted on, else `isolated`.
    `own_ease`: the own features and EASE, fitted.
    """
    past = _Past(fitting, kind, seeds)
    much, few = past.gated(FEATURES)
    alone = [name for name in OTHERS if _there(past.whole, name)]
    weights: dict[str, Weights] = {
        ISOLATED: past.fitted(OWN),
        "popularity": Weights({"popularity": 1.0}),
        **{name: Weights({name: 1.0}) for name in alone},
        "default": Weights(DEFAULT_WEIGHTS),
        "fitted": past.fitted(FEATURES),
        PLAIN: past.both(past.gated([name for name in FEATURES if name != EDGES])),
        OURS: past.both((much, few)),
    }
    for rule in RULES:
        names = [f"{rule}.{name}" for name in CURATED]
        if any(_there(past.whole, name) for name in names):
            weights[rule] = Weights(fit(past.whole, features=(*OWN, *names), l2=past.pull))  # cut ones are not asked
    if "ease" in alone:
        weights["own_ease"] = past.fitted((*OWN, "ease"))
    return Contest(weights, much, few)


class _Past:
    """Lists to fit on: with whole histories, and with cut ones."""

    def __init__(self, fitting: Sequence[Answered], kind: str, seeds: int) -> None:
        self.whole = [one.case(kind, seed) for one in fitting for seed in range(seeds)]
        self.pull = float(seeds)  # the lists of a trial weigh as one case
        self._groups = [at for at in range(len(fitting)) for _ in range(seeds)]
        cut = [
            (one.case_of_cut(cut, kind, seed), at)
            for at, one in enumerate(fitting)
            for cut in CUTS
            if cut in one.cut
            for seed in range(seeds)
        ]
        self._cut, self._cut_groups = [case for case, _ in cut], [at for _, at in cut]

    def fitted(self, names: Sequence[str]) -> Weights:
        """Weights whatever the gate says."""
        few = fit(self._cut, features=names, l2=self.pull * len(CUTS), min_cases=1) if self._cut else None
        return Weights(fit(self.whole, features=names, l2=self.pull), few)

    def gated(self, names: Sequence[str]) -> tuple[Fitted, Fitted]:
        """What the gates say, asked as the layer asks them."""
        much = fit_gated(self.whole, features=names, beside=BESIDE, groups=self._groups)
        return much, fit_gated(self._cut, features=names, groups=self._cut_groups)

    def both(self, gated: tuple[Fitted, Fitted]) -> Weights:
        """The weights of two gates; without cut histories those of the first."""
        return Weights(gated[0].weights, gated[1].weights if self._cut else None)


def _there(cases: Sequence[Case], name: str) -> bool:
    return name in COLUMNS and any(np.any(case.columns.get(name, np.zeros(1))) for case in cases)


__all__ = ["EDGES", "ISOLATED", "OURS", "PLAIN", "Contest", "contestants"]
