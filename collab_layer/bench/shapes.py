"""Does the layer take the right way by itself, through taste or through text?

In:   a seed; owners that share things, and owners that share only words. Or a real set.
Out:  for each kind of memory asked in each way: was the right shape taken, and was the answer there?
Never: a switch set by hand; the same layer with the same settings is fed both.

Taste: two groups of owners hold things of their own group, and nobody writes a word. Text: agents
write down how they solved one of several problems, and share no thing. `crossed` asks the one with
what belongs to the other: it must not invent an answer. With a folder the same is asked of a real set
(`shapes_sets`).
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from collab_layer.bench import metrics, shapes_sets
from collab_layer.bench.options import Options
from collab_layer.bench.phases import Phases
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report, Row
from collab_layer.config import Settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Sharing

PARTS = ("taste", "text", "mixed", "crossed")
OWNERS, THINGS, HELD = 24, 24, 8
PROBLEMS = (
    ("printer jams after toner change", "cleaned the fuser roller"),
    ("VPN drops when macOS sleeps", "reset the network profile"),
    ("checksum mismatch in go modules", "cleared the module cache"),
    ("invoice shows the wrong currency", "set the tenant locale"),
    ("badge reader rejects new cards", "re-enrolled the facility code"),
    ("calendar loses recurring meetings", "rebuilt the sync token"),
)
FOREIGN = ("sourdough starter smells of acetone", "violin bridge keeps leaning forward")
SEEN = 0.5
"""Share of one's group things that must be among the first half of a ranking to count as right."""


async def measure(options: Options, progress: Progress) -> Report:
    """Feed one layer taste, one text, one both, and ask each in both ways.

    Raises:
        InputError: A part is unknown.
        DataSetError: The folder cannot be used.
    """
    phases = Phases()
    parts = options.chosen(PARTS)
    found: dict[str, list[float]] = {}
    if options.data is not None:
        real = await asyncio.to_thread(shapes_sets.load, options.data)
        async with _opened(options.embedder) as layer:
            with phases.of("ask"):
                await shapes_sets.ask(layer, real, found)
            await phases.account(layer)
        rows = [_real_row(name, values) for name, values in found.items()]
        rows += phases.rows()
        command = f"collab bench tasks shapes --data {options.data.resolve().name}"
        return Report(command, real.sha256, options.seed, options.embedder.id, rows)
    for seed in range(options.seed, options.seed + options.seeds):
        for at, fed in enumerate(("taste", "text", "mixed")):
            await _one(seed, fed, options.embedder, found, phases)
            progress("shapes", 3 * (seed - options.seed) + at + 1, 3 * options.seeds)
    rows = [_row(name, values) for name, values in found.items() if name.split(".")[1] in parts]
    rows += phases.rows()
    made = sha256(repr((PROBLEMS, FOREIGN, OWNERS, THINGS, HELD)).encode()).hexdigest()
    return Report("collab bench tasks shapes", made, options.seed, options.embedder.id, rows)


async def _one(seed: int, fed: str, embedder: Embedder, found: dict[str, list[float]], phases: Phases) -> None:
    async with _opened(embedder) as layer:
        held = _held(seed)
        if fed != "text":
            await layer.observe([event for owner in range(OWNERS) for event in _taken(owner, held[owner])])
        if fed != "taste":
            await layer.observe(_notes(seed))
        await layer.drain()
        with phases.of("ask"):
            if fed != "text":
                await _ask_taste(layer, fed, held, found)
            if fed != "taste":
                await _ask_text(layer, fed, found)
            await _ask_crossed(layer, fed, found)
        await phases.account(layer)


@asynccontextmanager
async def _opened(embedder: Embedder) -> AsyncGenerator[AsyncCollabLayer]:
    """An empty layer in which everybody reads everybody."""
    with tempfile.TemporaryDirectory(prefix="collab-shapes-") as folder:
        opened = AsyncCollabLayer.open(
            str(Path(folder) / "shapes.db"),
            sharing=Sharing.within_tenant("records"),
            embedder=embedder,
            settings=Settings(worker=False),
        )
        async with await opened as layer:
            yield layer


