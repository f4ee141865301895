"""What this package adds to the layer: one store. Graphiti is imported when it is opened.

In:   the hook.
Out:  a `BackendSpec`.
"""

from __future__ import annotations

from collab_layer.errors import InputError
from collab_layer.plugins.hookspecs import hookimpl
from collab_layer.plugins.specs import BackendSpec
from collab_layer.ports.backend import Can, MemoryBackend


@hookimpl
def collab_register_backends() -> list[BackendSpec]:
    """Graphiti over FalkorDB, or over Neo4j by the same driver port."""
    return [
        BackendSpec(
            name="graphiti",
            summary="Graphiti 0.31: facts with a time axis, on FalkorDB (Neo4j: not run)",
            can=frozenset({Can.SEARCH, Can.AS_OF, Can.LIST_OWNERS, Can.ERASE, Can.WRITE, Can.DEDUPE, Can.EMBED}),
            open=open_backend,
            distribution="collab-layer-graphiti",
            settings={
                "url": "where the graph is: falkor://localhost:6379, or bolt://localhost:7687",
                "graph": "the FalkorDB graph with all groups, or the Neo4j database; `default_db` if left out",
                "username": "if the server has users",
                "password": "if it wants one",
                "name": "name within the layer, `graphiti` if left out",
                "write": "true: let the layer write derived items, into groups that begin with `collab_for_`",
                "timeout_s": "seconds for one call, 10 if left out",
            },
        )
    ]


async def open_backend(
    *,
    url: str | None = None,
    graph: str = "default_db",
    username: str | None = None,
    password: str | None = None,
    name: str = "graphiti",
    write: bool | str = False,
    timeout_s: float | str = 10.0,
) -> MemoryBackend:
    """Open the store; see the settings above. The server is asked at the first call.

    Raises:
        InputError: No `url`, one of another kind, or a time-out that is no number above 0.
    """
    if url is None:
        raise InputError("say where the graph is: url=falkor://localhost:6379")
    try:
        patience = float(timeout_s)
    except ValueError as error:
        raise InputError(f"timeout_s must be a number of seconds, not {timeout_s!r}") from error
    wanted = write if isinstance(write, bool) else write.lower() in ("1", "true", "yes")

    from collab_layer_graphiti.backend import GraphitiBackend  # imports Graphiti

    return GraphitiBackend(
        url, graph=graph, username=username, password=password, name=name, write=wanted, timeout_s=patience
    )
