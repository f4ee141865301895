"""The signal block of an entity: read what is, decide what is missing, do it, look again.

In:   an entity.
Out:  one read-only block `collab_signal`, attached to every agent that was attached to the
      layer for that entity, with what is known from others; what was done to get there.

Letta has no version to write against, and a turn of an agent writes every block back as it
was when the turn began. The block is therefore nothing but an image of the items: it is
compared, written by id and read again until nothing is left to do. Two workers that do so at
once converge, since whoever writes last looks last.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from collab_layer.errors import BackendError
from collab_layer.types.entity import Entity
from collab_layer_letta import mapping
from collab_layer_letta.client import Api, Json
from collab_layer_letta.items import Items, owner_of
from collab_layer_letta.locks import LoopLocks, gathered
from collab_layer_letta.mapping import Agent
from collab_layer_letta.plan import LABEL, State, Step, plan
from collab_layer_letta.records import WITH
from collab_layer_letta.refusals import LettaConflictError, LettaGoneError
from collab_layer_letta.text import LIMIT, Signal, render

TRIES = 6
"""Rounds of looking and writing before somebody else is taken to keep changing the block."""
PAUSE_S = 0.05
"""Before the second round after a conflict; doubles with each."""
_log = logging.getLogger("collab_layer_letta")


class Settled(NamedTuple):
    """What a settled signal looks like, and what it took.

    Attributes:
        entity: Whose.
        block: Its id; None where no agent is attached.
        done: Of `created`, `written`, `repaired`, `attached`, `recompiled`, `removed`, in order.
        agents: How many agents see it.
        dropped: Notes that did not fit into the block.
        chars: Length of its text.
    """

    entity: Entity
    block: str | None
    done: tuple[str, ...]
    agents: int
    dropped: int
    chars: int


class Round(NamedTuple):
    """What came of settling every entity: how each looks, and why some could not be settled."""

    settled: list[Settled]
    failed: list[BackendError]


class Signals:
    """Keeps the signal blocks of one tenant.

    Args:
        api: The server.
        name: Of the backend, for errors.
        mark: The tag that stands for the tenant.
        items: The derived items of the tenant.
        limit: Characters of a new block; from then on the block's own limit counts.
    """

    def __init__(self, api: Api, name: str, mark: str, items: Items, limit: int = LIMIT) -> None:
        self._api, self._name, self._mark, self._items, self._limit = api, name, mark, items, limit
        self._locks = LoopLocks()

    async def settle(
        self, entity: Entity, *, without: Collection[str] = (), limit: int | None = None, prompts: bool = False
    ) -> Settled:
        """Make the block say what the items say, on every attached agent.

        Args:
            entity: Whose block.
            without: Keys of items that are about to be deleted.
            limit: Characters the block is to have from now on; None keeps them.
            prompts: Look into the compiled prompts even if nothing had to be done.

        Raises:
            LettaConflictError: Somebody else keeps changing the block.
            LabelTakenError: An agent has a block of its own under the label.
            BackendError: The server did not do it; what was done so far is harmless.
        """
        async with self._locks.here(str(entity)):
            done: list[str] = []
            for tried in range(TRIES):
                state = await self._look(entity, without, limit)
                steps = plan(state, entity, self._mark, name=self._name)
                if not steps:
                    done += await self._prompts(state) if done or prompts else []
                    return _settled(entity, state, done)
                try:
                    for step in steps:
                        done.append(await self._do(step))
                except (LettaConflictError, LettaGoneError) as error:
                    _log.info("the signal of `%s` is looked at again (%s)", entity, error.code)
                    await asyncio.sleep(PAUSE_S * 2**tried * (0.5 + random.random()))
            raise LettaConflictError(self._name, f"the signal block of `{entity}` was changed {TRIES} times in a row")

    async def settle_all(self, entities: Collection[Entity] | None = None, *, prompts: bool = False) -> Round:
        """Settle entities, every one of the tenant if None; a failure of one does not keep the others from it.

        What needs nothing costs nothing but its part of three lists and, with `prompts`, one
        request for each agent.

        Raises:
            BackendError: The server cannot even be read.
        """
        out = Round([], [])
        for entity, state in sorted((await self._look_everywhere()).items()):
            if entities is not None and entity not in entities:
                continue
            try:
                out.settled.append(await self._settled(entity, state, prompts=prompts))
            except BackendError as error:
                _log.warning("the signal of `%s` could not be settled: %s", entity, error)
                out.failed.append(error)
        return out

    async def _settled(self, entity: Entity, state: State, *, prompts: bool) -> Settled:
        if plan(state, entity, self._mark, name=self._name):
            return await self.settle(entity, prompts=prompts)
        return _settled(entity, state, await self._prompts(state) if prompts else [])

    async def attached(self) -> list[Agent]:
        """Every agent that is attached to this tenant."""
        rows = await self._api.all("/v1/agents/", tags=[self._mark], include=WITH)
        return [mapping.agent(row) for row in rows]

    async def _look(self, entity: Entity, without: Collection[str], limit: int | None) -> State:
        both: dict[str, Any] = {"tags": [self._mark, mapping.tag_of(entity)], "match_all_tags": True}
        blocks = await self._api.all("/v1/blocks/", label=LABEL, **both)
        agents = [mapping.agent(row) for row in await self._api.all("/v1/agents/", include=WITH, **both)]
        notes = [note for note in await self._items.notes(entity) if note.key not in without]
        held = int(blocks[0].get("limit") or self._limit) if blocks else self._limit
        most = held if limit is None else limit
        return State([one for one in agents if one.entity == entity], blocks, render(notes, most), most)

    async def _look_everywhere(self) -> dict[Entity, State]:
        notes, agents, blocks = await self._items.every(), dict[Entity, list[Agent]](), dict[Entity, list[Json]]()
        for one in await self.attached():
            agents.setdefault(one.entity, []).append(one)
        for row in await self._api.all("/v1/blocks/", label=LABEL, tags=[self._mark]):
            blocks.setdefault(owner_of(row), []).append(row)
        out: dict[Entity, State] = {}
        for entity in agents.keys() | blocks.keys():
            held = blocks.get(entity, [])
            most = int(held[0].get("limit") or self._limit) if held else self._limit
            out[entity] = State(agents.get(entity, []), held, render(notes.get(entity, []), most), most)
        return out

    async def _do(self, step: Step) -> str:
        if step.verb == "delete":
            await self._api.delete(step.path)
        elif step.verb == "post":
            await self._api.post(step.path, step.body)
        else:
            await self._api.patch(step.path, step.body)
        return step.what

    async def _prompts(self, state: State) -> list[str]:
        """Compile the prompts again that do not hold the block as it is."""
        stale = await gathered(partial(self._is_stale, one, state.signal) for one in state.agents)
        old = [one for one, is_stale in zip(state.agents, stale, strict=True) if is_stale]
        await gathered(partial(self._recompile, one.id) for one in old)
        return ["recompiled"] if old else []

    async def _is_stale(self, agent: Agent, signal: Signal) -> bool:
        prompt = await prompt_of(self._api, agent)
        return prompt is not None and bool(signal.text) and signal.mark not in prompt

    async def _recompile(self, agent: str) -> None:
        try:
            await self._api.post(f"/v1/agents/{agent}/recompile")
        except LettaGoneError:
            _log.info("agent `%s` was deleted meanwhile", agent)


def _settled(entity: Entity, state: State, done: Sequence[str]) -> Settled:
    block = str(state.blocks[0]["id"]) if state.blocks else None
    told = tuple(dict.fromkeys(done))
    if state.signal.dropped and state.agents:
        _log.info("%d notes do not fit into the signal block of `%s`", state.signal.dropped, entity)
    return Settled(entity, block, told, len(state.agents), state.signal.dropped, len(state.signal.text))


async def prompt_of(api: Api, agent: Agent) -> str | None:
    """The compiled prompt of an agent as Letta keeps it; None where there is none to read."""
    if agent.message is None:
        return None
    found: Any = await api.find(f"/v1/messages/{agent.message}")
    listed = cast("list[Json]", found if isinstance(found, list) else [found or {}])
    texts = [mapping.said(row.get("content")) for row in listed if row.get("message_type") == "system_message"]
    return "\n".join(texts) if texts else None


__all__ = ["TRIES", "Round", "Settled", "Signals", "prompt_of"]
