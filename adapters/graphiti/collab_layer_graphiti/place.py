"""Where a graph is, and how a driver for it is made.

In:   a URL, a name, a password.
Out:  a `Place`; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from falkordb.asyncio import FalkorDB
from graphiti_core.driver.driver import GraphDriver
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff

from collab_layer.errors import InputError
from collab_layer_graphiti.driver import SharedFalkorDriver

Connect = Callable[[], GraphDriver]
"""Makes a driver; called on a thread without a loop, so that Graphiti schedules no index build."""
_FALKOR = ("falkor", "falkors", "redis", "rediss")
_NEO4J = ("bolt", "neo4j")


class Place(NamedTuple):
    """Where a graph is.

    Attributes:
        connect: Makes the driver.
        where: As it is named in errors.
        graph: The FalkorDB graph, or the Neo4j database.
    """

    connect: Connect
    where: str
    graph: str


def place(
    url: str, *, graph: str, username: str | None = None, password: str | None = None, timeout_s: float = 10.0
) -> Place:
    """Where a graph is, from a URL.

    Args:
        url: `falkor://host:port`, `falkors://…` with TLS, `redis://…`, or `bolt://…` and `neo4j://…`.
        graph: The FalkorDB graph, or the Neo4j database.
        username: If it is not in the URL.
        password: If it is not in the URL.
        timeout_s: For connecting and for one answer, > 0.

    Raises:
        InputError: A URL of another kind.
    """
    parts = urlsplit(url)
    kind, port = parts.scheme.partition("+")[0], _port(parts)
    if kind not in (*_FALKOR, *_NEO4J) or not parts.hostname:
        raise InputError("the URL is no place of a graph; write for example falkor://localhost:6379")
    user = username or unquote(parts.username or "") or None
    secret = password or unquote(parts.password or "") or None
    if kind in _NEO4J:
        where = f"{parts.scheme}://{parts.hostname}:{port or 7687}"
        return Place(lambda: Neo4jDriver(where, user, secret, database=graph), where, graph)
    told: dict[str, Any] = {"host": parts.hostname, "port": port or 6379, "username": user, "password": secret}
    told |= {"ssl": kind.endswith("s") and kind != "redis", "socket_timeout": timeout_s}
    told |= {"socket_connect_timeout": timeout_s}
    return Place(lambda: _falkor(told, graph), f"{parts.hostname}:{port or 6379}", graph)


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError as error:
        raise InputError("the URL has a port that is none; write for example falkor://localhost:6379") from error


def _falkor(told: dict[str, Any], graph: str) -> GraphDriver:
    make: Any = FalkorDB
    client = make(**told)
    client.connection.set_retry(Retry(ConstantBackoff(0.05), 1))  # a connection that a restart broke
    return SharedFalkorDriver(falkor_db=client, database=graph)


__all__ = ["Connect", "Place", "place"]
