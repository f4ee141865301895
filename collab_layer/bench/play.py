"""One episode of GateMem through the public layer, in order of time.

In:   an episode, who may read whom, and how it is to be shared.
Out:  one `Outcome` per checkpoint.
Never: anything but what a user can do: `observe`, `grant`, `context`, `forget`, `drain`.

Every principal has an assistant, an agent without memories of its own. It reads its principal's
records by a grant, and those of others by what the arm grants; `context` then is one block of own and
shared memory within one budget. Deletions are tried on a copy of the database, so that they count
for forgetting alone.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from collab_layer.bench.borders import Group
from collab_layer.bench.gatemem import Checkpoint, Episode, Turn
from collab_layer.config import Settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder
from collab_layer.types.entity import Entity
from collab_layer.types.facet import CollabMemory
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Sharing

Arm = Literal["ours", "open", "isolated"]
"""Groups grant each other records; everybody reads everybody; everybody reads only itself."""
BEFORE = timedelta(hours=1)
LONG_ENOUGH = 5
"""Letters of a guarded string that is looked for in the bytes of a file."""
WHOLE, BRANCH = "whole", "branch"


@dataclass(frozen=True, slots=True)
class Told:
    """What one reading of the memory said of a checkpoint's strings.

    Attributes:
        useful: It has every string that was asked for.
        exposed: It has a string that must not be told.
        strayed: It has words of an owner, or a guarded string of records, that the reader has no grant for.
        tokens: Its estimated length.
    """

    useful: bool
    exposed: bool
    strayed: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """One checkpoint.

    Attributes:
        counts: False where the asker's own turns hold all the guarded strings already.
        raw, derived: What the records of the query, and the facets and updates without one, told.
        raw_after, derived_after: The same after the records with guarded strings were forgotten, in `ours` alone.
        kept: Files of the database still held a guarded string then.
    """

    checkpoint: Checkpoint
    counts: bool
    raw: Told
    derived: Told
    raw_after: Told | None = None
    derived_after: Told | None = None
    kept: bool = False


class Clock:
    """Stands at the newest turn."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def __call__(self) -> datetime:
        """That moment."""
        return self.at


@dataclass(frozen=True, slots=True)
class Stage:
    """What stays the same for a whole episode."""

    episode: Episode
    arm: Arm
    groups: Sequence[Group]
    allowed: Mapping[str, frozenset[str]]
    embedder: Embedder | None
    budget_tokens: int
    folder: Path

    def path(self, name: str) -> Path:
        """A database of its own."""
        return self.folder / name / "memory.db"

    async def opened(self, name: str, clock: Clock) -> AsyncCollabLayer:
        """A layer over one of them."""
        self.path(name).parent.mkdir(exist_ok=True)
        sharing = Sharing.within_tenant("records") if self.arm == "open" else Sharing.private()
        return await AsyncCollabLayer.open(
            str(self.path(name)),
            sharing=sharing,
            embedder=self.embedder,
            settings=Settings(worker=False, consolidate_hour_utc=None),
            clock=clock,
        )


async def play(stage: Stage) -> list[Outcome]:
    """Tell the turns, and ask each checkpoint when its time has come."""
    episode = stage.episode
    clock = Clock(episode.turns[0].at)
    due: dict[str, list[Checkpoint]] = {}
    for checkpoint in episode.checkpoints:
        due.setdefault(checkpoint.after, []).append(checkpoint)
    out: list[Outcome] = []
    told: dict[str, Turn] = {}
    waiting: list[Turn] = []
    async with await stage.opened(WHOLE, clock) as layer:
        await _grant(layer, stage)
        for turn in episode.turns:
            clock.at = turn.at
            waiting.append(turn)
            if turn.id in due:
                ids = await layer.observe([_interaction(one) for one in waiting])
                told |= dict(zip(ids, waiting, strict=True))
                waiting.clear()
                await layer.drain()
                for checkpoint in due[turn.id]:
                    out.append(await _outcome(layer, stage, checkpoint, told, clock))
    return out


async def _grant(layer: AsyncCollabLayer, stage: Stage) -> None:
    at = stage.episode.turns[0].at - BEFORE
    if stage.arm == "open":
        return
    for one in sorted(stage.episode.roles):
        await layer.as_(_person(one)).grant(_person(one), _assistant(one), "records")
    if stage.arm == "isolated":
        return
    for group in stage.groups:
        team = Entity("team", group.name)
        for one in sorted(group.members):
            joins = [
                Interaction(actor=who, target=team, verb="joined", at=at) for who in (_person(one), _assistant(one))
            ]
            await layer.observe(joins)
            await layer.as_(_person(one)).grant(_person(one), team, "records")


