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
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import numpy as np

from collab_layer.bench import asking, candidates, embedders, slices
from collab_layer.bench.asking import RULES, Answered, Wanted
from collab_layer.bench.baselines import installed
from collab_layer.bench.candidates import Step
from collab_layer.bench.data import DataSet, load
from collab_layer.bench.mem0_taste import Mem0Taste
from collab_layer.bench.phases import Phases
from collab_layer.bench.progress import Progress, silent
from collab_layer.bench.report import Report, Row
from collab_layer.bench.scoring import score
from collab_layer.config import Settings
from collab_layer.errors import DataSetError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder
from collab_layer.types.graph import Vectors
from collab_layer.types.scope import Sharing

GUESTS = 400
"""Users whose history is cut, at most: as many that are scored as that are fitted on."""
SPOILED = 200
"""Users of a slice with another graph, at most."""


def run(
    data_dir: Path,
    *,
    seeds: int = 5,
    users: int | None = None,
    full: bool = False,
    mem0: bool = False,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measure one set; blocking, see `measure`."""
    return asyncio.run(
        measure(data_dir, seeds=seeds, users=users, full=full, mem0=mem0, embedder=embedder, progress=progress)
    )


async def measure(
    data_dir: Path,
    *,
    seeds: int = 5,
    users: int | None = None,
    full: bool = False,
    mem0: bool = False,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measure one set over a fresh layer in a temporary folder.

    Args:
        data_dir: The folder as its publisher lays it out.
        seeds: Candidate lists per trial and kind, >= 1; figures are means over them.
        users: Ask for so many test and so many fitting trials at most, drawn at random; None is all.
        full: Also with other curation rules, and over graphs that somebody spoiled: noise in every
            history, and attackers. About five times the work.
        mem0: Also with a real Mem0, whose own search is isolated memory; a minute for five questions or so.
        embedder: None takes the one of the settings, else the built-in one.
        progress: Called with what is being done, how much is done, and of how much.

    Raises:
        DataSetError: The folder cannot be used, or it leaves nothing to fit or to score.
    """
    phases, tell = Phases(), progress or silent
    with phases.of("plan"):
        data, steps = await asyncio.to_thread(prepared, data_dir, seeds, users)
    pushed = slices.pushed(data, steps)
    used = embedder or embedders.opened()
    async with AsyncExitStack() as stack:
        layer = await stack.enter_async_context(opened(used))
        others = [stack.enter_context(Mem0Taste(data.texts, used))] if mem0 else []
        with phases.of("embed"):
            vectors = await _vectors(data, used)
        wanted = Wanted(
            rules=tuple(RULES) if full else (),
            cuts=slices.CUTS,
            guests=GUESTS,
            extra=[pushed][: int(full)],
            others=others,
        )
        answered = await asking.ask(layer, data, steps, tell, vectors=vectors, wanted=wanted, phases=phases)
        await phases.account(layer)
    with phases.of("score"):
        rows = await asyncio.to_thread(score, data.name, answered, seeds)
    if full:
        with phases.of("slices"):
            rows += await _slices(data, steps, seeds, pushed, used, tell)
            rows += slices.attacked(f"{data.name}.attack0", answered, pushed, seeds)
    if not installed():
        rows.append(Row(f"{data.name}.ials.skipped", 1.0, unit="contestants; install `implicit`"))
    rows += phases.rows()
    command = f"collab bench lift --data {data_dir.name}{' --full' if full else ''}{' --store mem0' if mem0 else ''}"
    return Report(command, data.sha256, 0, used.id, rows, {"candidates": candidates.digest(steps)})


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


@asynccontextmanager
async def opened(embedder: Embedder) -> AsyncGenerator[AsyncCollabLayer]:
    """A fresh layer in a temporary folder, in which everybody may read everybody."""
    with tempfile.TemporaryDirectory(prefix="collab-lift-") as folder:
        url = str(Path(folder) / "lift.db")
        settings = Settings(worker=False, injection_days=0, ranking_days=0, holdout=0.0)
        sharing = Sharing.within_tenant("records")
        layer = await AsyncCollabLayer.open(url, sharing=sharing, embedder=embedder, settings=settings)
        async with layer:
            yield layer


async def _slices(
    data: DataSet, steps: Sequence[Step], seeds: int, pushed: int, embedder: Embedder, tell: Progress
) -> list[Row]:
    """The same questions, of fewer users, over graphs that somebody spoiled."""
    rows: list[Row] = []
    some = candidates.drawn(steps, SPOILED)
    for name, spoiled in slices.spoiled(data, some, pushed).items():
        async with opened(embedder) as layer:
            wanted = Wanted(rules=(), gated=False, extra=(pushed,))
            answered: list[Answered] = await asking.ask(layer, data, spoiled, tell, wanted=wanted)
        rows += await asyncio.to_thread(slices.score, f"{data.name}.{name}", answered, seeds)
        if name.startswith("attack"):
            rows += slices.attacked(f"{data.name}.{name}", answered, pushed, seeds)
    return rows


async def _vectors(data: DataSet, embedder: Embedder) -> Vectors:
    return np.asarray(await embedder.embed([data.texts[item] for item in sorted(data.texts)]))


__all__ = ["measure", "opened", "prepared", "run"]
