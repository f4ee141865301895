"""Does it help to share? The same questions with and without the others' memories.

In:   the folder of an evaluation set.
Out:  a `Report`: hits of tuned isolated memory, of ours, the lift between them, the harm.
Never: a weight fitted on a trial that is scored; a call that a user of the layer cannot make.

Each user's raw features of all candidates come from one `rank` call. The lists are then
scored with the weights of each contestant; all weights are fitted on the fitting trials.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import numpy as np

from collab_layer.bench import candidates, metrics
from collab_layer.bench.candidates import Step, Trial
from collab_layer.bench.data import DataSet, load
from collab_layer.bench.report import Report, Row, peak_rss_mb
from collab_layer.config import Settings
from collab_layer.errors import DataSetError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder
from collab_layer.stages.fit import Case, fit, fit_gated
from collab_layer.stages.rank import DEFAULT_WEIGHTS, OWN, rank
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Floats
from collab_layer.types.interaction import Interaction
from collab_layer.types.ranking import Ranking
from collab_layer.types.scope import Sharing

FEATURES = tuple(DEFAULT_WEIGHTS)
BARS: Mapping[str, Mapping[str, float]] = {"ml1m": {"isolated.h1": 0.30, "ours.lift": 0.25}}
"""By set, for popularity-matched candidates."""
ISOLATED, OURS = "isolated", "ours"
BATCH = 5_000
_LONG_AGO = datetime(1990, 1, 1, tzinfo=UTC)

Progress = Callable[[str, int, int], None]


class Layer(Protocol):
    """What the benchmark needs of a layer; `AsyncCollabLayer` has it."""

    async def observe(self, actor: Sequence[Interaction], /) -> list[str]:
        """Record what happened."""
        ...

    async def drain(self) -> int:
        """Wait for the work behind it."""
        ...

    async def rank(self, entity: str, candidates: Sequence[str], /) -> Ranking:
        """Order candidates, each with its raw features."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """A trial and the raw features of its candidates: by item, shape (features,)."""

    trial: Trial
    raw: Mapping[int, Floats]

    def case(self, kind: str, seed: int) -> Case:
        """One of its lists as columns, the right candidate in row 0."""
        table = np.stack([self.raw[item] for item in self.trial.lists[kind][seed].tolist()])
        return Case(dict(zip(FEATURES, table.T, strict=True)), 0)


def run(
    data_dir: Path,
    *,
    seeds: int = 5,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measure one set; blocking, see `measure`."""
    return asyncio.run(measure(data_dir, seeds=seeds, embedder=embedder, progress=progress))


