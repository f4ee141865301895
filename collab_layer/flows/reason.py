"""A ranking by the rules to one that the reasoning model went over.

load:   what the neighbours know (cached, blind to the candidates), what is known of each candidate;
ask:    once for all candidates, or once for each, as set;
save:   nothing.

The model sees the best candidates only. What it leaves out keeps its place by the rules.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collab_layer.errors import UnknownIdError
from collab_layer.flows.ask import ask
from collab_layer.flows.cache import Cache
from collab_layer.flows.context import Request, context
from collab_layer.flows.making import told
from collab_layer.flows.tools import Tools
from collab_layer.graph import names
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.policy import NOBODY
from collab_layer.stages.asked import ranking as stage
from collab_layer.stages.asked.ranking import Choice, Scored
from collab_layer.stages.quarantine import quarantined
from collab_layer.types.asking import Usage
from collab_layer.types.entity import Entity
from collab_layer.types.facet import CollabMemory, Facet
from collab_layer.types.ranking import Ranked, Ranking
from collab_layer.types.scope import Scope

SHOWN = {"listwise": 20, "pointwise": 10}
"""Candidates that a model is shown; the others follow in the order of the rules."""
OWN_SHOWN = 10
TASTE_TOKENS, LESSON_TOKENS = 500, 250
UNASKABLE = "the reasoning model was not asked about names that instruct a model; rules stood in"
WITHHELD = "the instruction was withheld from the reasoning model: it reads like an order to a model, not like a wish"
AT_ONCE = 4
"""Questions under way at the same time, one candidate each."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the reader may know of the candidates and of the entity itself."""

    choices: list[Choice]
    own: list[str]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Scores by place, what they cost, and why there are none."""

    scored: Mapping[int, Scored]
    usage: tuple[Usage, ...] = ()
    why: tuple[str, ...] = ()


async def reason(tools: Tools, cache: Cache, scope: Scope, by_rules: Ranking, instruction: str | None) -> Ranking:
    """Let the reasoning model order the best candidates; the rules' ranking, marked, where it cannot."""
    shown = by_rules.items[: SHOWN[tools.ranking]]
    withheld = () if instruction is None or quarantined(instruction) is None else (WITHHELD,)
    instruction = None if withheld else instruction
    alone = by_rules.arm != "neighbours"
    memories = [] if alone else await _memories(tools, cache, scope, by_rules.entity, instruction)
    facets = list({facet.id: facet for memory in memories for facet in memory.facets}.values())
    known = await tools.in_thread(_known, tools, scope, by_rules.entity, shown, alone)
    judge = _each if tools.ranking == "pointwise" else _all
    verdict = await judge(tools, scope.tenant, known, facets, instruction)
    spent = (*(usage for memory in memories for usage in memory.usage), *verdict.usage)
    marks = (*(mark for memory in memories for mark in memory.degraded), *verdict.why, *withheld)
    changes = {"usage": spent, "degraded": tuple(dict.fromkeys((*by_rules.degraded, *marks)))}
    if not verdict.scored:
        return by_rules.model_copy(update=changes)
    items = (*_merged(shown, verdict.scored, {facet.id: facet for facet in facets}), *by_rules.items[len(shown) :])
    by_model = {"items": _descending(items), "facets": tuple(facets), "made_by": tools.models["reasoning"].model.name}
    return by_rules.model_copy(update={**changes, **by_model})


async def _memories(
    tools: Tools, cache: Cache, scope: Scope, entity: Entity, instruction: str | None
) -> list[CollabMemory]:
    """What neighbours have in common with the entity, and what they noted on the instruction."""
    asked = [Request(scope, entity, budget_tokens=TASTE_TOKENS)]
    if instruction:
        asked.append(Request(scope, entity, query=instruction, budget_tokens=LESSON_TOKENS))
    out: list[CollabMemory] = []
    for request in asked:
        try:
            out.append(await context(tools, cache, request, None))
        except UnknownIdError:  # nobody has met the entity yet: it is ranked by what is known of the candidates
            continue
    return out


