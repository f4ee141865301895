"""The graph behind the store: asking and telling.

In:   queries and plain values, from any thread and any loop.
Out:  rows as plain dicts; failures as our errors.

Reads go out as `GRAPH.RO_QUERY`: Graphiti's `execute_query` makes a graph that is not there,
and writes the parameters of a query that fails into the log. With `place.py`, `driver.py`
and `embedder.py` this is all that knows Graphiti.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

import redis.exceptions as redis_errors
from graphiti_core.driver.driver import GraphDriver, GraphProvider
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.graph_queries import get_vector_cosine_func_query  # pyright: ignore[reportUnknownVariableType]

from collab_layer.errors import BackendError
from collab_layer_graphiti.driver import SharedFalkorDriver
from collab_layer_graphiti.failures import EMPTY_KEY, failures
from collab_layer_graphiti.loop import LoopThread
from collab_layer_graphiti.place import Place

T = TypeVar("T")
Row = dict[str, Any]
LOG_WAIT_S = 10.0
"""How long an erasure waits for the server to write its own log of queries, which then is cleared."""


class Graph:
    """One graph on one server, through a driver on a thread of its own.

    Args:
        place: Where it is; connected to at the first call.
        store: Name of the backend, for errors.
        timeout_s: For one call, > 0.
    """

    def __init__(self, place: Place, store: str, timeout_s: float) -> None:
        self._place, self._store, self._timeout_s = place, store, timeout_s
        self._thread = LoopThread(store)
        self._driver: GraphDriver | None = None
        self._opening: asyncio.Lock | None = None
        self._indexed = False

    async def ask(self, query: str, **values: Any) -> list[Row]:
        """Read; a graph that does not exist has no rows, and is not made."""
        return await self.away(lambda: self._ask(query, values))

    async def tell(self, query: str, **values: Any) -> list[Row]:
        """Write in one query, which happens as a whole or not at all."""
        return await self.away(lambda: self._tell(query, values))

    async def away(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do something on the driver's thread, within the timeout."""
        with failures(self._store, self._place.where, self._place.graph):
            return await self._thread.run(work, self._timeout_s)

    async def cosine(self) -> str:
        """The provider's expression for how alike a fact and `$vector` are."""
        driver = await self.away(self._opened)
        return get_vector_cosine_func_query("e.fact_embedding", "$vector", driver.provider)

    async def vector(self, value: str) -> str:
        """The provider's expression for storing a list as a vector."""
        driver = await self.away(self._opened)
        return f"vecf32({value})" if driver.provider == GraphProvider.FALKORDB else value

    async def index(self) -> None:
        """Make Graphiti's indices where there are none, before the first write."""
        if not self._indexed:
            await self.away(self._index)
            self._indexed = True

    async def clear_logs(self) -> None:
        """Clear what the server itself noted of queries; their parameters are texts of memories.

        FalkorDB keeps the last 1,000 queries in a stream beside the graph, written late: this
        waits until a query of ours is in it.

        Raises:
            BackendError: The server does not let us.
        """
        with failures(self._store, self._place.where, self._place.graph):
            await self._thread.run(self._clear_logs, self._timeout_s + LOG_WAIT_S)

    async def aclose(self) -> None:
        """Close the driver and end its thread; calling it again does nothing."""
        await self._thread.close(self._close)

    # -- on the driver's loop ------------------------------------------------------------

    async def _opened(self) -> GraphDriver:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._driver is None:
                self._driver = await asyncio.to_thread(self._place.connect)
            return self._driver

    async def _ask(self, query: str, values: Mapping[str, Any]) -> list[Row]:
        driver = await self._opened()
        if not isinstance(driver, FalkorDriver):
            return _plain_rows(await cast("Any", driver).execute_query(query, params=dict(values), routing_="r"))
        try:
            return _rows(await self._graph(driver).ro_query(query, _texts(values)))
        except redis_errors.ResponseError as error:
            if EMPTY_KEY in str(error):
                return []
            raise

    async def _tell(self, query: str, values: Mapping[str, Any]) -> list[Row]:
        driver = await self._opened()
        if not isinstance(driver, FalkorDriver):
            return _plain_rows(await cast("Any", driver).execute_query(query, params=dict(values)))
        return _rows(await self._graph(driver).query(query, _texts(values)))

    def _graph(self, driver: FalkorDriver) -> Any:
        return cast("Any", driver.client).select_graph(self._place.graph)

    async def _index(self) -> None:
        driver = await self._opened()
        if not isinstance(driver, SharedFalkorDriver):
            await driver.build_indices_and_constraints()
            return
        if any(row.get("label") == "RELATES_TO" for row in await self._ask("CALL db.indexes()", {})):
            return  # made by Graphiti; they may be of another kind than ours, and are not ours to change
        for query in driver.index_queries():
            try:
                await self._graph(driver).query(query)
            except redis_errors.ResponseError as error:
                if "already" not in str(error):
                    raise

    async def _clear_logs(self) -> None:
        driver = await self._opened()
        if not isinstance(driver, FalkorDriver):
            return
        send: Any = cast("Any", driver.client).execute_command
        if await self._logs_queries(send):
            log = f"telemetry{{{self._place.graph}}}"
            await self._until_logged(driver, send, log)
            await send("DEL", log)
        await send("GRAPH.SLOWLOG", self._place.graph, "RESET")
        await send("SLOWLOG", "RESET")

    async def _logs_queries(self, send: Any) -> bool:
        found = await send("GRAPH.CONFIG", "GET", "CMD_INFO")
        return bool(found[1]) and found[1] not in ("no", "false", "0")

    async def _until_logged(self, driver: FalkorDriver, send: Any, log: str) -> None:
        last: Sequence[Any] = await send("XREVRANGE", log, "+", "-", "COUNT", 1)
        after = f"({last[0][0]}" if last else "-"
        mark, until = uuid.uuid4().hex, time.monotonic() + LOG_WAIT_S
        await self._graph(driver).ro_query("RETURN $mark", {"mark": mark})
        while time.monotonic() < until:
            entries: Sequence[Any] = await send("XRANGE", log, after, "+")
            if mark in str(entries):
                return
            after = f"({entries[-1][0]}" if entries else after
            await asyncio.sleep(0.05)
        raise BackendError(
            self._store,
            f"nothing was erased, since {self._place.where} did not write its log of queries in time for clearing it; "
            "try again",
        )

    async def _close(self) -> None:
        if self._driver is not None:
            await cast("Any", self._driver).close()


def _texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Times as Graphiti stores them in FalkorDB: ISO 8601 in UTC."""
    return {key: _text(value) for key, value in values.items()}


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return _texts(cast("Mapping[str, Any]", value))
    if isinstance(value, (list, tuple)):
        return [_text(one) for one in cast("Sequence[Any]", value)]
    return value


def _rows(result: Any) -> list[Row]:
    names = [str(column[1]) for column in result.header]
    return [dict(zip(names, row, strict=True)) for row in result.result_set]


def _plain_rows(answer: Any) -> list[Row]:
    return [dict(record) for record in (answer[0] if answer else ())]


__all__ = ["Graph", "Row"]
