"""One route per verb, and two about how the service is doing.

In:   a request that passed the gate.
Out:  a reply.
"""

from __future__ import annotations

from fastapi import APIRouter

from collab_layer.layer import AsyncCollabLayer
from collab_layer.surface.http import verbs
from collab_layer.surface.http.auth import View
from collab_layer.surface.http.gate import LIVE, READY
from collab_layer.surface.http.models import (
    AnswerReply,
    AnswerRequest,
    ChangesReply,
    ChangesRequest,
    ContextReply,
    ContextRequest,
    ExplainRequest,
    GrantsReply,
    GrantsRequest,
    InjectionsReply,
    InjectionsRequest,
    Live,
    NeighborsReply,
    NeighborsRequest,
    ObserveReply,
    ObserveRequest,
    PublishRequest,
    RankRequest,
    ReceiptRequest,
    ReceiptsReply,
    ReceiptsRequest,
)
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.lineage import Lineage
from collab_layer.types.notice import Notice
from collab_layer.types.ranking import Ranking

verbs_router = APIRouter(prefix="/v1", tags=["memory"])


@verbs_router.post("/context")
async def context(asked: ContextRequest, view: View) -> ContextReply:
    """What the neighbours of an entity know, with evidence; `text` goes into a prompt as it is."""
    return await verbs.context(view, asked)


@verbs_router.post("/observe")
async def observe(asked: ObserveRequest, view: View) -> ObserveReply:
    """Store one interaction, or up to 1,000. Answers after the commit; with a `key` it can be repeated safely."""
    return await verbs.observe(view, asked)


@verbs_router.post("/rank")
async def rank(asked: RankRequest, view: View) -> Ranking:
    """Put candidates in order for an entity, each with score, rationale and evidence."""
    return await verbs.rank(view, asked)


@verbs_router.post("/neighbors")
async def neighbors(asked: NeighborsRequest, view: View) -> NeighborsReply:
    """The entities worth reading for one, each with what it scored for."""
    return await verbs.neighbors(view, asked)


@verbs_router.post("/answer")
async def answer(asked: AnswerRequest, view: View) -> AnswerReply:
    """Answer a question from what the neighbours noted, every claim cited; or say that it is not known."""
    return await verbs.answer(view, asked)


@verbs_router.post("/explain")
async def explain(asked: ExplainRequest, view: View) -> Lineage:
    """Every source behind something that was shown, as far as the bearer may know it."""
    return await verbs.explain(view, asked)


@verbs_router.post("/publish")
async def publish(asked: PublishRequest, view: View) -> Notice:
    """Let an audience know something in the bearer's own words; what it rests on stays closed."""
    return await verbs.publish(view, asked)


@verbs_router.post("/changes")
async def changes(asked: ChangesRequest, view: View) -> ChangesReply:
    """What changed, old and new, in the memories that the bearer may read."""
    return await verbs.changes(view, asked)


@verbs_router.post("/injections")
async def injections(asked: InjectionsRequest, view: View) -> InjectionsReply:
    """Answers of the bearer's that carried something of others: which items, when, for what."""
    return await verbs.injections(view, asked)


@verbs_router.post("/receipt")
async def receipt(asked: ReceiptRequest, view: View) -> ErasureReceipt:
    """A signed receipt of an erasure, by its id."""
    return await verbs.receipt(view, asked)


@verbs_router.post("/receipts")
async def receipts(asked: ReceiptsRequest, view: View) -> ReceiptsReply:
    """Receipts about the bearer and its grants, newest first."""
    return await verbs.receipts(view, asked)


@verbs_router.post("/grants")
async def grants(asked: GrantsRequest, view: View) -> GrantsReply:
    """Who may use the bearer's memories: its grants and opt-outs in force."""
    return await verbs.grants(view, asked)


def health_router(layer: AsyncCollabLayer) -> APIRouter:
    """Liveness and readiness; they need no token and tell nothing else."""
    router = APIRouter(tags=["health"])

    @router.get(LIVE)
    async def live() -> Live:  # pyright: ignore[reportUnusedFunction]  the router keeps it
        """Whether the process answers."""
        return Live()

    @router.get(READY)
    async def ready() -> Live:  # pyright: ignore[reportUnusedFunction]  the router keeps it
        """Whether the database can be reached."""
        await layer.ping()
        return Live()

    return router
