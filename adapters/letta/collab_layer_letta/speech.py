"""What people said to agents that several of them use: each one's words are its own memory.

In:   owners, ids of messages.
Out:  records; who said a message is known by the id of an identity, which stands for `user:` and its key.
Never: a guess. A message without the id of an identity of its agent, whatever name stands on it, is nobody's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from collab_layer.types.entity import Entity, MemoryRecord
from collab_layer_letta import mapping
from collab_layer_letta.client import Api, Json
from collab_layer_letta.locks import gathered
from collab_layer_letta.mapping import Agent

WITH = ["agent.identities", "agent.tags"]


class Speech:
    """Reads the conversations of shared agents.

    Args:
        api: The server.
        name: Of the backend, for references.
    """

    def __init__(self, api: Api, name: str) -> None:
        self._api, self._name = api, name

    async def of(self, owner: Entity) -> list[tuple[str, MemoryRecord]]:
        """What an owner said, agent after agent, oldest first; each with a place that sorts so."""
        if owner.kind != mapping.PERSON:
            return []
        rows = await self._api.all("/v1/agents/", identifier_keys=[owner.id], include=WITH)
        shared = sorted((one for one in map(mapping.agent, rows) if one.is_shared), key=lambda one: one.id)
        lists = await gathered(partial(self._said, one, owner) for one in shared)
        return [pair for found in lists for pair in found]

    async def _said(self, agent: Agent, owner: Entity) -> list[tuple[str, MemoryRecord]]:
        found: list[tuple[str, MemoryRecord]] = []
        async for row in self._api.messages(agent.id):
            if agent.people.get(str(row.get("sender_id"))) == owner:
                record = mapping.message_record(self._name, row, owner)
                if record is not None:
                    found.append((f"{agent.id}@{row.get('date')}@{record.ref.id}", record))
        return sorted(found)

    async def read(self, ids: Sequence[str]) -> list[MemoryRecord]:
        """The messages that still exist and that a person said."""
        made = await gathered(partial(self._one, one) for one in ids)
        return [one for one in made if one is not None]

    async def _one(self, id_: str) -> MemoryRecord | None:
        found: list[Json] | None = await self._api.find(f"/v1/messages/{id_}")
        for row in found or ():
            sender = str(row.get("sender_id"))
            identity: Json | None = None
            if mapping.is_id(sender, "identity"):
                identity = await self._api.find(f"/v1/identities/{sender}")
            whose = None if identity is None else mapping.speaker(identity)
            if whose is not None:
                return mapping.message_record(self._name, row, whose)
        return None

    async def speakers(self, agents: Sequence[Agent]) -> set[Entity]:
        """Those who have said something to agents that several use."""
        lists = await gathered(partial(self._heard, one) for one in agents if one.is_shared)
        return set[Entity]().union(*lists)

    async def _heard(self, agent: Agent) -> set[Entity]:
        waited = {one for one in agent.people.values() if one is not None}
        heard = set[Entity]()
        async for whose in self._each(agent):
            heard.add(whose)
            if heard == waited:
                break
        return heard

    async def _each(self, agent: Agent) -> AsyncGenerator[Entity]:
        async for row in self._api.messages(agent.id):
            whose = agent.people.get(str(row.get("sender_id")))
            if whose is not None and mapping.message_record(self._name, row, whose) is not None:
                yield whose


__all__ = ["WITH", "Speech"]
