"""A replay with every question asked, and what each contestant needs to answer it.

In:   a layer, a set, its steps.
Out:  `Answered` trials: by candidate the raw features of ours and the scores of the others.
Never: an event that a contestant sees and the layer does not, or the other way round.

A user is asked once for the union of its lists. Other curation rules are put in use through the
layer's own call and asked the same. A guest is a reader that holds only the newest things of a
user and lets nobody read it; the user itself stays in the graph as one of the others, and holds
none of the candidates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from collab_layer.bench import baselines, mem0_taste, pools
from collab_layer.bench.baselines import Seen
from collab_layer.bench.candidates import Step, Trial
from collab_layer.bench.data import DataSet, Event
from collab_layer.bench.phases import Clock, Phases
from collab_layer.bench.pools import Pool
from collab_layer.bench.progress import Progress, silent
from collab_layer.bench.replay import Told, describe, happen, item, liked
from collab_layer.stages import few
from collab_layer.stages.fit import Case
from collab_layer.stages.rank import DEFAULT_WEIGHTS
from collab_layer.types.graph import Floats, Vectors
from collab_layer.types.lift import Gate
from collab_layer.types.ranking import Ranking

BLOCKS = 10
"""Times at which edges between things, and the baselines, are made anew; at most once per step."""
OWNERS = 300
"""Owners whose past choices the layer's own gate is fitted on, as its worker does."""
FEATURES = tuple(DEFAULT_WEIGHTS)
RULES: Mapping[str, str | Mapping[str, Any]] = {
    "generic": {"name": "generic", "version": 1, "score": [{"feature": "co_interaction_count"}]},
    "domain": "movietv",
}
"""Curation that ours is compared with: how much two owners have in common, and the paper's rules for films."""
CURATED = ("evidence", "log_lift")
"""Features that depend on who is curated."""
OTHERS = (*baselines.NAMES, *pools.NAMES, mem0_taste.NAME)
"""Contestants that score by themselves; 0 throughout for those that are not asked."""
COLUMNS = (*FEATURES, *OTHERS, *(f"{rule}.{name}" for rule in RULES for name in CURATED))


class Layer(Told, Protocol):
    """What the benchmark needs of a layer; `AsyncCollabLayer` has it."""

    async def rebuild(self) -> object:
        """Make the edges between things anew."""
        ...

    async def refit(self, owners: int = ..., /) -> Gate:
        """Fit the gate on past choices."""
        ...

    async def use_rules(self, which: Any, /) -> object:
        """Choose neighbours by other rules; None takes back the default."""
        ...

    async def opt_out(self, owner: str, /) -> object:
        """Let nobody read an owner."""
        ...

    async def rank(self, entity: str, candidates: Sequence[str], /) -> Ranking:
        """Order candidates, each with its raw features."""
        ...


class Scorer(Protocol):
    """A contestant that scores things for one who holds others."""

    def scores(self, held: Sequence[int], items: Sequence[int], clock: Clock, /) -> Mapping[str, Floats]:
        """By name, one score per item, shape (n,) each; its work on the clock."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """A trial and what was found for its candidates.

    Attributes:
        trial: The question.
        raw: By item a value for each of `COLUMNS`, or for as many of the first as were asked for.
        held: How many items the user held.
        gate: The layer's own weights at that moment; None of trials to fit on.
        cut: By number of newest own items, the raw values of a guest that holds only those: of trials
            to fit on for the lengths that the layer fits on, of others for those asked for.
    """

    trial: Trial
    raw: Mapping[int, Floats]
    held: int = 0
    gate: Gate | None = None
    cut: Mapping[int, Mapping[int, Floats]] = field(default_factory=dict[int, Mapping[int, Floats]])

    def case(self, kind: str, seed: int) -> Case:
        """One of its lists as columns, the right candidate in row 0."""
        return case_of(self.raw, self.trial.lists[kind][seed].tolist())

    def case_of_cut(self, cut: int, kind: str, seed: int) -> Case:
        """The same with a cut history."""
        return case_of(self.cut[cut], self.trial.lists[kind][seed].tolist())


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked beside the plain question.

    Attributes:
        rules: Names of `RULES`, each asked as well.
        cuts: Lengths that own histories are cut to.
        guests: Trials of a step at most, the first ones, whose histories are cut.
        gated: Whether the layer fits its own gate too.
        extra: Items asked for with every trial, in no list.
        others: Contestants beside the baselines and the pools.
    """

    rules: Sequence[str] = tuple(RULES)
    cuts: Sequence[int] = ()
    guests: int = 0
    gated: bool = True
    extra: Sequence[int] = ()
    others: Sequence[Scorer] = ()


def case_of(raw: Mapping[int, Floats], items: Sequence[int]) -> Case:
    """Some candidates as columns, the right one in row 0."""
    table = np.stack([raw[one] for one in items])
    return Case(dict(zip(COLUMNS[: table.shape[1]], table.T, strict=True)), 0)


async def ask(
    layer: Layer,
    data: DataSet,
    steps: Sequence[Step],
    progress: Progress | None = None,
    *,
    vectors: Vectors | None = None,
    wanted: Wanted | None = None,
    phases: Phases | None = None,
) -> list[Answered]:
    """Tell the layer what happened, step by step, and take each trial's raw features.

    Args:
        layer: Fresh.
        data: The set.
        steps: Of `candidates.plan`.
        progress: Called with what is being done, how much is done, and of how much.
        vectors: Of the item texts, ascending by item; without them nothing is pooled.
        wanted: What is asked beside; None asks everything but cut histories.
        phases: Where the time goes.
    """
    return await _Asker(layer, data, steps, progress or silent, vectors, wanted or Wanted(), phases or Phases()).run()