async def measure(
    data_dir: Path,
    *,
    seeds: int = 5,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measure one set over a fresh layer in a temporary folder.

    Args:
        data_dir: The folder as its publisher lays it out.
        seeds: Candidate lists per trial and kind, >= 1; figures are means over them.
        embedder: None takes the built-in hashing embedder.
        progress: Called with what is being done, how much is done, and of how much.

    Raises:
        DataSetError: The folder cannot be used, or it leaves nothing to fit or to score.
    """
    began = time.perf_counter()
    data, steps = await asyncio.to_thread(prepared, data_dir, seeds)
    with tempfile.TemporaryDirectory(prefix="collab-lift-") as folder:
        url = str(Path(folder) / "lift.db")
        sharing = Sharing.within_tenant("records")
        settings = Settings(worker=False)
        opened = await AsyncCollabLayer.open(url, sharing=sharing, embedder=embedder, settings=settings)
        async with opened as layer:
            name = embedder.id if embedder is not None else layer.plugins.embedders["hashing"].open().id
            answered = await ask(layer, data, steps, progress)
    rows = await asyncio.to_thread(score, data.name, answered, seeds)
    rows += [
        Row("run.seconds", time.perf_counter() - began, unit="s"),
        Row("run.peak_rss_mb", peak_rss_mb(), unit="MB"),
    ]
    return Report(f"collab demo --data {data_dir.name}", data.sha256, 0, name, rows)


def prepared(folder: Path, seeds: int) -> tuple[DataSet, list[Step]]:
    """A set and its questions.

    Raises:
        DataSetError: The folder cannot be used, or it leaves nothing to fit or to score.
    """
    data = load(folder)
    steps = candidates.plan(data, seeds)
    trials = [trial for step in steps for trial in step.trials]
    if not any(trial.fitting for trial in trials) or all(trial.fitting for trial in trials):
        raise DataSetError(f"`{folder}` leaves no trial to fit weights on, or none to score; the set is too small")
    return data, steps


# -- asking -------------------------------------------------------------------------------


async def ask(layer: Layer, data: DataSet, steps: Sequence[Step], progress: Progress | None = None) -> list[Answered]:
    """Tell the layer what happened, step by step, and take each trial's raw features."""
    tell = progress or _silent
    trials = sum(len(step.trials) for step in steps)
    answered = list[Answered]()
    async for trial in replay(layer, data, steps, progress):
        answered.append(Answered(trial, await _features(layer, trial)))
        tell("ranking", len(answered), trials)
    return answered


async def replay(
    layer: Layer,
    data: DataSet,
    steps: Sequence[Step],
    progress: Progress | None = None,
    thing: Callable[[int], Entity] | None = None,
) -> AsyncGenerator[Trial]:
    """Each trial at its moment: the layer knows what happened before it, and nothing after.

    Args:
        layer: Is told everything.
        data: The set.
        steps: Of `candidates.plan`.
        progress: Called with what is being done, how much is done, and of how much.
        thing: What an item is called; `item:` and its number if None.
    """
    tell, called = progress or _silent, thing or _item
    await _describe(layer, data, tell, called)
    events = sum(len(step.events) for step in steps)
    told = 0
    for step in steps:
        for start in range(0, len(step.events), BATCH):
            part = step.events[start : start + BATCH]
            await layer.observe([_liked(user, called(event.item), event.at) for user, event in part])
            told += len(part)
            tell("observing", told, events)
        await layer.drain()
        for trial in step.trials:
            yield trial


async def _describe(layer: Layer, data: DataSet, tell: Progress, called: Callable[[int], Entity]) -> None:
    items = sorted({event.item for held in data.histories.values() for event in held})
    for start in range(0, len(items), BATCH):
        part = items[start : start + BATCH]
        await layer.observe(
            [Interaction(actor=called(n), verb="described", text=data.texts[n], at=_LONG_AGO) for n in part]
        )
        tell("describing", start + len(part), len(items))
    await layer.drain()


async def _features(layer: Layer, trial: Trial) -> dict[int, Floats]:
    ranking = await layer.rank(f"user:{trial.user}", [f"item:{item}" for item in trial.union])
    return {int(one.entity.id): np.array([one.features.get(name, 0.0) for name in FEATURES]) for one in ranking.items}


def _liked(user: int, item: Entity, at: datetime) -> Interaction:
    return Interaction(actor=Entity("user", str(user)), target=item, verb="liked", at=at)


def _item(number: int) -> Entity:
    return Entity("item", str(number))


def _silent(what: str, done: int, total: int) -> None:
    return None


# -- scoring ------------------------------------------------------------------------------


def score(name: str, answered: Sequence[Answered], seeds: int) -> list[Row]:
    """Fit on the fitting trials, score the others; rows for both kinds of candidates."""
    fitting = [one for one in answered if one.trial.fitting]
    tested = [one for one in answered if not one.trial.fitting]
    rows = [Row(f"{name}.users", float(len(tested)), unit="users")]
    for kind in candidates.KINDS:
        weights = contestants(fitting, kind, seeds)
        lists = [[one.case(kind, seed) for seed in range(seeds)] for one in tested]
        place = {who: _places(lists, used) for who, used in weights.items()}
        rows += _figures(f"{name}.{kind}{candidates.NEGATIVES}", place)
        rows += _weight_rows(f"{name}.{kind}{candidates.NEGATIVES}", weights[OURS])
    return [_barred(name, row) for row in rows]


def contestants(fitting: Sequence[Answered], kind: str, seeds: int) -> dict[str, dict[str, float]]:
    """Weights per contestant.

    `isolated`: own features, fitted. `popularity`: alone. `default`: the weights before any
    fitting. `fitted`: all features, fitted. `ours`: what the layer would use, that is
    `fitted` if it beats `isolated` on cases it was not fitted on, else `isolated`.
    """
    cases = [one.case(kind, seed) for one in fitting for seed in range(seeds)]
    groups = [at for at in range(len(fitting)) for _ in range(seeds)]
    isolated = fit(cases, features=OWN, l2=float(seeds))  # the lists of a trial weigh as one case
    fitted = fit(cases, features=FEATURES, l2=float(seeds))
    ours = fit_gated(cases, features=FEATURES, groups=groups)
    return {
        ISOLATED: isolated,
        "popularity": {"popularity": 1.0},
        "default": dict(DEFAULT_WEIGHTS),
        "fitted": fitted,
        OURS: ours.weights,
    }


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
        rows.append(_row(f"{prefix}.{who}.h1", metrics.mean(mine, 0)))
        rows.append(_row(f"{prefix}.{who}.n5", metrics.mean(metrics.ndcg(found).mean(axis=1), 0)))
        if who != ISOLATED:
            rows.append(_row(f"{prefix}.{who}.lift", metrics.lift(base, mine, 0)))
            rows.append(_row(f"{prefix}.{who}.harm", metrics.mean(metrics.harm(first[ISOLATED], first[who]), 0)))
            rows.append(_row(f"{prefix}.{who}.worse", metrics.mean(metrics.worse(place[ISOLATED], found), 0)))
    return rows


def _row(name: str, figure: metrics.Interval) -> Row:
    return Row(name, figure.value, figure.low, figure.high)


def _weight_rows(prefix: str, weights: Mapping[str, float]) -> list[Row]:
    return [Row(f"{prefix}.weight.{name}", value, unit="weight") for name, value in weights.items()]


def _barred(name: str, row: Row) -> Row:
    prefix = f"{name}.pop{candidates.NEGATIVES}."
    bar = BARS.get(name, {}).get(row.name.removeprefix(prefix)) if row.name.startswith(prefix) else None
    return row if bar is None else row.against(">=", bar, positive=row.name.endswith(".lift"))


__all__ = ["Answered", "Layer", "Progress", "ask", "contestants", "measure", "prepared", "replay", "run", "score"]