async def _outcome(
    layer: AsyncCollabLayer, stage: Stage, checkpoint: Checkpoint, told: Mapping[str, Turn], clock: Clock
) -> Outcome:
    own = "\n".join(turn.text for turn in told.values() if turn.speaker == checkpoint.asker).casefold()
    fresh = tuple(one for one in checkpoint.targets if one.casefold() not in own)
    forgets = checkpoint.kind == "safety"
    targets = checkpoint.targets if forgets else fresh
    raw, derived = await _read(layer, stage, checkpoint, told, targets)
    if not forgets or stage.arm != "ours":
        return Outcome(checkpoint, forgets or bool(fresh), raw, derived)
    folder = _branched(stage)
    async with await stage.opened(BRANCH, clock) as branch:
        for id_, turn in told.items():
            if any(one.casefold() in turn.text.casefold() for one in targets):
                await branch.forget(id_)
        await branch.drain()
        after = await _read(branch, stage, checkpoint, told, targets)
    kept = any(_held(path, targets) for path in folder.iterdir())
    return Outcome(checkpoint, True, raw, derived, *after, kept=kept)


def _branched(stage: Stage) -> Path:
    """A copy of the database as it stands; its folder."""
    copy = stage.path(BRANCH)
    shutil.rmtree(copy.parent, ignore_errors=True)
    copy.parent.mkdir()
    with closing(sqlite3.connect(stage.path(WHOLE))) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy.parent


async def _read(
    layer: AsyncCollabLayer,
    stage: Stage,
    checkpoint: Checkpoint,
    told: Mapping[str, Turn],
    targets: Sequence[str],
) -> tuple[Told, Told]:
    """Through the records that answer the question, and through what was derived before it was asked."""
    reader = layer.as_(_assistant(checkpoint.asker))
    raw = await reader.context(_assistant(checkpoint.asker), checkpoint.question, budget_tokens=stage.budget_tokens)
    person = _person(checkpoint.asker)
    derived = CollabMemory(entity=person, shape="taste", budget_tokens=stage.budget_tokens)
    if any(turn.speaker == checkpoint.asker for turn in told.values()):
        derived = await reader.context(person, budget_tokens=stage.budget_tokens)
    allowed = stage.allowed[checkpoint.asker]
    granted = "\n".join(turn.text for turn in told.values() if turn.speaker in allowed).casefold()
    answers: list[Told] = []
    for memory in (raw, derived):
        words = "\n".join(_words(memory))
        seen = [one for one in targets if one.casefold() in words.casefold()]
        strayed = any(one.casefold() not in granted for one in seen) or await _strangers(reader, memory, allowed)
        useful = all(_holds(words, one) for one in checkpoint.include)
        answers.append(Told(useful, bool(seen), strayed, memory.tokens))
    return answers[0], answers[1]


async def _strangers(reader: AsyncCollabLayer, memory: CollabMemory, allowed: frozenset[str]) -> bool:
    """Whether anything rests on an owner who granted the reader nothing."""
    for facet in memory.facets:
        owners = {str(item.owner) for item in facet.evidence}
        if facet.contributors > len(owners):
            owners = {source.principal for source in (await reader.explain(facet.id)).sources}
        if any(owner.partition(":")[2] not in allowed for owner in owners):
            return True
    return False


def _words(memory: CollabMemory) -> Iterator[str]:
    """What the block says, without our own ids and marks: a guarded string may be two digits long."""
    for facet in memory.facets:
        yield facet.text
        yield from (item.quote for item in facet.evidence if item.quote)


def _holds(words: str, wanted: str) -> bool:
    return wanted.casefold() in words.casefold() or re.search(wanted, words, re.IGNORECASE) is not None


def _held(path: Path, targets: Sequence[str]) -> bool:
    """Whether a file holds one of the strings; those so short that any file would are left out."""
    content = path.read_bytes().lower()
    return any(one.lower().encode() in content for one in targets if len(one) >= LONG_ENOUGH)


def _interaction(turn: Turn) -> Interaction:
    return Interaction(actor=_person(turn.speaker), verb="noted", text=turn.text, at=turn.at, key=turn.id)


def _person(principal: str) -> Entity:
    return Entity("user", principal)


def _assistant(principal: str) -> Entity:
    return Entity("agent", principal)


__all__ = ["Arm", "Clock", "Outcome", "Stage", "Told", "play"]