class _Asker:
    def __init__(
        self,
        layer: Layer,
        data: DataSet,
        steps: Sequence[Step],
        tell: Progress,
        vectors: Vectors | None,
        wanted: Wanted,
        phases: Phases,
    ) -> None:
        self._layer, self._data, self._steps, self._tell = layer, data, steps, tell
        self._wanted, self._phases = wanted, phases
        self._seen = Seen()
        self._pool = None if vectors is None else Pool(sorted(data.texts), vectors)
        self._held: dict[int, list[Event]] = {}
        self._gate: Gate | None = None
        self._total = sum(len(step.trials) for step in steps)
        self._done = 0

    async def run(self) -> list[Answered]:
        with self._phases.of("describe"):
            await describe(self._layer, self._data, self._tell)
        every, made, told = max(1, self._total // BLOCKS), -1, 0
        events = sum(len(step.events) for step in self._steps)
        out: list[Answered] = []
        for step in self._steps:
            with self._phases.of("observe"):
                told = await happen(self._layer, step, self._tell, told, events)
            self._note(step)
            if step.trials and (made < 0 or self._done - made >= every or self._first_scored(step)):
                await self._learn(step)
                made = self._done
            out += await self._asked(step.trials)
        return out

    def _note(self, step: Step) -> None:
        for user, event in step.events:
            self._held.setdefault(user, []).append(event)
            self._seen.add(user, event.item)
            if self._pool is not None:
                self._pool.add(event.item)

    def _first_scored(self, step: Step) -> bool:
        return self._wanted.gated and self._gate is None and not step.trials[0].fitting

    async def _learn(self, step: Step) -> None:
        with self._phases.of("rebuild"):
            await self._layer.rebuild()
        if self._wanted.gated and not step.trials[0].fitting:
            with self._phases.of("refit"):
                self._gate = await self._layer.refit(OWNERS)
        await asyncio.to_thread(self._seen.fit, self._phases.of)

    async def _asked(self, trials: Sequence[Trial]) -> list[Answered]:
        out: list[Answered] = []
        for trial in trials:
            asked = [*trial.union, *self._wanted.extra]
            with self._phases.call("rank"):
                ranking = await self._layer.rank(f"user:{trial.user}", [f"item:{one}" for one in asked])
            mine = _features(ranking)
            held = [event.item for event in self._held.get(trial.user, ())]
            raw = await asyncio.to_thread(self._beside, mine, asked, held)
            out.append(Answered(trial, raw, len(held), None if trial.fitting else self._gate))
            self._done += 1
            self._tell("ranking", self._done, self._total)
        for rule in self._wanted.rules:
            await self._curated_by(rule, out)
        return await self._guests(out)

    def _beside(self, mine: Mapping[int, Floats], asked: Sequence[int], held: Sequence[int]) -> Table:
        """The layer's features, then what the other contestants say."""
        others: dict[str, Floats] = {}
        for scorer in (self._seen, *([] if self._pool is None else [self._pool]), *self._wanted.others):
            others |= scorer.scores(held, asked, self._phases.call)
        columns = [others.get(name, np.zeros(len(asked))) for name in OTHERS]
        return {one: np.append(mine[one], [column[at] for column in columns]) for at, one in enumerate(asked)}

    async def _curated_by(self, rule: str, out: list[Answered]) -> None:
        """The same questions under other rules."""
        with self._phases.of(f"rules_{rule}"):
            await self._layer.use_rules(RULES[rule])
            for at, one in enumerate(out):
                ranking = await self._layer.rank(f"user:{one.trial.user}", [f"item:{thing}" for thing in one.raw])
                more = _features(ranking, CURATED)
                out[at] = replace(one, raw={thing: np.append(row, more[thing]) for thing, row in one.raw.items()})
            await self._layer.use_rules(None)

    async def _guests(self, out: list[Answered]) -> list[Answered]:
        guests = [
            (one, cut)
            for fitting in (True, False)
            for one in [one for one in out if one.trial.fitting == fitting][: self._wanted.guests]
            for cut in (few.CUTS if fitting else self._wanted.cuts)
            if cut < one.held
        ]
        if not guests or not self._wanted.cuts:
            return out
        with self._phases.of("cuts"):
            for one, cut in guests:
                await self._layer.opt_out(f"user:{_guest(one.trial, cut)}")
            await self._layer.observe(
                [
                    liked(_guest(one.trial, cut), item(event.item), event.at)
                    for one, cut in guests
                    for event in self._held[one.trial.user][-cut:]
                ]
            )
            await self._layer.drain()
            cut_of: dict[int, dict[int, Table]] = {}
            for one, cut in guests:
                cut_of.setdefault(one.trial.user, {})[cut] = await self._cut(one, cut)
        return [replace(one, cut=cut_of.get(one.trial.user, {})) for one in out]

    async def _cut(self, one: Answered, cut: int) -> Table:
        asked = one.trial.short().union
        ranking = await self._layer.rank(f"user:{_guest(one.trial, cut)}", [f"item:{thing}" for thing in asked])
        held = [event.item for event in self._held[one.trial.user][-cut:]]
        return await asyncio.to_thread(self._beside, _features(ranking), asked, held)


Table = dict[int, Floats]


def _guest(trial: Trial, cut: int) -> str:
    return f"{trial.user}-last{cut}{'-fitting' if trial.fitting else ''}"


def _features(ranking: Ranking, names: Sequence[str] = FEATURES) -> Table:
    return {int(one.entity.id): np.array([one.features.get(name, 0.0) for name in names]) for one in ranking.items}


__all__ = ["BLOCKS", "COLUMNS", "FEATURES", "RULES", "Answered", "Layer", "Wanted", "ask", "case_of"]
