"""Does it help to share? The same questions with and without the others' memories.

In:   the folder of an evaluation set.
Out:  a `Report`: hits of tuned isolated memory, of ours, the lift between them, the harm.
Never: a weight fitted on a trial that is scored; a call that a user of the layer cannot make.

Each user's raw features of all candidates come from one `rank` call. The lists are then
scored in `scoring` with the weights of each contestant, all fitted on the fitting trials. What
a user would pick instead of the layer, `baselines`, is fitted to the same visible events.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import numpy as np

from collab_layer.bench import candidates
from collab_layer.bench.baselines import NAMES, Seen, installed
from collab_layer.bench.candidates import Step, Trial
from collab_layer.bench.data import DataSet, load
from collab_layer.bench.report import Report, Row, peak_rss_mb
from collab_layer.bench.scoring import FEATURES, Answered, score
from collab_layer.config import Settings
from collab_layer.errors import DataSetError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Floats
from collab_layer.types.interaction import Interaction
from collab_layer.types.ranking import Ranking
from collab_layer.types.scope import Sharing

BLOCKS = 10
"""Times at which edges between things, and the baselines, are made anew; at most once per step."""
BATCH = 5_000
_LONG_AGO = datetime(1990, 1, 1, tzinfo=UTC)

Progress = Callable[[str, int, int], None]


class Hears(Protocol):
    """What a history is told to."""

    async def observe(self, actor: Sequence[Interaction], /) -> list[str]:
        """Record what happened."""
        ...

    async def drain(self) -> int:
        """Wait for the work behind it."""
        ...


class Layer(Hears, Protocol):
    """What the benchmark needs of a layer; `AsyncCollabLayer` has it."""

    async def rebuild(self) -> object:
        """Make the edges between things anew."""
        ...

    async def rank(self, entity: str, candidates: Sequence[str], /) -> Ranking:
        """Order candidates, each with its raw features."""
        ...


def run(
    data_dir: Path,
    *,
    seeds: int = 5,
    users: int | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measure one set; blocking, see `measure`."""
    return asyncio.run(measure(data_dir, seeds=seeds, users=users, embedder=embedder, progress=progress))


async def measure(
    data_dir: Path,
    *,
    seeds: int = 5,
    users: int | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measure one set over a fresh layer in a temporary folder.

    Args:
        data_dir: The folder as its publisher lays it out.
        seeds: Candidate lists per trial and kind, >= 1; figures are means over them.
        users: Ask for so many test and so many fitting trials at most, drawn at random; None is all.
        embedder: None takes the built-in hashing embedder.
        progress: Called with what is being done, how much is done, and of how much.

    Raises:
        DataSetError: The folder cannot be used, or it leaves nothing to fit or to score.
    """
    began = time.perf_counter()
    data, steps = await asyncio.to_thread(prepared, data_dir, seeds, users)
    with tempfile.TemporaryDirectory(prefix="collab-lift-") as folder:
        url = str(Path(folder) / "lift.db")
        sharing = Sharing.within_tenant("records")
        settings = Settings(worker=False)
        opened = await AsyncCollabLayer.open(url, sharing=sharing, embedder=embedder, settings=settings)
        async with opened as layer:
            name = embedder.id if embedder is not None else layer.plugins.embedders["hashing"].open().id
            answered = await ask(layer, data, steps, progress)
    rows = await asyncio.to_thread(score, data.name, answered, seeds)
    if not installed():
        rows.append(Row(f"{data.name}.ials.skipped", 1.0, unit="contestants; install `implicit`"))
    rows += [
        Row("run.seconds", time.perf_counter() - began, unit="s"),
        Row("run.peak_rss_mb", peak_rss_mb(), unit="MB"),
    ]
    return Report(f"collab demo --data {data_dir.name}", data.sha256, 0, name, rows)


def prepared(folder: Path, seeds: int, users: int | None = None) -> tuple[DataSet, list[Step]]:
    """A set and its questions; all of them, or as many at random.

    Raises:
        DataSetError: The folder cannot be used, or it leaves nothing to fit or to score.
    """
    data = load(folder)
    steps = candidates.drawn(candidates.plan(data, seeds), users)
    trials = [trial for step in steps for trial in step.trials]
    if not any(trial.fitting for trial in trials) or all(trial.fitting for trial in trials):
        raise DataSetError(f"`{folder}` leaves no trial to fit weights on, or none to score; the set is too small")
    return data, steps


# -- asking -------------------------------------------------------------------------------


async def ask(layer: Layer, data: DataSet, steps: Sequence[Step], progress: Progress | None = None) -> list[Answered]:
    """Tell the layer what happened, step by step, and take each trial's raw features."""
    tell = progress or _silent
    trials = [(place, trial) for place, step in enumerate(steps) for trial in step.trials]
    every = max(1, len(trials) // BLOCKS)
    seen, told, made = Seen(), 0, -1
    answered = list[Answered]()
    async for trial in replay(layer, data, steps, progress):
        place = trials[len(answered)][0]
        for step in steps[told : place + 1]:
            for user, event in step.events:
                seen.add(user, event.item)
        if told <= place and (made < 0 or len(answered) - made >= every):
            await layer.rebuild()
            await asyncio.to_thread(seen.fit)
            made = len(answered)
        told = place + 1
        own = await _features(layer, trial)
        others = seen.scores(trial.user, trial.union)
        columns = [others.get(name, np.zeros(len(trial.union))) for name in NAMES]
        raw = {item: np.append(own[item], [column[at] for column in columns]) for at, item in enumerate(trial.union)}
        answered.append(Answered(trial, raw, seen.count(trial.user)))
        tell("ranking", len(answered), len(trials))
    return answered


async def replay(
    layer: Hears,
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


async def _describe(layer: Hears, data: DataSet, tell: Progress, called: Callable[[int], Entity]) -> None:
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


__all__ = ["Hears", "Layer", "Progress", "ask", "measure", "prepared", "replay", "run"]
