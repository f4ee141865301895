"""Requests to layer calls; the same for HTTP and MCP.

In:   the view of whoever asks, and a request.
Out:  a reply. Errors are the layer's own.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from collab_layer.errors import InputError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.surface.http.models import (
    AnswerReply,
    AnswerRequest,
    Batch,
    ChangesReply,
    ChangesRequest,
    ContextReply,
    ContextRequest,
    ExplainRequest,
    GrantsReply,
    GrantsRequest,
    InjectionsReply,
    InjectionsRequest,
    NeighborsReply,
    NeighborsRequest,
    Observation,
    ObserveReply,
    PublishRequest,
    RankRequest,
    ReceiptRequest,
    ReceiptsReply,
    ReceiptsRequest,
)
from collab_layer.types.answer import Answer
from collab_layer.types.entity import Entity
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.interaction import Interaction
from collab_layer.types.lineage import Lineage
from collab_layer.types.notice import Notice
from collab_layer.types.prompt import quote
from collab_layer.types.ranking import Ranking


async def context(view: AsyncCollabLayer, asked: ContextRequest) -> ContextReply:
    """What the neighbours of an entity know."""
    memory = await view.context(
        who(view, asked.entity), asked.query, asked.links, asked.budget_tokens, as_of=asked.as_of
    )
    return ContextReply(text=str(memory), memory=memory)


async def neighbors(view: AsyncCollabLayer, asked: NeighborsRequest) -> NeighborsReply:
    """Who is worth reading for an entity."""
    found = await view.neighbors(who(view, asked.entity), asked.query, asked.k, asked.as_of)
    return NeighborsReply(neighbors=tuple(found))


async def rank(view: AsyncCollabLayer, asked: RankRequest) -> Ranking:
    """Candidates in order."""
    return await view.rank(who(view, asked.entity), asked.candidates, asked.instruction, asked.as_of)


async def answer(view: AsyncCollabLayer, asked: AnswerRequest) -> AnswerReply:
    """A question answered from what the neighbours noted."""
    found = await view.answer(who(view, asked.entity), asked.question, asked.as_of)
    return AnswerReply(text=quoted(found), answer=found)


async def explain(view: AsyncCollabLayer, asked: ExplainRequest) -> Lineage:
    """What something rests on."""
    return await view.explain(asked.id, asked.depth, asked.width)


async def publish(view: AsyncCollabLayer, asked: PublishRequest) -> Notice:
    """Let an audience know something in the words of the entity that the view acts for."""
    return await view.publish(
        who(view, None), asked.text, asked.to, asked.sources, purpose=asked.purpose, until=asked.until
    )


async def changes(view: AsyncCollabLayer, asked: ChangesRequest) -> ChangesReply:
    """The newest changes in what the entity may read."""
    found = await view.changes(who(view, None), asked.since, asked.until)
    return ChangesReply(changes=tuple(found[-asked.limit :]), more=len(found) > asked.limit)


async def injections(view: AsyncCollabLayer, asked: InjectionsRequest) -> InjectionsReply:
    """What the entity was told of others."""
    found = await view.injections(who(view, None), asked.since, asked.limit)
    return InjectionsReply(injections=tuple(found))


async def receipt(view: AsyncCollabLayer, asked: ReceiptRequest) -> ErasureReceipt:
    """One receipt."""
    return await view.receipt(asked.id)


async def receipts(view: AsyncCollabLayer, asked: ReceiptsRequest) -> ReceiptsReply:
    """Receipts about the entity and its grants."""
    return ReceiptsReply(receipts=tuple(await view.receipts(asked.limit)))


async def grants(view: AsyncCollabLayer, asked: GrantsRequest) -> GrantsReply:
    """What the entity grants."""
    return GrantsReply(grants=tuple(await view.grants(who(view, None))))


async def observe(view: AsyncCollabLayer, asked: Observation | Batch) -> ObserveReply:
    """Store what happened."""
    many = asked.interactions if isinstance(asked, Batch) else (asked,)
    ids = await view.observe([_interaction(view, one) for one in many])
    return ObserveReply(ids=tuple(ids))


def who(view: AsyncCollabLayer, named: Entity | None) -> Entity:
    """The entity that was named, else the one that the view acts for.

    Raises:
        InputError: Neither is there.
    """
    found = named or view.principal
    if found is None:
        raise InputError("name an entity")
    return found


def quoted(found: Answer) -> str:
    """An answer as quoted sentences, each with the facets it rests on."""
    if not found.known:
        return str(found)
    return "\n".join(f"{quote(claim.text)} [{', '.join(claim.facets)}]" for claim in found.claims)


def _interaction(view: AsyncCollabLayer, one: Observation) -> Interaction:
    # `ref` is missing on purpose: whoever could name a record of a store would have it read as its own.
    parts: dict[str, Any] = one.model_dump() | {"actor": who(view, one.actor)}
    try:
        return Interaction(**parts)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise InputError(f"{json.dumps(first['loc'])}: {first['msg']}") from error
