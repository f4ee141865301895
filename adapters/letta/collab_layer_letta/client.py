"""The only module that imports letta-client; its blocking calls are moved to threads.

In:   a `Letta` or `AsyncLetta`, and paths of the REST API.
Out:  plain dicts and lists; failures as our errors, without any text of a memory.

The client's own methods moved between 1.7 and 1.12 (`agents.recompile` and
`messages.retrieve` came, others went), so that all but the registration of the tool goes
through its raw verbs: one connection, key, project, timeout and retry policy, no drift.
Writes are never repeated by the client: it takes a conflict (409) for something to send again.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import letta_client
from letta_client import AsyncLetta, Letta

from collab_layer.errors import BackendDownError, BackendError, BackendTimeoutError, InputError
from collab_layer_letta.refusals import (
    LettaAuthError,
    LettaBusyError,
    LettaConflictError,
    LettaGoneError,
    LettaRejectedError,
)

Client = Letta | AsyncLetta
Json = dict[str, Any]
PAGE = 100
PASSAGES = 50
"""Per page: each passage comes with its vector of 4,096 numbers."""


def made(base_url: str | None, api_key: str | None) -> Letta:
    """A client; what is left out is read from `LETTA_BASE_URL` and `LETTA_API_KEY` by the SDK.

    Raises:
        InputError: Neither an address nor a key is known.
    """
    try:
        return Letta(base_url=base_url, api_key=api_key)
    except letta_client.LettaError as error:
        raise InputError(f"the Letta client cannot be made: {error}") from error


class Api:
    """One Letta server, with one method per verb.

    Args:
        client: As made by the user.
        name: Of the backend, for errors.

    Raises:
        InputError: Another kind of object.
    """

    def __init__(self, client: Any, name: str) -> None:
        if not isinstance(client, (Letta, AsyncLetta)):
            raise InputError(f"{type(client).__name__} is none of letta_client's Letta, AsyncLetta")
        self._reads, self._writes, self._name = client, client.with_options(max_retries=0), name

    @property
    def is_async(self) -> bool:
        """Whether the client is awaited, and so belongs to one event loop."""
        return isinstance(self._reads, AsyncLetta)

    async def get(self, path: str, **params: Any) -> Any:
        """Read something.

        Raises:
            BackendDownError: What answers is no Letta server.
        """
        answer: Any = await self._call(self._reads.get, path, cast_to=object, options={"params": params})
        if not isinstance(answer, (dict, list)):
            raise BackendDownError(self._name, f"GET {path} is not answered with JSON; is that a Letta server?")
        return cast("Any", answer)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Make something."""
        return await self._call(self._writes.post, path, cast_to=object, body=dict(body or {}))

    async def patch(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Change something."""
        return await self._call(self._writes.patch, path, cast_to=object, body=dict(body or {}))

    async def delete(self, path: str) -> bool:
        """Remove something; False if it was gone already."""
        try:
            await self._call(self._writes.delete, path, cast_to=type(None))
        except LettaGoneError:
            return False
        return True

    async def find(self, path: str, **params: Any) -> Any:
        """Read something that may be gone; None if it is."""
        try:
            return await self.get(path, **params)
        except LettaGoneError:
            return None

    async def each(self, path: str, **params: Any) -> AsyncGenerator[Json]:
        """Every item of a list, page after page, oldest first."""
        while True:
            page: list[Json] = await self.get(path, limit=PAGE, order="asc", **params)
            for row in page:
                yield row
            if len(page) < PAGE:
                return
            params["after"] = page[-1]["id"]

    async def all(self, path: str, **params: Any) -> list[Json]:
        """The same at once."""
        return [row async for row in self.each(path, **params)]

    async def passages(
        self, agent: str, *, after: str | None = None, limit: int = PASSAGES, newest: bool = False
    ) -> list[Json]:
        """One page of what an agent has archived: from `after` on, oldest first, or the newest ones.

        Their vectors are left out. The server answers an `after` that is gone with nothing.
        """
        params: Json = {"limit": limit, "ascending": not newest} | ({} if after is None else {"after": after})
        found: list[Json] = await self.get(f"/v1/agents/{agent}/archival-memory", **params)
        return [{key: value for key, value in row.items() if key != "embedding"} for row in found]

    async def messages(self, agent: str) -> AsyncGenerator[Json]:
        """What was said to and by an agent, oldest first; a page may hold fewer or more rows than were asked for."""
        params: Json = {}
        while rows := await self.get(f"/v1/agents/{agent}/messages", limit=PAGE, order="asc", **params):
            for row in rows:
                yield row
            if params.get("after") == rows[-1]["id"]:
                return
            params = {"after": rows[-1]["id"]}

    async def upsert_tool(self, **fields: Any) -> str:
        """Register a tool by its name; its id."""
        return str((await self._call(self._writes.tools.upsert, **fields)).id)

    async def _call(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        with failures(self._name):
            if inspect.iscoroutinefunction(method):
                return await method(*args, **kwargs)
            answer = await asyncio.to_thread(method, *args, **kwargs)
            return await answer if inspect.isawaitable(answer) else answer


@contextmanager
def failures(name: str) -> Generator[None]:
    """Turn what the SDK raises into our errors.

    Raises:
        BackendTimeoutError: No answer in time, or 408.
        BackendDownError: No connection, or the server failed (5xx).
        BackendError: One of `refusals`, by status.
    """
    try:
        yield
    except letta_client.APITimeoutError as error:
        raise BackendTimeoutError(name, "the Letta server did not answer in time") from error
    except letta_client.APIConnectionError as error:
        raise BackendDownError(name, "the Letta server cannot be reached") from error
    except letta_client.APIStatusError as error:
        raise _by_status(name, error) from error
    except (letta_client.APIError, json.JSONDecodeError) as error:
        raise BackendDownError(name, f"the Letta server's answer cannot be read ({type(error).__name__})") from error


def _by_status(name: str, error: letta_client.APIStatusError) -> BackendError:
    status, where = error.status_code, f"{error.request.method} {error.request.url.path}"
    if status in (401, 403):
        return LettaAuthError(name, f"the Letta server refused the key for {where} ({status})")
    if status == 404:
        return LettaGoneError(name, f"{where}: it does not exist (any more)")
    if status == 408:
        return BackendTimeoutError(name, f"the Letta server gave up on {where} (408)")
    if status == 409:
        return LettaConflictError(name, f"{where}: something else changed it, or already has that name (409)")
    if status == 429:
        return LettaBusyError(name, "the Letta server asks to wait (429)", after_s=_after(error))
    if status >= 500:
        return BackendDownError(name, f"the Letta server failed on {where} ({status})")
    return LettaRejectedError(name, f"the Letta server takes {where} for wrong ({status})")


def told(error: BackendError) -> str:
    """What the server said when it refused a request: to be understood, never to be shown or logged."""
    cause = error.__cause__
    return str(cause.body) if isinstance(cause, letta_client.APIStatusError) else ""


def _after(error: letta_client.APIStatusError) -> float | None:
    given = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(given))
    except ValueError:
        return None


__all__ = ["PAGE", "PASSAGES", "Api", "Client", "Json", "failures", "made", "told"]