def _known(tools: Tools, scope: Scope, entity: Entity, shown: Sequence[Ranked], alone: bool) -> _Known:
    with tools.store.reading(scope, entity, tools.now()) as opened:
        reading = opened.reading
        ids = names.find(reading.connection, reading.tenant, (str(item.entity) for item in shown))
        choices: list[Choice] = []
        for place, item in enumerate(shown):
            id_ = ids.get(str(item.entity), NOBODY)
            label = reading.index.displays[id_] if id_ != NOBODY and reading.index.named(id_) else item.entity.id
            notes = told(opened, id_) if id_ != NOBODY and reading.as_of is None and not alone else []
            choices.append(Choice(label, notes[0].text if notes else None, 1.0 - place / len(shown)))
        own: list[str] = []
        if opened.focus != NOBODY:
            held = reading.edges([opened.focus])[opened.focus].pick(Kind.INTERACTED)
            newest: list[int] = held.ids[held.last <= reading.horizon].tolist()
            own = [reading.index.displays[one] for one in newest if reading.index.named(one)][:OWN_SHOWN]
        return _Known(choices, own)


async def _all(tools: Tools, tenant: str, known: _Known, facets: Sequence[Facet], instruction: str | None) -> _Verdict:
    """One question about all candidates."""
    question = stage.ask(known.choices, facets, known.own, instruction=instruction, nonce=secrets.token_hex(8))
    if not question.shown:
        return _Verdict({}, (), (UNASKABLE,))
    said = await ask(tools, tenant, "reasoning", question.prompt, question.reply)
    if said.value is None:
        return _Verdict({}, _usage(said.usage, 0), () if said.why is None else (said.why,))
    scored, repaired = stage.read(said.value, question)
    why = () if scored else ("the reasoning model scored none of the candidates; rules stood in",)
    return _Verdict(scored, _usage(said.usage, repaired), why)


async def _each(tools: Tools, tenant: str, known: _Known, facets: Sequence[Facet], instruction: str | None) -> _Verdict:
    """One question about each candidate."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(choice: Choice) -> tuple[Scored | None, _Verdict]:
        question = stage.ask_one(choice, facets, known.own, instruction=instruction, nonce=secrets.token_hex(8))
        if not question.shown:
            return None, _Verdict({}, (), (UNASKABLE,))
        async with gate:
            said = await ask(tools, tenant, "reasoning", question.prompt, question.reply)
        if said.value is None:
            return None, _Verdict({}, _usage(said.usage, 0), () if said.why is None else (said.why,))
        scored, repaired = stage.read_one(said.value, question)
        return scored, _Verdict({}, _usage(said.usage, repaired))

    answers = await asyncio.gather(*(one(choice) for choice in known.choices))
    return _Verdict(
        {place: scored for place, (scored, _) in enumerate(answers) if scored is not None},
        _summed([usage for _, part in answers for usage in part.usage]),
        tuple(dict.fromkeys(why for _, part in answers for why in part.why)),
    )


def _merged(shown: Sequence[Ranked], scored: Mapping[int, Scored], facets: Mapping[str, Facet]) -> list[Ranked]:
    """The shown candidates by the model's score, in [0, 1], ties by the rules.

    One without a score takes its place by the rules within the range of the scores given.
    """
    low, high = min(one.score for one in scored.values()), max(one.score for one in scored.values())
    out: list[Ranked] = []
    for place, item in enumerate(shown):
        prior = 1.0 - place / len(shown)
        said = scored.get(place)
        score = low + (high - low) * prior if said is None else said.score
        changes: dict[str, object] = {"score": score, "features": {**item.features, "rules": item.score}}
        if said is not None:
            cited = [evidence for id_ in said.cites for evidence in facets[id_].evidence]
            changes |= {
                "rationale": said.rationale or item.rationale,
                "cites": said.cites,
                "evidence": tuple(dict.fromkeys((*cited, *item.evidence))),
            }
        out.append(item.model_copy(update=changes))
    order = sorted(range(len(out)), key=lambda place: (-out[place].score, place))
    return [out[place] for place in order]


def _descending(items: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """The same order; a candidate that the model was not shown never scores above one that it was."""
    out: list[Ranked] = []
    for item in items:
        above = out[-1].score if out else item.score
        out.append(item if item.score <= above else item.model_copy(update={"score": above}))
    return tuple(out)


def _usage(spent: Usage | None, repaired: int) -> tuple[Usage, ...]:
    return () if spent is None else (spent.model_copy(update={"repaired": repaired}),)


def _summed(parts: Sequence[Usage]) -> tuple[Usage, ...]:
    """One usage for many questions to one model."""
    if not parts:
        return ()
    return (
        parts[0].model_copy(
            update={
                "calls": sum(part.calls for part in parts),
                "input_tokens": sum(part.input_tokens for part in parts),
                "output_tokens": sum(part.output_tokens for part in parts),
                "repaired": sum(part.repaired for part in parts),
                "estimated": any(part.estimated for part in parts),
            }
        ),
    )
