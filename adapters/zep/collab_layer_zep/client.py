"""What the store asks of Zep, by the SDK: the only module that knows its methods.

In:   a `Zep` or `AsyncZep`, and plain values.
Out:  plain dicts; failures as our errors, without any text of a memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from importlib import metadata
from typing import Any, Final

from collab_layer_zep.versions import check_address, check_sdk

check_sdk(metadata.version("zep-cloud"))  # before anything is imported that v3 does not have

from zep_cloud import AsyncZep, EdgeInput, EdgeType, NodeInput, Zep  # noqa: E402
from zep_cloud.core.api_error import ApiError  # noqa: E402
from zep_cloud.graph.client import AsyncGraphClient, GraphClient  # noqa: E402
from zep_cloud.thread.client import AsyncThreadClient, ThreadClient  # noqa: E402
from zep_cloud.types import Edge, EdgeListFilters, EdgeSearchFilters, EpisodeListFilters  # noqa: E402

from collab_layer.errors import InputError  # noqa: E402
from collab_layer_zep.refusals import ZepTaskError  # noqa: E402
from collab_layer_zep.times import Condition  # noqa: E402
from collab_layer_zep.wire import PAGE, Json, Page, Wire, fresh, given, plain  # noqa: E402

SEARCH_PAGE: Final = 50
MAX_QUERY: Final = 400
"""Characters of a search."""
VISIBLE_S: Final = (0.1, 0.4, 1.5)
"""How long what was stored may take to be seen, before it is taken to be missing."""


def made(api_key: str | None, base_url: str | None) -> Any:
    """A client; a key that is left out is read from `ZEP_API_KEY` by the SDK.

    Raises:
        InputError: No key is known.
        ZepVersionError: The address is that of the v3 API.
    """
    try:
        return Zep(api_key=api_key, base_url=base_url)
    except ApiError as error:
        raise InputError("Zep wants a key: pass `api_key`, or set ZEP_API_KEY") from error


class Api(Wire):
    """One Zep project.

    Args:
        client: As made by the user.
        name: Of the backend, for errors.
        timeout_s: For one request.
        task_timeout_s: For an asynchronous write to come to its end.
        patient: Reads are repeated as the client is set up; else they are not.

    Raises:
        InputError: Another kind of object.
        ZepVersionError: A client of the v3 API.
    """

    def __init__(
        self, client: Any, name: str, timeout_s: float, task_timeout_s: float, *, patient: bool = True
    ) -> None:
        if not isinstance(client, (Zep, AsyncZep)):
            raise InputError(f"{type(client).__name__} is none of zep_cloud's Zep, AsyncZep")
        check_address(name, address_of(client))
        super().__init__(client, name, timeout_s, task_timeout_s, patient=patient)

    @property
    def is_async(self) -> bool:
        """Whether the client is awaited, and so belongs to one event loop."""
        return isinstance(self.client, AsyncZep)

    # -- who is there ------------------------------------------------------------------------

    async def user_named(self, user_id: str) -> Json | None:
        """A user by its `user_id`."""
        return await self.find(self.client.user.lookup, user_id=user_id)

    async def user(self, uuid: str) -> Json | None:
        """A user by uuid."""
        return await self.find(self.client.user.get, uuid)

    async def thread(self, uuid: str) -> Json | None:
        """A thread by uuid."""
        return await self.find(self.client.thread.get, uuid)

    async def graph(self, uuid: str) -> Json | None:
        """A graph by its uuid, or by that of its user."""
        return await self.find(self.client.graph.get, uuid)

    def users(self) -> AsyncGenerator[Json]:
        """Every user."""
        return self.each(self.client.user.list)

    async def last_words(self, thread: str, messages: int) -> list[str]:
        """What was said last in a thread, the newest first."""
        page = await self.page(self.client.thread.list_messages, thread, cursor=None, page_size=messages, order="desc")
        return [str(row.get("content") or "") for row in page.rows]

    def graphs(self, search: str | None = None) -> AsyncGenerator[Json]:
        """Every graph, or those that have a text in their name, id or description."""
        return self.each(self.client.graph.list, **({} if search is None else {"search": search}))

    async def some(self, kind: str) -> int:
        """How many `user`s or `graph`s there are, as far as Zep says it; 0 if there is none."""
        page = await self.try_once(getattr(self.client, kind).list, page_size=1)
        rows = list(page.items or ())
        return max(len(rows), getattr(page.response, "total_size", None) or 0)

    # -- facts ---------------------------------------------------------------------------------

    async def edges(self, graph: str, cursor: str | None = None, **filters: Any) -> Page:
        """One page of a graph's edges by uuid; see `conditions` for filters."""
        asked = {
            "page_size": PAGE,
            "order_by": "uuid",
            "order": "asc",
            "filters": conditions(EdgeListFilters, **filters),
        }
        return await self.page(self.client.graph.edge.list, graph, cursor=cursor, **given(asked))

    def all_edges(self, graph: str, **filters: Any) -> AsyncGenerator[Json]:
        """Every edge of a graph."""
        return self.each(
            self.client.graph.edge.list, graph, **given({"filters": conditions(EdgeListFilters, **filters)})
        )

    async def search(self, graph: str, query: str, cursor: str | None = None, **filters: Any) -> Page:
        """One page of what Zep finds, best first."""
        asked = {
            "query": query[:MAX_QUERY],
            "page_size": SEARCH_PAGE,
            "filters": conditions(EdgeSearchFilters, **filters),
        }
        return await self.page(self.client.graph.search_edges, graph, cursor=cursor, **given(asked))

    async def add_edges(self, graph: str, edges: Sequence[Json], once: str) -> list[Json]:
        """Add at most 100 edges as they are, without a language model, and wait until they are stored.

        A task that came to a bad end may be that of an earlier request with the same key: then
        they are sent once more, under a new one. What is stored of a part is taken out again.

        Raises:
            ZepTaskError: They were not stored.
        """
        sent = [EdgeInput.model_validate(edge) for edge in edges]
        for key in (once, fresh()):
            answer = await self.send(self.client.graph.edge.add, graph, edges=sent, deduplicate=False, once=key)
            added = [plain(edge) for edge in answer.edges or ()]
            try:
                await self.finish(answer)
                break
            except ZepTaskError:
                for edge in added:
                    await self.drop_edge(graph, str(edge["uuid"]))
                if key != once:
                    raise
        return added

    async def edge(self, graph: str, edge: str) -> Json | None:
        """An edge by uuid."""
        return await self.find(self.client.graph.edge.get, graph, edge)

    async def change_edge(self, graph: str, edge: str, **fields: Any) -> bool:
        """Change a fact's words or merge attributes, None removes one; False if it is gone."""
        return await self.gone(self.put(self.client.graph.edge.update, graph, edge, **fields))

    async def drop_edge(self, graph: str, edge: str) -> bool:
        """Delete a fact and wait until it is; False if it was gone."""
        return await self.gone(self.put(self.client.graph.edge.delete, graph, edge))

    # -- nodes, episodes, what is retold ---------------------------------------------------------

    def nodes(self, graph: str) -> AsyncGenerator[Json]:
        """Every node of a graph."""
        return self.each(self.client.graph.node.list, graph)

    async def node(self, graph: str, node: str) -> Json | None:
        """A node by uuid."""
        return await self.find(self.client.graph.node.get, graph, node)

    async def node_named(self, graph: str, name: str) -> str | None:
        """The uuid of a node that has exactly a name, among those that Zep finds first."""
        page = await self.page(
            self.client.graph.search_nodes, graph, query=name[:MAX_QUERY], page_size=SEARCH_PAGE, cursor=None
        )
        return min((str(row["uuid"]) for row in page.rows if row.get("name") == name), default=None)

    async def node_of_user(self, user: str) -> str | None:
        """The uuid of the node that stands for a user in its graph."""
        row = await self.find(self.client.user.get_node, user)
        return None if row is None else str(row["uuid"])

    async def drop_node(self, graph: str, node: str) -> bool:
        """Delete a node with its edges; False if it was gone."""
        return await self.gone(self.put(self.client.graph.node.delete, graph, node))

    async def add_nodes(self, graph: str, names: Sequence[str]) -> dict[str, str]:
        """Add nodes; their uuids by name."""
        sent = [NodeInput(name=name) for name in names]
        added = await self.put(self.client.graph.node.add, graph, nodes=sent)
        return {name: str(one.uuid_) for name, one in zip(names, added.nodes or (), strict=True)}

    async def blank_node(self, graph: str, node: str) -> bool:
        """Empty a node's summary; False if it is gone."""
        return await self.gone(self.put(self.client.graph.node.update, graph, node, summary=""))

    async def episode(self, graph: str, episode: str) -> Json | None:
        """An episode by uuid."""
        return await self.find(self.client.graph.episode.get, graph, episode)

    def episodes(self, graph: str, episodes: Sequence[str]) -> AsyncGenerator[Json]:
        """At most 256 episodes by uuid; those that are gone are left out."""
        filters = EpisodeListFilters(mentioned_node_uuids=list(episodes))
        return self.each(self.client.graph.episode.list, graph, filters=filters)

    async def drop_episode(self, graph: str, episode: str) -> bool:
        """Delete an episode with the facts that rest on nothing else; False if it was gone."""
        return await self.gone(self.put(self.client.graph.episode.delete, graph, episode))

    def observations(self, graph: str) -> AsyncGenerator[Json]:
        """What Zep concluded from a graph's episodes."""
        return self.each(self.client.graph.observation.list, graph)

    # -- reserved graphs ---------------------------------------------------------------------------

    async def make_graph(self, name: str, description: str, once: str) -> str:
        """Make a standalone graph; its uuid."""
        return str((await self.put(self.client.graph.create, name=name, description=description, once=once)).uuid_)

    async def set_edge_types(self, graph: str, types: Sequence[Json]) -> None:
        """Say which edges, with which attributes, a graph takes."""
        sent = [EdgeType.model_validate(one) for one in types]
        await self.put(self.client.graph.set_ontology, graph, edge_types=sent, entity_types=[])

    async def drop_graph(self, graph: str) -> bool:
        """Delete a graph with all in it and wait until it is; False if it was gone."""
        return await self.gone(self.put(self.client.graph.delete, graph))

    # -- groups --------------------------------------------------------------------------------------

    def groups(self) -> AsyncGenerator[Json]:
        """Every managed user group."""
        return self.each(self.client.user_group.list)

    def members(self, group: str) -> AsyncGenerator[Json]:
        """The users of a group."""
        return self.each(self.client.user_group.list_members, group)


