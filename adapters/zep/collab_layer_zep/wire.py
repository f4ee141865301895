"""How Zep is asked: one call at a time, bounded, typed when it fails, followed to its end.

In:   methods of the SDK's clients, blocking or awaited.
Out:  plain dicts.

Reads are repeated by the SDK as the client is set up. Writes never are: it takes a conflict
(409) for something to send again. What must not be done twice carries an idempotency key that
follows from what it writes; every write is followed to the end of its task.
"""

from __future__ import annotations

import asyncio
import inspect
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Mapping
from typing import Any, Final, NamedTuple, cast

from collab_layer.errors import BackendTimeoutError
from collab_layer_zep.failures import failures
from collab_layer_zep.refusals import ZepGoneError, ZepTaskError

Json = dict[str, Any]
PAGE: Final = 100
"""Items of one page; Zep allows no more."""
_POLL_S: Final = (0.05, 2.0)
_DONE: Final = frozenset({"succeeded", "partial", "failed"})


class Page(NamedTuple):
    """Some items, and the cursor of the next page; None at the end."""

    rows: list[Json]
    cursor: str | None


class Wire:
    """Calls of one client.

    Args:
        client: A `Zep` or `AsyncZep`.
        name: Of the backend, for errors.
        timeout_s: For one request.
        task_timeout_s: For an asynchronous write to come to its end.
        patient: Reads are repeated as the client is set up; else they are not.
    """

    def __init__(
        self, client: Any, name: str, timeout_s: float, task_timeout_s: float, *, patient: bool = True
    ) -> None:
        self.client, self.name = client, name
        self._task_timeout_s = task_timeout_s
        self._reading: Json = {"timeout": timeout_s} | ({} if patient else {"max_retries": 0})
        self._writing: Json = {"timeout": timeout_s, "max_retries": 0}

    async def find(self, method: Any, *args: Any, **fields: Any) -> Json | None:
        """Read something that may be gone; None if it is."""
        try:
            return plain(await self.ask(method, *args, **fields))
        except ZepGoneError:
            return None

    async def page(self, method: Any, *args: Any, cursor: str | None, **fields: Any) -> Page:
        """One page of a list."""
        page = await self.ask(method, *args, **({} if cursor is None else {"cursor": cursor}), **fields)
        after = getattr(page.response, "next_cursor", None) or None
        return Page([plain(item) for item in page.items or ()], after)

    async def each(self, method: Any, *args: Any, **fields: Any) -> AsyncGenerator[Json]:
        """Every item of a list, page after page."""
        cursor, seen = None, set[str]()
        while True:
            page = await self.page(method, *args, cursor=cursor, page_size=PAGE, **fields)
            for row in page.rows:
                yield row
            cursor = page.cursor
            if cursor is None or cursor in seen:
                return
            seen.add(cursor)

    async def put(self, method: Any, *args: Any, once: str | None = None, **fields: Any) -> Any:
        """Write, and follow the task if there is one. What may be done twice over needs no key.

        Raises:
            ZepTaskError: It came to a bad end.
            BackendTimeoutError: It has not come to any.
        """
        answer = await self.send(method, *args, once=once or fresh(), **fields)
        await self.finish(answer)
        return answer

    async def send(self, method: Any, *args: Any, once: str, **fields: Any) -> Any:
        """Write; its task may be under way yet."""
        return await self._call(method, self._writing, *args, idempotency_key=once, **fields)

    async def finish(self, answer: Any) -> None:
        """Follow an answer's task, if it has one, to its end."""
        task = getattr(answer, "task", None)
        if task is not None and task.uuid_ is not None:
            await self._follow(str(task.uuid_), str(task.status))

    async def gone(self, writing: Awaitable[Any]) -> bool:
        """Whether a write found what it was about; False if that was gone already."""
        try:
            await writing
        except ZepGoneError:
            return False
        return True

    async def ask(self, method: Any, *args: Any, **fields: Any) -> Any:
        """Read."""
        return await self._call(method, self._reading, *args, **fields)

    async def try_once(self, method: Any, *args: Any, **fields: Any) -> Any:
        """Read, without repeating it."""
        return await self._call(method, self._writing, *args, **fields)

    async def _follow(self, task: str, status: str) -> None:
        pause, until = _POLL_S[0], time.monotonic() + self._task_timeout_s
        error: Any = None
        while status not in _DONE:
            if time.monotonic() >= until:
                why = f"task `{task}` is still {status} after {self._task_timeout_s:g} s"
                raise BackendTimeoutError(self.name, why)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _POLL_S[1])
            found = await self.ask(self.client.task.get, task)
            status, error = str(found.status), found.error
        if status != "succeeded":
            code = getattr(error, "code", None)
            raise ZepTaskError(self.name, task, f"ended as {status}" + (f" ({code})" if code else ""))

    async def _call(self, method: Any, options: Json, *args: Any, **fields: Any) -> Any:
        with failures(self.name):
            if inspect.iscoroutinefunction(method):
                return await method(*args, **fields, request_options=options)
            return await asyncio.to_thread(method, *args, **fields, request_options=options)


def fresh() -> str:
    """A key that no other request has."""
    return f"collab-{uuid.uuid4().hex}"


def plain(model: Any) -> Json:
    """A value of the SDK under the names the API uses."""
    return cast("Json", model.model_dump(by_alias=True))


def given(fields: Mapping[str, Any]) -> Json:
    """What is not None."""
    return {key: value for key, value in fields.items() if value is not None}


__all__ = ["PAGE", "Json", "Page", "Wire", "fresh", "given", "plain"]
