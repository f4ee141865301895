"""How long does an old value live on in what others are told?

In:   a seed; values are made up.
Out:  the share of contexts that still carry the old value 1, 10 and 100 events after it changed.
Never: a changed value that nobody was told of before it changed; those do not count.

Told is what a line, its evidence or, of a liking, the evidence of a ranking still rests on.
Three ways to change one's mind: `facts` are noted to our own index and replaced; `likes` turn into
dislikes; `store` is an edit in a memory store that the layer reads. All three propagate: the reader
was told of the old value, in derived items too, before it changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from collab_layer.bench import metrics
from collab_layer.bench.options import Options
from collab_layer.bench.phases import Clock, Phases
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report, Row
from collab_layer.config import Settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.testing import InMemoryBackend
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Sharing

PARTS = ("facts", "likes", "store")
AFTER = (1, 10, 100)
SUBJECTS = 12
READER = "agent:reader"
_THINGS = ("backup", "gateway", "mailer", "scheduler", "archive", "billing", "search", "proxy", "cache", "ledger",
           "printer", "badge")  # fmt: skip
_ALL = Sharing.within_tenant("records")


@dataclass(frozen=True, slots=True)
class _Subject:
    """Something an owner says, and says differently later."""

    owner: str
    thing: str
    old: str
    new: str

    @property
    def query(self) -> str:
        """What a reader asks."""
        return f"How often does the {self.thing} rotate its keys?"

    @property
    def follower(self) -> str:
        """Somebody who is told of what the owner says."""
        return self.owner.replace("agent:a", "agent:next")

    @property
    def item(self) -> str:
        """What the owner likes at first."""
        return f"item:only-{self.thing}"

    @property
    def mark(self) -> str:
        """Its name as texts have it."""
        return f"only-{self.thing}"

    def said(self, value: str) -> str:
        """The statement with a value."""
        return f"The {self.thing} rotates its keys every {value} days, set in its profile."


Turn = Callable[[_Subject], Awaitable[None]]


async def measure(options: Options, progress: Progress) -> Report:
    """Change every value once, then let others talk on.

    Raises:
        InputError: A part is unknown.
    """
    phases = Phases()
    rows: list[Row] = []
    for part in options.chosen(PARTS):
        found: list[list[float]] = []
        for seed in range(options.seed, options.seed + options.seeds):
            with tempfile.TemporaryDirectory(prefix="collab-stale-") as folder:
                url, settings = str(Path(folder) / "stale.db"), Settings(worker=False)
                opened = AsyncCollabLayer.open(url, sharing=_ALL, embedder=options.embedder, settings=settings)
                async with await opened as layer:
                    found += await _RUNS[part](layer, _subjects(seed), progress, phases.call)
                    await phases.account(layer)
        rows += _rows(part, found)
    rows += phases.rows()
    made = sha256(repr([_subjects(options.seed + at) for at in range(options.seeds)]).encode()).hexdigest()
    return Report("collab bench tasks staleness", made, options.seed, options.embedder.id, rows)


def _subjects(seed: int) -> list[_Subject]:
    rng = np.random.default_rng(seed)
    values = rng.choice(np.arange(101, 999), 2 * SUBJECTS, replace=False).tolist()
    things = rng.permutation(_THINGS)[:SUBJECTS].tolist()
    return [
        _Subject(f"agent:a{at}", thing, f"{values[2 * at]}", f"{values[2 * at + 1]}") for at, thing in enumerate(things)
    ]


def _rows(part: str, found: Sequence[Sequence[float]]) -> list[Row]:
    """One row per number of events; `told` is the share that carried the old value before it changed."""
    table = np.array(found)
    told = table[:, 0] > 0
    rows = [Row(f"staleness.{part}.told", float(told.mean()))]
    if not told.any():
        return rows
    for at, after in enumerate(AFTER, start=1):
        one = metrics.mean(table[told, at], 0)
        rows.append(Row.of(f"staleness.{part}.after{after}", one).against("<=", 0.0))
    return rows


# -- facts, and edits in a store ------------------------------------------------------------


async def _facts(
    layer: AsyncCollabLayer, subjects: Sequence[_Subject], progress: Progress, clock: Clock
) -> list[list[float]]:
    said = await layer.observe(
        [Interaction(actor=Entity.parse(one.owner), verb="noted", text=one.said(one.old)) for one in subjects]
    )
    ids = dict(zip((one.owner for one in subjects), said, strict=True))

    async def change(one: _Subject) -> None:
        await layer.observe(one.owner, verb="noted", text=one.said(one.new), replaces=ids[one.owner])

    return await _run(layer, "facts", subjects, change, _asked, progress, clock)


async def _store(
    layer: AsyncCollabLayer, subjects: Sequence[_Subject], progress: Progress, clock: Clock
) -> list[list[float]]:
    store = InMemoryBackend()
    refs = {one.owner: store.add(one.owner, one.said(one.old)) for one in subjects}
    await layer.index(store)

    async def change(one: _Subject) -> None:
        store.edit(refs[one.owner], one.said(one.new))
        await layer.reconcile(store)

    return await _run(layer, "store", subjects, change, _asked, progress, clock)


async def _asked(layer: AsyncCollabLayer, one: _Subject) -> bool:
    """Whether the reader is told the old value, when it asks and when it does not."""
    by_query = await layer.context(READER, one.query, budget_tokens=800)
    known = await layer.context(one.follower, budget_tokens=800)
    facets = [*by_query.facets, *known.facets]
    quoted = [item.quote or "" for facet in facets for item in facet.evidence]
    return any(f"every {one.old} days" in text for text in [str(by_query), str(known), *quoted])


# -- likes --------------------------------------------------------------------------------


async def _likes(
    layer: AsyncCollabLayer, subjects: Sequence[_Subject], progress: Progress, clock: Clock
) -> list[list[float]]:
    events: list[Interaction] = []
    for one in subjects:
        shared = [f"item:{one.thing}-{at}" for at in range(3)]
        events += [_event(who, thing, "liked") for who in (one.owner, one.follower) for thing in shared]
    said = await layer.observe([*events, *(_event(one.owner, one.item, "liked") for one in subjects)])
    ids = dict(zip((one.owner for one in subjects), said[len(events) :], strict=True))

    async def change(one: _Subject) -> None:
        await layer.observe(one.owner, one.item, verb="disliked", weight=0.0, replaces=ids[one.owner])

    return await _run(layer, "likes", subjects, change, _liked, progress, clock)


async def _liked(layer: AsyncCollabLayer, one: _Subject) -> bool:
    """Whether one who shares things with the owner is told of the liking: by a line, a number or evidence."""
    known = await layer.context(one.follower, budget_tokens=2_000)
    ranked = await layer.rank(one.follower, [one.item])
    named = (
        one.mark in facet.text or any(link.id == one.mark for link in facet.links)
        for facet in known.facets
        if "disliked" not in facet.text
    )
    return any(named) or any(item.evidence for item in ranked.items)


def _event(owner: str, thing: str, verb: str) -> Interaction:
    return Interaction(actor=Entity.parse(owner), target=Entity.parse(thing), verb=verb)


# -- the course of a run ------------------------------------------------------------------


async def _run(
    layer: AsyncCollabLayer,
    part: str,
    subjects: Sequence[_Subject],
    change: Turn,
    told: Callable[[AsyncCollabLayer, _Subject], Awaitable[bool]],
    progress: Progress,
    clock: Clock,
) -> list[list[float]]:
    """Told before the change, then after 1, 10 and 100 events of others; a row per subject."""

    async def column() -> list[float]:
        found: list[float] = []
        for one in subjects:
            with clock(f"read_{part}"):
                found.append(float(await told(layer, one)))
        return found

    await layer.drain()
    for one in subjects:  # a neighbour of each, so that its words are propagated to somebody
        await layer.observe(one.follower, verb="noted", text=f"I look after the {one.thing} and its keys.")
    await layer.drain()
    columns = [await column()]
    for one in subjects:
        await change(one)
    talked = 0
    for after in AFTER:
        chatter = [
            Interaction(actor=Entity("agent", f"other{at % 7}"), verb="noted", text=f"Lunch on day {at} was fine.")
            for at in range(talked, after)
        ]
        talked = after
        await layer.observe(chatter)
        await layer.drain()
        columns.append(await column())
        progress(f"staleness of {part}", len(columns) - 1, len(AFTER))
    return [list(row) for row in zip(*columns, strict=True)]


_RUNS = {"facts": _facts, "likes": _likes, "store": _store}

__all__ = ["AFTER", "measure"]
