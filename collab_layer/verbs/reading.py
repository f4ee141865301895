"""What the layer tells: neighbours, contexts, rankings, answers, and what is behind them.

In:   an entity and a question.
Out:  values, under the grants of this very moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from collab_layer.errors import InputError
from collab_layer.flows import answer as answer_flow
from collab_layer.flows import changes as changes_flow
from collab_layer.flows import context as context_flow
from collab_layer.flows import explain, offer, ready, received
from collab_layer.flows import models as models_flow
from collab_layer.flows import rank as rank_flow
from collab_layer.flows.context import Request
from collab_layer.types.answer import Answer
from collab_layer.types.asking import RoleHealth, Spent
from collab_layer.types.changed import Changed
from collab_layer.types.entity import Entity, checked_text, entities
from collab_layer.types.facet import CollabMemory, Facet, Neighbor
from collab_layer.types.health import Health
from collab_layer.types.injection import Injection
from collab_layer.types.lineage import MAX_DEPTH, MAX_WIDTH, Lineage
from collab_layer.types.ranking import Ranking
from collab_layer.types.time import micros, utc
from collab_layer.verbs.base import EntityLike, View, known_id

MAX_QUERY = 8_000
BUDGETS = (60, 32_000)


class Reading(View):
    """What comes out."""

    async def neighbors(
        self, entity: EntityLike, query: str | None = None, k: int = 16, as_of: datetime | None = None
    ) -> list[Neighbor]:
        """The few neighbours worth reading, strongest first, each with what it scored for."""
        if not 1 <= k <= 1000:
            raise InputError(f"k must be in [1, 1000], not {k}")
        request = self._request(entity, query, (), 800, as_of)
        return list(await context_flow.neighbors(self._alive(), request, k))

    async def context(
        self,
        entity: EntityLike,
        query: str | None = None,
        links: Sequence[EntityLike] = (),
        budget_tokens: int = 800,
        as_of: datetime | None = None,
    ) -> CollabMemory:
        """What the neighbours of an entity know; `str()` of it is a block for a prompt."""
        tools = self._alive()
        return await context_flow.context(
            tools, self._core.cache, self._request(entity, query, links, budget_tokens, as_of)
        )

    async def changes(self, entity: EntityLike, since: datetime, until: datetime | None = None) -> list[Changed]:
        """What changed, old and new, in the memories that an entity may read; the newest last.

        These are its own, and those of owners that grant it records. Owners that share only
        facets never appear. A change counts by when it happened, not by when it was told.

        Args:
            entity: Who reads.
            since: Changes after this time.
            until: Changes up to this time; now if left out.
        """
        end = None if until is None else micros(utc(until))
        return await changes_flow.changes(self._alive(), self._scope, Entity.parse(entity), micros(utc(since)), end)

    async def deliver(self, entity: EntityLike, budget_tokens: int = 800, again: bool = False) -> int:
        """Send what `context` says of an entity now to the stores that take derived items.

        Facets that it says no more are taken back. What was attached with `deliver` also gets
        each update when it is made; this brings the rest, and is called from time to time.

        Args:
            entity: Whose context.
            budget_tokens: Of the context, in [60, 32000].
            again: Also what was sent before: the store may have lost it. It has each key once.

        Returns:
            How many items were sent or taken back.

        Raises:
            BackendError: A store did not take an item; the worker tries again.
        """
        tools = self._operator("deliver what is known to the stores of")
        request = self._request(entity, None, (), budget_tokens, None)
        return await offer.offer(tools, self._core.cache, request, again=again)

    async def rank(
        self,
        entity: EntityLike,
        candidates: Sequence[EntityLike],
        instruction: str | None = None,
        as_of: datetime | None = None,
    ) -> Ranking:
        """Order candidates for an entity; each with score, rationale and evidence."""
        request = self._request(entity, instruction, (), 800, as_of)
        wanted = [Entity.parse(candidate) for candidate in candidates]
        tools, cache = self._alive(), self._core.cache
        return await rank_flow.rank(tools, cache, request.scope, request.entity, wanted, request.query)

    async def answer(self, entity: EntityLike, question: str, as_of: datetime | None = None) -> Answer:
        """Answer from what the neighbours of an entity noted, every claim cited; or say that it is not known.

        Without a reasoning model the best lessons are quoted as they are.
        """
        request = self._request(entity, question, (), 800, as_of)
        if request.query is None:
            raise InputError("ask a question, in words")
        return await answer_flow.answer(self._alive(), self._core.cache, request)

    async def explain(self, id: str, depth: int = 8, width: int = 50) -> Lineage:
        """Everything that an item rests on, as a tree over all generations, as far as the reader may know it now.

        Args:
            id: Of a facet, lesson, update, interaction or record.
            depth: Generations at most, 1 to 32.
            width: Sources of one item at most, 1 to 1000; what is left out is counted.
        """
        for name, value, most in (("depth", depth, MAX_DEPTH), ("width", width, MAX_WIDTH)):
            if not 1 <= value <= most:
                raise InputError(f"{name} must be in [1, {most}], not {value}")
        return await explain.explain(self._alive(), self._scope, known_id(id), depth, width)

    async def derived(self, id: str) -> Facet:
        """A derived item by its id, under today's grants."""
        return await explain.shown(self._alive(), self._scope, known_id(id))

    async def injections(
        self, entity: EntityLike | None = None, since: datetime | None = None, limit: int = 1_000
    ) -> list[Injection]:
        """Answers that carried something of others, newest first: who got which items, when, for what.

        Args:
            entity: Whom the answers were made for, or who asked. None: everybody, for the operator;
                a principal sees its own.
            since: Leaves older ones out; none is kept longer than `injection_days`.
            limit: The most to return, 1 to 100,000.

        Raises:
            NotPermittedError: A principal asks for somebody else's.
        """
        if not 1 <= limit <= 100_000:
            raise InputError(f"limit must be in [1, 100000], not {limit}")
        of = None if entity is None else Entity.parse(entity)
        start = None if since is None else utc(since)
        return await received.injections_of(self._alive(), self._scope, of, start, limit)

    async def health(self) -> Health:
        """How the database, the work and every store are doing; down, degraded and empty apart."""
        return await explain.health(self._alive(), self._scope)

    async def models(self, ask: bool = False) -> list[RoleHealth]:
        """Which model answers in which role; with `ask`, also whether it does.

        Args:
            ask: Put one tiny question to each; it is counted and capped like any other.
        """
        return await models_flow.check(self._operator("ask about the models of"), self.tenant, asking=ask)

    async def usage(self, days: int = 1) -> list[Spent]:
        """What this tenant spent on language models: a row per day, role, stage and model, newest first.

        Args:
            days: How many days (UTC) back, today included, 1 to 400.
        """
        tools = self._operator("see the spending of")
        if not 1 <= days <= 400:
            raise InputError(f"days must be in [1, 400], not {days}")
        return list(await models_flow.usage(tools, self.tenant, days))

    async def ping(self) -> None:
        """Whether the database answers; returns nothing, and costs next to nothing.

        Raises:
            StoreError: It does not.
        """
        await ready.ping(self._alive())

    def _request(
        self,
        entity: EntityLike,
        query: str | None,
        links: Sequence[EntityLike],
        budget_tokens: int,
        as_of: datetime | None,
    ) -> Request:
        if not BUDGETS[0] <= budget_tokens <= BUDGETS[1]:
            raise InputError(f"budget_tokens must be in [{BUDGETS[0]}, {BUDGETS[1]}], not {budget_tokens}")
        if query is not None:
            query = checked_text(query).strip()[:MAX_QUERY] or None
        scope = self._scope
        if as_of is not None:
            scope = scope.model_copy(update={"as_of": utc(as_of)})
        return Request(scope, Entity.parse(entity), query, entities(tuple(links)), budget_tokens)


__all__ = ["Reading"]
