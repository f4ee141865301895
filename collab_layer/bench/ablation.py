"""Does the model profit from what the neighbours know, and from which part of the work behind it?

In:   the folder of an evaluation set, a reasoning model, perhaps a memory model.
Out:  a `Report`: hits with the right facets, and with something else in their place; tokens and
      calls. The first place to look: real - empty, with its interval.
Never: a target among the facets on purpose: they are made before the candidates are known.

`real` are the facets that the product would show. In their place: `shuffled` another owner's;
`lorem` filler in the same number; `empty` none, and the prompt says so; `uncurated` facets of as
many neighbours, whoever they are; `generic` facets of neighbours chosen by recency, importance and
relevance, as for any agent; `no_write` facets without what propagation wrote. `no_read` is the
whole product for the same owner where nobody shares, against `product`, where everybody does.

Source: the design of the experiment follows an independent replication of MemRec, which found
real facets to help (+.11 N@5) and wrong ones to be ignored. What it finds here depends on the
model; nothing is tuned on it.
"""

from __future__ import annotations

import random
import re
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from collab_layer.bench import metrics
from collab_layer.bench.candidates import Step, Trial
from collab_layer.bench.data import DataSet
from collab_layer.bench.lift import prepared
from collab_layer.bench.progress import Progress
from collab_layer.bench.replay import replay
from collab_layer.bench.report import Report, Row
from collab_layer.config import Settings
from collab_layer.errors import ModelError, UnknownIdError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import LanguageModel
from collab_layer.stages.asked import ranking as stage
from collab_layer.stages.asked.ranking import Choice, Scored
from collab_layer.types.asking import Usage
from collab_layer.types.entity import Entity
from collab_layer.types.facet import Facet, FacetKind
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Sharing

CURATED = ("real", "uncurated", "generic")
"""Variants by how neighbours are chosen."""
VARIANTS = ("real", "shuffled", "lorem", "empty", "uncurated", "generic", "no_write")
UNCURATED = '{"name": "uncurated", "version": 1, "note": "everybody alike", "score": [{"feature": "is_owner"}]}'
"""Rules that tell no neighbour from another, so that any are taken."""
KIND = "pop"
FACET_TOKENS = 500
OWN_SHOWN = 10
_FILLER = (
    "The meeting room on the second floor was repainted in a light colour",
    "A delivery of printer paper is expected by the end of the week",
    "The office plants are watered twice a week by turns",
    "The parking lot closes earlier on public holidays",
    "The kitchen has a new kettle with a longer cord",
    "The lift is inspected once a year by a technician",
    "The windows on the north side were cleaned this month",
)


@dataclass(frozen=True, slots=True)
class _Case:
    """One user's question as every variant gets it; the right candidate is `choices[target]`."""

    choices: Sequence[Choice]
    own: Sequence[str]
    facets: Mapping[str, Sequence[Facet]]
    target: int
    rules: int
    product: int
    no_read: int
    usage: Sequence[Usage]