def conditions(
    kind: type[EdgeListFilters | EdgeSearchFilters],
    *,
    at: Sequence[Sequence[Condition]] = (),
    edges: Sequence[str] = (),
    episodes: Sequence[str] = (),
) -> Any:
    """The filters of a list or a search of edges; None where there are none.

    Args:
        kind: The type to make.
        at: Any of these groups of conditions on times, all of each.
        edges: Only these, by uuid.
        episodes: Only those that rest on any of these.
    """
    said: Json = {}
    if at:
        groups = [
            {"all_of": [given({"field": field, "operator": op, "value": value}) for field, op, value in group]}
            for group in at
        ]
        said["date_filters"] = {"any_of": groups}
    if edges:
        said["edge_uuids"] = list(edges)
    if episodes:
        said["episode_uuids"] = list(episodes)
    return kind.model_validate(said) if said else None


def edge_of(**fields: Any) -> Edge:
    """An edge in the SDK's own shape."""
    return Edge.model_validate(fields)


def address_of(client: Any) -> str:
    """The address a client talks to; empty where it does not say."""
    wrapper: Any = getattr(client, "_client_wrapper", None)
    return str(wrapper.get_base_url()) if hasattr(wrapper, "get_base_url") else ""


__all__ = [
    "MAX_QUERY",
    "PAGE",
    "Api",
    "AsyncGraphClient",
    "AsyncThreadClient",
    "AsyncZep",
    "GraphClient",
    "Json",
    "Page",
    "VISIBLE_S",
    "ThreadClient",
    "Zep",
    "address_of",
    "conditions",
    "edge_of",
    "made",
]