def _held(seed: int) -> list[list[int]]:
    """Things of each owner: even owners hold even things."""
    rng = np.random.default_rng(seed)
    return [(2 * rng.permutation(THINGS // 2)[:HELD] + owner % 2).tolist() for owner in range(OWNERS)]


def _taken(owner: int, things: Sequence[int]) -> list[Interaction]:
    return [
        Interaction(actor=Entity("user", f"u{owner}"), target=Entity("item", f"i{thing}"), verb="liked")
        for thing in things
    ]


def _notes(seed: int) -> list[Interaction]:
    rng = np.random.default_rng(seed)
    order: list[int] = (rng.permutation(4 * len(PROBLEMS)) % len(PROBLEMS)).tolist()
    return [
        Interaction(
            actor=Entity("agent", f"a{at % 5}"),
            verb="solved",
            text=f"Ticket {at}: {PROBLEMS[one][0]}.",
            outcome=PROBLEMS[one][1],
        )
        for at, one in enumerate(order)
    ]


async def _ask_taste(
    layer: AsyncCollabLayer, fed: str, held: Sequence[Sequence[int]], found: dict[str, list[float]]
) -> None:
    """Is the shape taste, and do things of one's own group come before the others?"""
    for owner in range(0, OWNERS, 3):
        memory = await layer.context(f"user:u{owner}")
        found.setdefault(f"shapes.{fed}.shape_of_taste", []).append(float(memory.shape == "taste"))
        fresh = [thing for thing in range(THINGS) if thing not in held[owner]]
        ranking = await layer.rank(f"user:u{owner}", [f"item:i{thing}" for thing in fresh])
        mine = sum(thing % 2 == owner % 2 for thing in fresh)
        first = [int(one.entity.id[1:]) for one in ranking.items[:mine]]
        right = sum(thing % 2 == owner % 2 for thing in first) / mine
        found.setdefault(f"shapes.{fed}.rank_right", []).append(float(right > SEEN))


async def _ask_text(layer: AsyncCollabLayer, fed: str, found: dict[str, list[float]]) -> None:
    """Is the shape text, and is the remedy in the first line?"""
    for trouble, remedy in PROBLEMS:
        memory = await layer.context("agent:new", f"My {trouble}, what now?", budget_tokens=400)
        found.setdefault(f"shapes.{fed}.shape_of_text", []).append(float(memory.shape == "text"))
        first = memory.facets[0].text if memory.facets else ""
        found.setdefault(f"shapes.{fed}.remedy_first", []).append(float(remedy in first))


async def _ask_crossed(layer: AsyncCollabLayer, fed: str, found: dict[str, list[float]]) -> None:
    """Ask what nobody wrote about; and, where only words are shared, rank things that nobody holds."""
    for question in FOREIGN:
        memory = await layer.context("agent:new", question, budget_tokens=400)
        found.setdefault(f"shapes.crossed.{fed}_stays_silent", []).append(float(not memory.facets))
    if fed == "text":
        ranking = await layer.rank("agent:a0", ["item:i1", "item:i2"])
        flat = len({round(one.score, 9) for one in ranking.items}) == 1
        found.setdefault("shapes.crossed.rank_without_things_is_flat", []).append(float(flat))


def _real_row(name: str, values: Sequence[float]) -> Row:
    """The way must be right; what it leads to depends on the set."""
    row = _row(name, values)
    free = name.endswith((".finds_something", ".foreign_stays_silent", ".gate_open"))
    return replace(row, bar=None, ok=None) if free else row


def _row(name: str, values: Sequence[float]) -> Row:
    one = metrics.mean(np.array(values), 0)
    return Row.of(name, one).against(">=", 1.0)


__all__ = ["PARTS", "measure"]