async def measure(
    data_dir: Path,
    reasoning: LanguageModel,
    memory: LanguageModel | None = None,
    *,
    users: int = 100,
    seed: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Ask the reasoning model about the same candidates under every variant.

    Args:
        data_dir: The folder as its publisher lays it out.
        reasoning: Ranks; asked nine times per user.
        memory: Words the facets, up to three times per user; the rules do where it is None.
        users: Test users drawn by `seed`, >= 2.
        seed: Also of the order in which candidates are shown.
        progress: Called with what is being done, how much is done, and of how much.

    Raises:
        DataSetError: The folder cannot be used.
    """
    began = time.perf_counter()
    data, steps = prepared(data_dir, 1)
    wanted = drawn(steps, users, seed)
    with tempfile.TemporaryDirectory(prefix="collab-ablation-") as folder:
        async with AsyncExitStack() as stack:
            layers = await _open(stack, Path(folder), reasoning, memory)
            names = titled(data)
            desk = _Desk(data, names, layers, seed, len(wanted), progress)
            cases: list[_Case] = []
            async for trial in replay(layers, data, steps, progress, names.__getitem__):
                if trial.user in wanted and not trial.fitting:
                    cases.append(await desk.case(trial))
            name = layers.real.embedder
    results = {variant: await _asked(reasoning, cases, variant, progress) for variant in VARIANTS}
    rows = _rows(f"{data.name}.{KIND}9", cases, results)
    rows.append(Row("run.seconds", time.perf_counter() - began, unit="s"))
    command = f"collab bench lift --data {data_dir.name} --reasoning-model {reasoning.name}"
    return Report(command, data.sha256, seed, name, rows)


@dataclass(frozen=True, slots=True)
class _Layers:
    """Layers over one history: by how they choose neighbours; with the model; with the model where nobody shares."""

    chosen: Mapping[str, AsyncCollabLayer]
    product: AsyncCollabLayer
    alone: AsyncCollabLayer

    @property
    def real(self) -> AsyncCollabLayer:
        """As it is used, without a reasoning model."""
        return self.chosen["real"]

    async def observe(self, actor: Sequence[Interaction], /) -> list[str]:
        """Tell both histories."""
        await self.alone.observe(actor)
        return await self.real.observe(actor)

    async def drain(self) -> int:
        """Work off both."""
        await self.alone.drain()
        return await self.real.drain()


async def _open(stack: AsyncExitStack, folder: Path, reasoning: LanguageModel, memory: LanguageModel | None) -> _Layers:
    uncurated = folder / "uncurated.json"
    uncurated.write_text(UNCURATED, encoding="utf-8")
    rules = {"real": "overlap", "uncurated": str(uncurated), "generic": "generative-agents"}
    url, private = str(folder / "ablation.db"), str(folder / "private.db")

    async def opened(url: str, sharing: Sharing | None, model: LanguageModel | None, which: str) -> AsyncCollabLayer:
        settings = Settings(worker=False, trigger="nightly", holdout=0.0, rules=which)
        return await stack.enter_async_context(
            await AsyncCollabLayer.open(
                url, sharing=sharing, memory_model=memory, reasoning_model=model, settings=settings
            )
        )

    everybody = Sharing.within_tenant("records")
    chosen = {name: await opened(url, everybody, None, rules[name]) for name in CURATED}
    await chosen["real"].set_weights()  # so that neighbours count in what the rules rank
    product = await opened(url, None, reasoning, "overlap")
    return _Layers(chosen, product, await opened(private, Sharing.private(), reasoning, "overlap"))


def drawn(steps: Sequence[Step], users: int, seed: int) -> frozenset[int]:
    """Some of the users that are scored."""
    tested = sorted({trial.user for step in steps for trial in step.trials if not trial.fitting})
    return frozenset(random.Random(seed).sample(tested, min(users, len(tested))))


def titled(data: DataSet) -> dict[int, Entity]:
    """Items by their titles, since a model can make nothing of numbers."""
    out: dict[int, Entity] = {}
    taken: set[str] = set()
    for item in sorted(data.texts):
        words = re.findall(r"\w+", _title(data, item).casefold())
        slug = "-".join(words) or "untitled"
        slug = f"{slug}-{item}" if slug in taken else slug
        taken.add(slug)
        out[item] = Entity("item", slug)
    return out


def _title(data: DataSet, item: int) -> str:
    return data.texts[item].split(". ", 1)[0][:80]


class _Desk:
    """Lays out one user's question."""

    def __init__(
        self,
        data: DataSet,
        names: Mapping[int, Entity],
        layers: _Layers,
        seed: int,
        total: int,
        progress: Progress | None,
    ) -> None:
        self.data, self.names, self.layers = data, names, layers
        self.random = random.Random(seed)
        self.total, self.done, self.progress = total, 0, progress

    async def case(self, trial: Trial) -> _Case:
        """Everything that does not differ between variants, and the rules' and the product's own place."""
        user, items = f"user:{trial.user}", trial.lists[KIND][0].tolist()
        target = str(self.names[items[0]])
        self.random.shuffle(items)
        names = [str(self.names[item]) for item in items]
        by_rules = await self.layers.real.rank(user, names)
        product = await self.layers.product.rank(user, names)
        no_read = await self.layers.alone.rank(user, names)
        told = {name: await _facets_of(layer, user) for name, layer in self.layers.chosen.items()}
        facets = {name: facets for name, (facets, _) in told.items()}
        facets["no_write"] = [facet for facet in facets["real"] if facet.kind is not FacetKind.UPDATE]
        self.done += 1
        if self.progress is not None:
            self.progress("asking", self.done, self.total)
        held = [event.item for event in self.data.histories[trial.user] if event.item != trial.target]
        return _Case(
            choices=[Choice(_title(self.data, item), None, 0.0) for item in items],
            own=[_title(self.data, item) for item in held[-OWN_SHOWN:]],
            facets=facets,
            target=names.index(target),
            rules=[str(one) for one in by_rules.entities].index(target) + 1,
            product=[str(one) for one in product.entities].index(target) + 1,
            no_read=[str(one) for one in no_read.entities].index(target) + 1,
            usage=[*product.usage, *told["real"][1]],
        )


async def _facets_of(layer: AsyncCollabLayer, user: str) -> tuple[Sequence[Facet], Sequence[Usage]]:
    try:
        memory = await layer.context(user, budget_tokens=FACET_TOKENS)
    except UnknownIdError:
        return (), ()
    return memory.facets, memory.usage


async def _asked(
    model: LanguageModel, cases: Sequence[_Case], variant: str, progress: Progress | None
) -> list[tuple[int, Usage, bool]]:
    """The place of the right candidate, what it cost, and whether there was a usable reply."""
    out: list[tuple[int, Usage, bool]] = []
    for at, case in enumerate(cases):
        facets = _facets(cases, at, variant)
        question = stage.ask(case.choices, facets, case.own, instruction=None, nonce=secrets.token_hex(8))
        try:
            answered = await model.complete(question.prompt, question.reply)
        except ModelError as error:
            spent = Usage(calls=error.calls, input_tokens=error.input_tokens, output_tokens=error.output_tokens)
            out.append((len(case.choices), spent, False))
        else:
            scored, repaired = stage.read(answered.value, question)
            usage = answered.usage.model_copy(update={"repaired": repaired})
            out.append((_place(case, scored), usage, bool(scored)))
        if progress is not None:
            progress(variant, at + 1, len(cases))
    return out


def _facets(cases: Sequence[_Case], at: int, variant: str) -> Sequence[Facet]:
    """What stands in the place of this user's facets."""
    if variant == "shuffled":
        return cases[(at + 1) % len(cases)].facets["real"]
    if variant == "empty":
        return ()
    if variant == "lorem":
        return [
            facet.model_copy(update={"text": _FILLER[place % len(_FILLER)], "evidence": ()})
            for place, facet in enumerate(cases[at].facets["real"])
        ]
    return cases[at].facets[variant]


def _place(case: _Case, scored: Mapping[int, Scored]) -> int:
    """1 is best; what the model did not score comes last, and ties are put before the right one."""
    mine = scored[case.target].score if case.target in scored else -1.0
    better = sum(
        1
        for place in range(len(case.choices))
        if place != case.target and (scored[place].score if place in scored else -1.0) >= mine
    )
    return 1 + better


def _rows(prefix: str, cases: Sequence[_Case], results: Mapping[str, Sequence[tuple[int, Usage, bool]]]) -> list[Row]:
    place = {variant: np.array([one for one, _, _ in found]) for variant, found in results.items()}
    place["rules"] = np.array([case.rules for case in cases])
    place["product"] = np.array([case.product for case in cases])
    place["no_read"] = np.array([case.no_read for case in cases])
    rows = [Row(f"{prefix}.users", float(len(cases)), unit="users")]
    for who, found in place.items():
        rows.append(Row.of(f"{prefix}.{who}.h1", metrics.mean(metrics.hits(found), 0)))
        rows.append(Row.of(f"{prefix}.{who}.n5", metrics.mean(metrics.ndcg(found), 0)))
    for whole, others in (("real", VARIANTS[1:]), ("product", ("no_read",))):
        for other in others:
            gain = metrics.ndcg(place[whole]) - metrics.ndcg(place[other])
            rows.append(replace(Row.of(f"{prefix}.{whole}_minus_{other}.n5", metrics.mean(gain, 0)), unit="difference"))
    for variant, found in results.items():
        rows += _cost_rows(f"{prefix}.{variant}", [usage for _, usage, _ in found])
        rows.append(Row(f"{prefix}.{variant}.answered", float(np.mean([good for _, _, good in found]))))
    return rows + _cost_rows(f"{prefix}.product", [usage for case in cases for usage in case.usage], len(cases))


def _cost_rows(prefix: str, spent: Sequence[Usage], users: int | None = None) -> list[Row]:
    count = max(1, users or len(spent))
    return [
        Row(f"{prefix}.calls_per_user", sum(usage.calls for usage in spent) / count, unit="calls"),
        Row(f"{prefix}.tokens_in_per_user", sum(usage.input_tokens for usage in spent) / count, unit="tokens"),
        Row(f"{prefix}.tokens_out_per_user", sum(usage.output_tokens for usage in spent) / count, unit="tokens"),
        Row(f"{prefix}.repaired_per_user", sum(usage.repaired for usage in spent) / count, unit="parts"),
    ]


__all__ = ["KIND", "VARIANTS", "drawn", "measure", "titled"]
