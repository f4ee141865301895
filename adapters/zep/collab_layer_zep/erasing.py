"""Remove facts with everything that Zep's interface lets one remove.

In:   edges of a graph.
Out:  what is left, by id: messages of threads, conclusions, episodes that other facts rest on.

A fact's words also stand in the episode that it came from, and may be retold in the summaries
of its two nodes. The words go first and at once, by an update; the rest are tasks, followed to
their end. What was interrupted is done whole by asking again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from collab_layer_zep.client import Api, Json
from collab_layer_zep.mapping import BLANK
from collab_layer_zep.together import each


class Eraser:
    """Removes facts of one project."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def remove(self, graph: str, rows: Sequence[Json], attributes: Mapping[str, Any]) -> list[str]:
        """Remove edges and the episodes that nothing else rests on.

        Args:
            graph: Where they are.
            rows: The edges.
            attributes: What they say until they are gone.

        Returns:
            Episodes that stay, each with the reason.
        """
        said: dict[str, Any] = {"fact": BLANK} | ({"attributes": dict(attributes)} if attributes else {})
        await each(lambda row: self._api.change_edge(graph, str(row["uuid"]), **said), rows)
        return await self._drop(graph, rows)

    async def finish(self, rows: Iterable[Json]) -> None:
        """Delete edges that were blanked before, by somebody who did not get further."""
        for row in rows:
            await self._drop(str(row["graph_uuid"]), [row])

    async def _drop(self, graph: str, rows: Sequence[Json]) -> list[str]:
        gone = {str(row["uuid"]) for row in rows}
        episodes = dict.fromkeys(str(one) for row in rows for one in row.get("episode_uuids") or ())
        left = await each(lambda episode: self._episode(graph, episode, gone), episodes)
        await each(lambda edge: self._api.drop_edge(graph, edge), sorted(gone))
        return [one for some in left for one in some]

    async def erase(self, graph: str, rows: Sequence[Json]) -> list[str]:
        """Remove an owner's facts and what is retold of them; what stays, each with its reason."""
        episodes = {str(one) for row in rows for one in row.get("episode_uuids") or ()}
        retold = [
            f"observation `{one['uuid']}`, which Zep drew from the same episodes"
            async for one in self._api.observations(graph)
            if episodes & {str(episode) for episode in one.get("episode_uuids") or ()}
        ]
        left = await self.remove(graph, rows, {})
        for node in sorted({str(row[end]) for row in rows for end in ("source_node_uuid", "target_node_uuid")}):
            held = await self._api.node(graph, node)
            if held is not None and held.get("summary"):
                await self._api.blank_node(graph, node)
        return [*left, *retold]

    async def _episode(self, graph: str, episode: str, gone: set[str]) -> list[str]:
        others = [row async for row in self._api.all_edges(graph, episodes=[episode]) if str(row["uuid"]) not in gone]
        if others:
            return [f"episode `{episode}`, which {len(others)} other facts rest on"]
        held = await self._api.episode(graph, episode)
        if held is None:
            return []
        await self._api.drop_episode(graph, episode)
        thread = held.get("thread_uuid")
        return [f"a message of thread `{thread}`; delete the thread"] if thread else []


__all__ = ["Eraser"]
