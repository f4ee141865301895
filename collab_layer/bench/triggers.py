"""What a trigger costs, and what it finds: model calls against recurring facts that reach a neighbour.

In:   a trigger, a seed, which half of the planted facts.
Out:  a `Measured`: calls and tokens per 1,000 notes, and the share of the facts that a model worded
      and that somebody who did not note them reads in `context`.
Never: a fact that only the rules told; so that never calling a model scores 0.

Notes come one by one, each worked off before the next. The private owners' notes count for
nothing, neither as notes nor as facts.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from collab_layer.bench import embedders
from collab_layer.bench.facts import Half
from collab_layer.bench.progress import Progress
from collab_layer.bench.recurring import Fact, Stream, stream
from collab_layer.bench.report import Report, Row
from collab_layer.bench.summarizer import Summarizer
from collab_layer.config import Settings, Trigger
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder, LanguageModel
from collab_layer.stages.tokens import terms
from collab_layer.types.facet import FacetKind

MOST_CALLS, LEAST_REACHED = 0.13, 0.9
"""Bars of the trigger `recurrence`: calls per note, share of the facts."""
COVERED = 0.6
"""Share of the stems of a wording that a text must have to tell the fact."""
BUDGET_TOKENS = 32_000


@dataclass(frozen=True, slots=True)
class Measured:
    """One run.

    Attributes:
        trigger: Which one.
        notes: Notes of owners that share.
        calls, input_tokens, output_tokens: Spent on them in all.
        facts, reached: Facts planted, and those that reached a neighbour.
        seconds: For the whole run, wall clock.
    """

    trigger: Trigger
    notes: int
    calls: int
    input_tokens: int
    output_tokens: int
    facts: int
    reached: int
    seconds: float

    def rows(self, name: str) -> list[Row]:
        """Figures as the benchmark reports them, under `name.trigger.`."""
        per = 1000 / self.notes
        calls = Row(f"{name}.{self.trigger}.calls_per_note", self.calls / self.notes, unit="calls")
        reached = Row(f"{name}.{self.trigger}.reached", self.reached / self.facts)
        if self.trigger == "recurrence":
            calls, reached = calls.against("<=", MOST_CALLS), reached.against(">=", LEAST_REACHED)
        tokens = self.input_tokens * per, self.output_tokens * per
        return [
            calls,
            reached,
            Row(f"{name}.{self.trigger}.input_tokens_per_1000", tokens[0], unit="tokens"),
            Row(f"{name}.{self.trigger}.output_tokens_per_1000", tokens[1], unit="tokens"),
        ]


async def measure(
    trigger: Trigger,
    seed: int,
    *,
    half: Half = "test",
    count: int | None = None,
    embedder: Embedder | None = None,
    model: LanguageModel | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Measured:
    """Measure one trigger over a fresh layer in a temporary folder.

    Args:
        trigger: `eager`, `recurrence` or `nightly`.
        seed: Of the stream of notes.
        half: Which planted facts: `tune` while a setting is chosen, `test` to report.
        count: Records that make a matter ripe; None takes the default setting.
        embedder: None takes the built-in hashing embedder.
        model: None takes a stand-in that repeats what events have in common.
        progress: Called with notes worked off, and of how many.
    """
    of = stream(seed, half)
    return await follow(of, trigger, count=count, embedder=embedder, model=model, progress=progress)


async def follow(
    of: Stream,
    trigger: Trigger,
    *,
    count: int | None = None,
    embedder: Embedder | None = None,
    model: LanguageModel | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Measured:
    """The same over a stream of one's own."""
    began = time.perf_counter()
    asked = Summarizer() if model is None else model
    settings = Settings(worker=False, trigger=trigger)
    if count is not None:
        settings = settings.model_copy(update={"recurrence_count": count})
    with tempfile.TemporaryDirectory(prefix="collab-triggers-") as folder:
        url = str(Path(folder) / "triggers.db")
        opened = await AsyncCollabLayer.open(url, embedder=embedder, settings=settings, memory_model=asked)
        async with opened as layer:
            await _tell(layer, of, progress)
            spent = [row for row in await layer.usage(2) if row.stage == "propagate"]
        # Read without a model, so that nothing is worded anew by reading.
        async with await AsyncCollabLayer.open(url, embedder=embedder, settings=settings) as layer:
            told = [text for owner in of.owners for text in await heard(layer, owner, asked.name)]
    return Measured(
        trigger=trigger,
        notes=len(of.notes),
        calls=sum(row.calls for row in spent),
        input_tokens=sum(row.input_tokens for row in spent),
        output_tokens=sum(row.output_tokens for row in spent),
        facts=len(of.facts),
        reached=sum(any(tells(text, fact, of.facts) for text in told) for fact in of.facts),
        seconds=time.perf_counter() - began,
    )


async def compare(seeds: Sequence[int], progress: Progress | None = None) -> Report:
    """Every trigger over the same streams, their notes and facts added up.

    Args:
        seeds: Of the streams, at least one.
        progress: Called with the trigger, notes worked off, and of how many.
    """
    rows: list[Row] = []
    for trigger in get_args(Trigger):
        tell = None if progress is None else partial(progress, trigger)
        runs = [await measure(trigger, seed, progress=tell) for seed in seeds]
        rows += _added(runs).rows("recurring")
    digest = hashlib.sha256()
    for seed in seeds:
        digest.update("".join(note.model_dump_json(exclude={"at"}) for note in stream(seed, "test").notes).encode())
    return Report(
        f"collab bench triggers --seed {seeds[0]} --seeds {len(seeds)}",
        digest.hexdigest(),
        seeds[0],
        embedders.opened().id,
        rows,
    )


def _added(runs: Sequence[Measured]) -> Measured:
    def total(name: str) -> int:
        return sum(getattr(run, name) for run in runs)

    return Measured(
        trigger=runs[0].trigger,
        notes=total("notes"),
        calls=total("calls"),
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        facts=total("facts"),
        reached=total("reached"),
        seconds=sum(run.seconds for run in runs),
    )


async def _tell(layer: AsyncCollabLayer, of: Stream, progress: Callable[[int, int], None] | None) -> None:
    for owner in of.owners:
        await layer.grant(owner, "tenant", "records")
    every = [*of.private, *of.notes]
    for done, note in enumerate(every, 1):
        await layer.observe(note)
        await layer.drain()
        if progress is not None:
            progress(done, len(every))


async def heard(layer: AsyncCollabLayer, owner: str, model: str) -> list[str]:
    """What an owner reads in words of the model and of notes that are not its own."""
    memory = await layer.context(owner, budget_tokens=BUDGET_TOKENS)
    told: list[str] = []
    for facet in memory.facets:
        if facet.kind is FacetKind.UPDATE and facet.made_by.startswith(f"{model},"):
            lineage = await layer.explain(facet.id)
            if all(source.principal != owner for source in lineage.sources):
                told.append(facet.text)
    return told


def tells(text: str, fact: Fact, facts: Sequence[Fact]) -> bool:
    """Whether a text tells a fact: most of a wording of it, and more than of any other fact."""
    share = {id(one): _covered(text, one) for one in facts}
    return share[id(fact)] >= COVERED and share[id(fact)] == max(share.values())


def _covered(text: str, fact: Fact) -> float:
    said = set(terms(text))
    return max(len(said & of) / len(of) for wording in fact.wordings if (of := set(terms(wording))))


__all__ = ["LEAST_REACHED", "MOST_CALLS", "Measured", "compare", "follow", "heard", "measure", "tells"]
