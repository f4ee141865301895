"""Remove facts with everything they were taken from and retold in.

In:   ids of owners' facts.
Out:  how many there were.

Graphiti keeps a fact's words in the episode it came from, in summaries of nodes, communities
and sagas, and FalkorDB keeps them in its log of queries. Episodes that other facts rest on
stay, without their words; summaries are blanked, and Graphiti writes them anew when it next
hears of the node. The facts themselves go last, and no query of ours has a text in it: what was
interrupted is done whole by asking again.
"""

from __future__ import annotations

from collections.abc import Sequence

from collab_layer_graphiti import cypher
from collab_layer_graphiti.client import Graph, Row
from collab_layer_graphiti.mapping import DERIVED_PREFIX


async def erase_facts(graph: Graph, ids: Sequence[str]) -> int:
    """Erase facts by id; derived ones are not touched, `retract` takes them."""
    rows = [row for row in await graph.ask(cypher.TO_ERASE, ids=list(ids)) if _own(row)]
    if not rows:
        return 0
    gone = sorted({str(row["uuid"]) for row in rows})
    nodes = {str(row[end]) for row in rows for end in ("source", "target")}
    for group in sorted({str(row["group_id"]) for row in rows}):
        nodes |= await _episodes(graph, group, [row for row in rows if row["group_id"] == group], gone)
    for query in (cypher.BLANK_COMMUNITIES, cypher.BLANK_NODES):
        await graph.tell(query, nodes=sorted(nodes))
    await graph.clear_logs()
    await graph.tell(cypher.DROP_FACTS, ids=gone)
    await graph.tell(cypher.DROP_NODES, nodes=sorted(nodes))
    return len(gone)


async def _episodes(graph: Graph, group: str, rows: Sequence[Row], gone: Sequence[str]) -> set[str]:
    """Drop or blank the episodes behind facts; the nodes that those spoke of."""
    episodes = sorted({str(one) for row in rows for one in row["episodes"] or ()})
    if not episodes:
        return set()
    others = await graph.ask(cypher.SAID_BY_OTHERS, episodes=episodes, group=group, ids=list(gone))
    kept = {row["episode"] for row in others}
    nodes = {str(row["node"]) for row in await graph.ask(cypher.MENTIONED, episodes=episodes)}
    await graph.tell(cypher.BLANK_SAGAS, episodes=episodes)
    await graph.tell(cypher.BLANK_EPISODES, episodes=[one for one in episodes if one in kept])
    await graph.tell(cypher.DROP_EPISODES, episodes=[one for one in episodes if one not in kept])
    return nodes


def _own(row: Row) -> bool:
    return not str(row["group_id"]).startswith(DERIVED_PREFIX)


__all__ = ["erase_facts"]
