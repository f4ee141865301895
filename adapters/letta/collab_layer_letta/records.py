"""An owner's memories in Letta: the blocks of its agents, what they archived, what it said to shared ones.

In:   owners and references.
Out:  records; what several agents share is told once, as the oldest agent's.

Letta has no read by passage id and no change feed. A passage is looked for among the newest
ones of its archive first, then among all.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from collab_layer.ports.backend import Page
from collab_layer.types.entity import Entity, MemoryRecord
from collab_layer_letta import mapping
from collab_layer_letta.client import PASSAGES, Api, Json
from collab_layer_letta.locks import gathered
from collab_layer_letta.mapping import Agent
from collab_layer_letta.refusals import LettaGoneError
from collab_layer_letta.speech import WITH as WHO
from collab_layer_letta.speech import Speech

WITH = ["agent.blocks", *WHO]
MANY = 1000
"""Agents of one block or archive that are looked at."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A place for passages, the agents that have it, oldest first."""

    id: str
    agents: tuple[Agent, ...]


class Records:
    """Reads what agents remember.

    Args:
        api: The server.
        name: Of the backend, for references.
    """

    def __init__(self, api: Api, name: str) -> None:
        self._api, self._name, self.speech = api, name, Speech(api, name)

    # -- agents ------------------------------------------------------------------------

    async def agents_of(self, owner: Entity) -> list[Agent]:
        """The agents of an owner with their blocks, oldest first."""
        rows = await self._api.all("/v1/agents/", tags=[mapping.tag_of(owner)], include=WITH)
        own = mapping.own_agent(owner)
        if own is not None:
            row = await self._api.find(f"/v1/agents/{own}", include=WITH)
            rows += [] if row is None else [row]
        found = {one.id: one for one in map(mapping.agent, rows) if one.entity == owner}
        return sorted(found.values(), key=lambda one: one.age)

    async def _holding(self, path: str) -> tuple[Agent, ...]:
        """The agents that have a block or an archive; none if it is gone."""
        rows: list[Json] | None = await self._api.find(path, limit=MANY, order="asc", include=WHO)
        return tuple(sorted((mapping.agent(one) for one in rows or ()), key=lambda one: one.age))

    # -- by owner ----------------------------------------------------------------------

    async def page(self, owner: Entity, after: str | None, limit: int) -> Page:
        """Blocks by id, then passages by archive and age, then messages; `after` is a record's place in that order."""
        found: list[tuple[str, MemoryRecord]] = []
        if after is None or not after.startswith("agent-"):
            found = await self._kept(owner, after, limit)
        if len(found) <= limit:
            begin = after if after is not None and after.startswith("agent-") else ""
            found += [one for one in await self.speech.of(owner) if one[0] > begin]
        return Page([one for _, one in found[:limit]], found[limit - 1][0] if len(found) > limit else None)

    async def _kept(self, owner: Entity, after: str | None, limit: int) -> list[tuple[str, MemoryRecord]]:
        """Blocks and passages behind the cursor, one more than asked for if there are so many."""
        agents = await self.agents_of(owner)
        found: list[tuple[str, MemoryRecord]] = []
        if after is None or "/" not in after:
            found = [
                (one.ref.id, one) for one in await self._blocks(owner, agents) if after is None or one.ref.id > after
            ]
        for archive in await self._archives(owner, agents) if len(found) <= limit else ():
            found += await self._archived(archive, after, limit + 1 - len(found))
            if len(found) > limit:
                break
        return found

    async def _blocks(self, owner: Entity, agents: Sequence[Agent]) -> list[MemoryRecord]:
        own = {str(row["id"]): row for one in agents for row in one.blocks if not mapping.is_ours(row.get("label"))}
        if not own:
            return []
        many = await self._api.all("/v1/blocks/", connected_to_agents_count_gt=1)
        several = [str(row["id"]) for row in many if str(row["id"]) in own]
        lists = await gathered(partial(self._holding, f"/v1/blocks/{one}/agents") for one in several)
        shared = dict(zip(several, lists, strict=True))
        made = [
            mapping.block_record(self._name, row, shared.get(id_) or _having(agents, id_))
            for id_, row in sorted(own.items())
        ]
        return [one for one in made if one is not None and one.owner == owner]

    async def _archives(self, owner: Entity, agents: Sequence[Agent]) -> list[Archive]:
        """The archives of an owner's agents that are the owner's, by id."""
        lists = await gathered(partial(self._archives_of, one.id) for one in agents)
        ids = sorted({str(row["id"]) for rows in lists for row in rows})
        found = await gathered(partial(self._archive, one) for one in ids)
        return [one for one in found if one.agents and one.agents[0].entity == owner]

    async def _archives_of(self, agent: str) -> list[Json]:
        try:
            return await self._api.all("/v1/archives/", agent_id=agent)
        except LettaGoneError:  # deleted since it was listed
            return []

    async def _archive(self, id_: str) -> Archive:
        return Archive(id_, await self._holding(f"/v1/archives/{id_}/agents"))

    async def _archived(self, archive: Archive, after: str | None, most: int) -> list[tuple[str, MemoryRecord]]:
        """Records of an archive behind the cursor, each with the cursor that stands on it."""
        place, _, time = (after or "").partition("@")
        reached = mapping.split_passage(place)
        if reached is not None and reached[0] > archive.id:
            return []
        begin = reached[1] if reached is not None and reached[0] == archive.id else None
        behind = (mapping.moment(time), begin) if begin is not None else None
        if begin is not None and not await self._is_there(archive, begin):
            begin = None  # it was deleted: the server would answer with nothing, so that we skip by time
        out: list[tuple[str, MemoryRecord]] = []
        async for row in self._rows(archive, begin):
            record = mapping.passage_record(self._name, row, archive.agents)
            if record is not None and (behind is None or _age(row) > behind):
                out.append((f"{record.ref.id}@{row.get('created_at')}", record))
            if len(out) >= most:
                break
        return out

    async def _is_there(self, archive: Archive, passage: str) -> bool:
        through = archive.agents[0].id
        if await self._api.passages(through, after=passage, limit=1):
            return True
        newest = await self._api.passages(through, limit=1, newest=True)
        return bool(newest) and newest[0]["id"] == passage

    async def _rows(self, archive: Archive, after: str | None) -> AsyncGenerator[Json]:
        while True:
            rows = await self._api.passages(archive.agents[0].id, after=after)
            for row in rows:
                if row.get("archive_id") == archive.id:
                    yield row
            if len(rows) < PASSAGES:
                return
            after = rows[-1]["id"]

    # -- by reference ------------------------------------------------------------------

    async def read(self, natives: Iterable[str]) -> list[MemoryRecord]:
        """The records that still exist, by native id."""
        wanted = list(dict.fromkeys(natives))
        blocks = [one for one in wanted if mapping.is_id(one, "block")]
        archives: dict[str, set[str]] = {}
        for archive, passage in (pair for one in wanted if (pair := mapping.split_passage(one)) is not None):
            archives.setdefault(archive, set()).add(passage)
        made = await gathered(partial(self._block, one) for one in blocks)
        lists = await gathered(partial(self._passages, id_, ids) for id_, ids in archives.items())
        lists.append(await self.speech.read([one for one in wanted if mapping.is_id(one, "message")]))
        return [one for one in (*made, *(record for found in lists for record in found)) if one is not None]

    async def _block(self, id_: str) -> MemoryRecord | None:
        row = await self._api.find(f"/v1/blocks/{id_}")
        if row is None or mapping.is_ours(row.get("label")):
            return None
        return mapping.block_record(self._name, row, await self._holding(f"/v1/blocks/{id_}/agents"))

    async def _passages(self, archive_id: str, ids: set[str]) -> list[MemoryRecord]:
        archive = await self._archive(archive_id)
        if not archive.agents:
            return []
        newest = await self._api.passages(archive.agents[0].id, newest=True)
        found = {row["id"]: row for row in newest if row["id"] in ids}
        if len(found) < len(ids) and len(newest) >= PASSAGES:
            async for row in self._rows(archive, None):
                if row["id"] in ids:
                    found[row["id"]] = row
                if len(found) == len(ids):
                    break
        made = [mapping.passage_record(self._name, row, archive.agents) for row in found.values()]
        return [one for one in made if one is not None]

    # -- by query ----------------------------------------------------------------------

    async def search(self, owner: Entity, query: str, k: int) -> list[MemoryRecord]:
        """The best blocks and messages by shared words and the best passages by Letta's vectors, merged by rank.

        Letta's search gives no scores, so that a score here is 1 / (1 + rank) in its own list.
        """
        agents = await self.agents_of(owner)
        spoken = [record for _, record in await self.speech.of(owner)]
        worded = _by_words([*await self._blocks(owner, agents), *spoken], query)[:k]
        lists = await gathered(
            partial(self._nearest, one, query, k) for one in await self._archives(owner, agents) if k > 0
        )
        ranked = [
            one.model_copy(update={"score": 1 / (1 + rank)})
            for found in (worded, *lists)
            for rank, one in enumerate(found)
        ]
        return sorted(ranked, key=lambda one: (-(one.score or 0.0), one.ref.id))[:k]

    async def _nearest(self, archive: Archive, query: str, k: int) -> list[MemoryRecord]:
        through = archive.agents[0].id
        answer: Json = await self._api.get(f"/v1/agents/{through}/archival-memory/search", query=query, top_k=k)
        rows = [{**row, "archive_id": archive.id} for row in answer.get("results") or ()]
        made = [mapping.passage_record(self._name, row, archive.agents) for row in rows]
        return [one for one in made if one is not None]

    # -- owners ------------------------------------------------------------------------

    async def owners(self) -> list[Entity]:
        """Every owner with a block that says something, with a passage, or with words to a shared agent."""
        agents = [mapping.agent(row) for row in await self._api.all("/v1/agents/", include=WITH)]
        having: dict[str, list[Agent]] = {}
        rows: dict[str, Any] = {}
        for one in agents:
            for row in one.blocks:
                having.setdefault(str(row["id"]), []).append(one)
                rows[str(row["id"])] = row
        made = [mapping.block_record(self._name, rows[id_], those) for id_, those in having.items()]
        found = {one.owner for one in made if one is not None}
        rest = [one for one in agents if one.entity not in found]
        for owner in await gathered(partial(self._archiver, one) for one in rest):
            found |= owner
        return sorted(found | await self.speech.speakers(agents))

    async def _archiver(self, agent: Agent) -> set[Entity]:
        """Whose the archive of an agent is, if there is anything in it."""
        first = await self._api.passages(agent.id, limit=1)
        if not first:
            return set()
        archive = await self._archive(str(first[0]["archive_id"]))
        return {archive.agents[0].entity} if archive.agents else set()

    async def any(self) -> bool:
        """Whether any agent remembers anything; looks no further than the first that does."""
        async for row in self._api.each("/v1/agents/", include=WITH):
            one = mapping.agent(row)
            said = (mapping.block_record(self._name, block, [one]) for block in one.blocks)
            if any(record is not None for record in said) or await self._api.passages(one.id, limit=1):
                return True
        return False


def _having(agents: Sequence[Agent], block: str) -> list[Agent]:
    return [one for one in agents if any(row["id"] == block for row in one.blocks)]


def _age(row: Json) -> tuple[Any, str]:
    return mapping.moment(row.get("created_at")), str(row["id"])


def _by_words(records: Sequence[MemoryRecord], query: str) -> list[MemoryRecord]:
    asked = mapping.words(query)
    shared = {one.ref.id: len(asked & mapping.words(one.text)) for one in records}
    return sorted((one for one in records if shared[one.ref.id]), key=lambda one: (-shared[one.ref.id], one.ref.id))


__all__ = ["WITH", "Archive", "Records"]
