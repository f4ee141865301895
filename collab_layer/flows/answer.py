"""A question to an answer that cites what the neighbours know, or to "not known".

load:   the records that bear on the question (cached);
ask:    the reasoning model, once, and only where something was found;
save:   nothing.

Without a model, or where it gives nothing usable, the best lessons are quoted as they are.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from collab_layer.flows.ask import ask
from collab_layer.flows.cache import Cache
from collab_layer.flows.context import Request, context
from collab_layer.flows.injections import UNKNOWN
from collab_layer.flows.tools import Tools
from collab_layer.stages.asked import answer as stage
from collab_layer.types.answer import Answer, Claim
from collab_layer.types.facet import CollabMemory, Facet, FacetKind

UNASKABLE = "the question was withheld from the reasoning model: it reads like an order to a model"
QUOTED = 3
"""Lessons and notices that stand in for a model's answer."""


async def answer(tools: Tools, cache: Cache, request: Request) -> Answer:
    """Answer `request.query` for the entity from what its neighbours noted."""
    made = await _answered(tools, request, await context(tools, cache, request, None))
    await tools.handed(request.scope, request.entity, "answer", [facet.id for facet in made.facets], UNKNOWN)
    return made


async def _answered(tools: Tools, request: Request, memory: CollabMemory) -> Answer:
    question = request.query or ""
    empty = Answer(
        entity=request.entity,
        question=question,
        degraded=memory.degraded,
        usage=memory.usage,
        as_of=memory.as_of,
    )
    if not memory.facets:
        return empty
    if "reasoning" not in tools.models:
        return _quoted(empty, memory)
    asked = stage.ask(question, memory.facets, nonce=secrets.token_hex(8))
    if not asked.shown:
        return empty.model_copy(update={"degraded": (*memory.degraded, UNASKABLE)})
    said = await ask(tools, request.scope.tenant, "reasoning", asked.prompt, asked.reply)
    usage = (*memory.usage, *(() if said.usage is None else (said.usage,)))
    if said.value is None:
        marks = (*memory.degraded, *(() if said.why is None else (said.why,)))
        return _quoted(empty.model_copy(update={"usage": usage, "degraded": marks}), memory)
    claims, repaired = stage.read(said.value, asked)
    if said.usage is not None:
        usage = (*memory.usage, said.usage.model_copy(update={"repaired": repaired}))
    return empty.model_copy(
        update={
            "claims": tuple(claims),
            "facets": _cited(claims, memory.facets),
            "made_by": tools.models["reasoning"].model.name,
            "usage": usage,
        }
    )


def _quoted(empty: Answer, memory: CollabMemory) -> Answer:
    lessons = [facet for facet in memory.facets if facet.kind in (FacetKind.LESSON, FacetKind.NOTICE)][:QUOTED]
    claims = [Claim(text=lesson.text, facets=(lesson.id,)) for lesson in lessons]
    return empty.model_copy(update={"claims": tuple(claims), "facets": tuple(lessons)})


def _cited(claims: Sequence[Claim], facets: Sequence[Facet]) -> tuple[Facet, ...]:
    used = {id_ for claim in claims for id_ in claim.facets}
    return tuple(facet for facet in facets if facet.id in used)
