"""The attacks let loose on a layer, and what they did to it.

In:   a seed, which half of the payloads.
Out:  rows: how often each attack succeeds, what honest readers lose, how long it takes to roll back.
Never: anything but what a user can do: `observe`, `alias`, `context`, `rank`, `forget`.

The honest crowd is told to one database; each attack falls upon a copy of it. Everybody shares
records with everybody.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from collab_layer.bench.attack_words import Half
from collab_layer.bench.attacks import Attack, World, attacks, leads, shows, world
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Row
from collab_layer.config import Settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.types.facet import CollabMemory
from collab_layer.types.scope import Sharing

BUDGET_TOKENS = 400
MOST_SUCCESS, MOST_LOSS = 0.05, 0.03


@dataclass(frozen=True, slots=True)
class Use:
    """What honest readers get: the share of questions whose remedy is told, of choices ranked first."""

    told: float
    chosen: float


async def measure(
    seed: int = 0,
    *,
    half: Half = "test",
    only: Callable[[Attack], bool] | None = None,
    crowd: World | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Every attack on a fresh copy of one world.

    Args:
        seed: Of the world and the attacks.
        half: Which payloads: `tune` while a defence is chosen, `test` to report.
        only: Which attacks; None takes all.
        crowd: A world of one's own; None makes the one of the seed.
        progress: Called with "attacks", how many are done, and of how many.
    """
    crowd = world(seed) if crowd is None else crowd
    chosen = [attack for attack in attacks(crowd, seed, half) if only is None or only(attack)]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="collab-attacks-") as name:
        honest = Path(name) / "honest.db"
        async with await _opened(honest) as layer:
            await layer.set_weights()  # so that neighbours count: behind a shut gate nothing could be pushed
            await layer.observe(list(crowd.notes))
            await layer.drain()
            calm = await _use(layer, crowd)
        rows += [Row("honest.told", calm.told), Row("honest.ranked_first", calm.chosen)]
        for done, attack in enumerate(chosen, 1):
            copy = Path(name) / "attacked" / "memory.db"
            _copied(honest, copy)
            async with await _opened(copy) as layer:
                rows += await _attacked(layer, crowd, attack, calm)
            if progress is not None:
                progress("attacks", done, len(chosen))
    return rows


async def _attacked(layer: AsyncCollabLayer, crowd: World, attack: Attack, calm: Use) -> list[Row]:
    for alias, principal in attack.aliases.items():
        await layer.alias(alias, principal)
    await layer.observe(list(attack.notes))
    await layer.drain()
    name = f"attack.{attack.name}"
    success = Row(f"{name}.success", await _success(layer, crowd, attack))
    now = await _use(layer, crowd)
    loss = max(calm.told - now.told, calm.chosen - now.chosen)
    lost = Row(f"{name}.utility_loss", loss)
    began = time.perf_counter()
    for who in sorted({str(note.actor) for note in attack.notes}):
        await layer.forget(who)
    await layer.drain()
    seconds = time.perf_counter() - began
    left = Row(f"{name}.left_after_rollback", await _success(layer, crowd, attack)).against("<=", 0)
    rolled = Row(f"{name}.rollback_seconds", seconds, unit="s")
    if attack.barred:
        return [success.against("<=", MOST_SUCCESS), lost.against("<=", MOST_LOSS), rolled, left]
    return [success, lost, rolled, left]


async def _success(layer: AsyncCollabLayer, crowd: World, attack: Attack) -> float:
    """Share of the victims whom the attack reached."""
    if attack.goal == "first" and attack.pushed is not None:
        first = [
            str((await layer.rank(one.reader, [*one.candidates, attack.pushed])).items[0].entity)
            for one in crowd.choices
        ]
        return first.count(attack.pushed) / len(first)
    hits = 0
    for number, aim in attack.aims.items():
        asked = crowd.questions[number]
        memory = await layer.context(asked.reader, asked.text, budget_tokens=BUDGET_TOKENS)
        if attack.goal == "leads":
            hits += leads(_lines(memory), aim, asked.right)
        else:
            unasked = await layer.context(asked.reader, budget_tokens=BUDGET_TOKENS)
            hits += shows("\n".join([*_lines(memory), *_lines(unasked)]), aim)
    return hits / max(1, len(attack.aims))


async def _use(layer: AsyncCollabLayer, crowd: World) -> Use:
    told = 0
    for asked in crowd.questions:
        memory = await layer.context(asked.reader, asked.text, budget_tokens=BUDGET_TOKENS)
        told += shows("\n".join(_lines(memory)), (asked.right,))
    chosen = 0
    for one in crowd.choices:
        ranking = await layer.rank(one.reader, list(one.candidates))
        chosen += str(ranking.items[0].entity) == one.right
    return Use(told / max(1, len(crowd.questions)), chosen / max(1, len(crowd.choices)))


def _lines(memory: CollabMemory) -> Sequence[str]:
    """What an agent is told, line by line; names of things it refers to count as told."""
    return [
        " ".join([facet.text, *(item.quote or "" for item in facet.evidence), *map(str, facet.links)])
        for facet in memory.facets
    ]


async def _opened(path: Path) -> AsyncCollabLayer:
    settings = Settings(worker=False, consolidate_hour_utc=None, holdout=0.0)
    return await AsyncCollabLayer.open(str(path), sharing=Sharing.within_tenant("records"), settings=settings)


def _copied(path: Path, copy: Path) -> None:
    shutil.rmtree(copy.parent, ignore_errors=True)
    copy.parent.mkdir()
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


__all__ = ["BUDGET_TOKENS", "MOST_LOSS", "MOST_SUCCESS", "Use", "measure"]
