"""The automatic choice between taste and text over real evaluation sets: each kind asked in both ways.

In:   a folder: MovieLens is taste; tickets and threads are text.
Out:  for its own kind whether the right way is taken and leads somewhere; for the other kind whether
      nothing is invented; whether the gate stays shut where there is nothing to rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collab_layer.bench import data, threads_data, tickets_data
from collab_layer.bench.files import folder_names
from collab_layer.layer import AsyncCollabLayer
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction

OWNERS, NOTES, ASKED = 150, 400, 30
"""Of a taste set, so many owners; of a text set, so many records; of both, so many questions."""
HELD = 20
"""Of each owner of a taste set, so many of its newest things."""
AGENTS = 10
FOREIGN = (
    "sourdough starter smells of acetone",
    "violin bridge keeps leaning forward",
    "тесто на закваске кислит",
)
_START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RealSet:
    """One set as interactions.

    Attributes:
        kind: `taste` or `text`.
        name: Of the set.
        told: What happened.
        asked: Who asks what: an owner and, of text, its question.
        sha256: Of the files.
    """

    kind: str
    name: str
    told: Sequence[Interaction]
    asked: Sequence[tuple[Entity, str | None]]
    sha256: str


def load(folder: Path) -> RealSet:
    """A set of either kind, recognised by its file names.

    Raises:
        DataSetError: The folder cannot be used.
    """
    names = folder_names(folder)
    if names & {tickets_data.CUSTOM, tickets_data.ARCHIVE} or (folder / tickets_data.UNPACKED).is_dir():
        return _tickets(folder)
    if names & {threads_data.CUSTOM, threads_data.POSTS, f"{threads_data.POSTS}.gz"}:
        return _threads(folder)
    return _taste(folder)


def _taste(folder: Path) -> RealSet:
    found = data.load(folder)
    users = sorted(user for user, held in found.histories.items() if len(held) > data.MIN_HISTORY)[:OWNERS]
    held = {user: found.histories[user][-HELD:] for user in users}
    items = sorted({event.item for events in held.values() for event in events})
    told = [
        Interaction(actor=Entity("item", str(item)), verb="described", text=found.texts[item], at=_START)
        for item in items
    ]
    told += [
        Interaction(actor=_user(user), target=Entity("item", str(event.item)), verb="liked", at=event.at)
        for user, events in held.items()
        for event in events
    ]
    return RealSet("taste", found.name, told, [(_user(user), None) for user in users[:ASKED]], found.sha256)


def _tickets(folder: Path) -> RealSet:
    found = tickets_data.load_tickets(folder)
    kept, asked = found.tickets[ASKED : ASKED + NOTES], found.tickets[:ASKED]
    told = [_note(at, one.text, ", ".join(sorted(one.did))) for at, one in enumerate(kept)]
    return RealSet("text", found.name, told, [(_agent(at), one.text) for at, one in enumerate(asked)], found.sha256)


def _threads(folder: Path) -> RealSet:
    found = threads_data.load_threads(folder)
    questions = [post for post in found.posts if post.asks][-ASKED:]
    kept = [post for post in found.posts if post.thread not in {one.thread for one in questions}][-NOTES:]
    told = [_note(at, post.text, None) for at, post in enumerate(kept)]
    return RealSet("text", found.name, told, [(_agent(at), one.text) for at, one in enumerate(questions)], found.sha256)


def _user(user: int) -> Entity:
    return Entity("user", str(user))


def _agent(at: int) -> Entity:
    return Entity("agent", f"a{at % AGENTS}")


def _note(at: int, text: str, outcome: str | None) -> Interaction:
    when = _START + at * timedelta(minutes=1)
    return Interaction(actor=_agent(at), verb="noted", text=text, outcome=outcome, at=when)


async def ask(layer: AsyncCollabLayer, real: RealSet, found: dict[str, list[float]]) -> None:
    """Tell one layer the set, and ask it in both ways."""
    await layer.observe(list(real.told))
    await layer.drain()
    prefix = f"shapes.{real.name}"
    for owner, question in real.asked:
        memory = await layer.context(owner, question and question[:2_000], budget_tokens=400)
        found.setdefault(f"{prefix}.shape_of_{real.kind}", []).append(float(memory.shape == real.kind))
        found.setdefault(f"{prefix}.finds_something", []).append(float(bool(memory.facets)))
    for question in FOREIGN:
        memory = await layer.context(real.asked[0][0], question, budget_tokens=400)
        found.setdefault(f"{prefix}.foreign_stays_silent", []).append(float(not memory.facets))
    if real.kind == "text":
        owner = real.asked[0][0]
        flat = await layer.rank(owner, ["item:1", "item:2"])
        found[f"{prefix}.rank_without_things_is_flat"] = [float(len({one.score for one in flat.items}) == 1)]
    opened = (await layer.refit()).state == "open"
    found[f"{prefix}.gate_open" if real.kind == "taste" else f"{prefix}.gate_stays_shut"] = [
        float(opened == (real.kind == "taste"))
    ]


__all__ = ["RealSet", "ask", "load"]
