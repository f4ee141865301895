"""How much, how often, how long: the limits of one process.

In:   the settings of the service.
Out:  a `Refused` where a limit is met. Rates are counted per token; places and bodies are
      limited before anything of a request is parsed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from math import ceil

from limits import parse
from limits.aio.storage import Storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string
from starlette.types import Message, Receive, Scope

from collab_layer.errors import InputError
from collab_layer.surface.http.errors import Refused

LINGER_S = 1.0
"""How long the rest of a body that was refused is read, so that its sender hears why."""


class Rates:
    """Requests of each token.

    Args:
        rate: As `600/minute`.
        store: Where they are counted, as `memory://`.

    Raises:
        InputError: The rate or the store cannot be used.
    """

    def __init__(self, rate: str, store: str) -> None:
        try:
            self._rate = parse(rate)
        except ValueError as error:
            raise InputError(f"`{rate}` is no rate; write it as 600/minute") from error
        scheme = store.partition(":")[0]
        try:
            storage = storage_from_string(f"async+{store}", wrap_exceptions=True)
            self._limiter = SlidingWindowCounterRateLimiter(storage)
        except (ConfigurationError, NotImplementedError, ValueError) as error:
            raise InputError(f"rates cannot be counted in a store `{scheme}`: {error}") from error
        assert isinstance(storage, Storage)

    async def take(self, token_id: str) -> None:
        """Count one request.

        Raises:
            Refused: 429, with the time until there is room again; 503 if the store of the
                rates cannot be reached.
        """
        try:
            if await self._limiter.hit(self._rate, token_id):
                return
            reset = (await self._limiter.get_window_stats(self._rate, token_id)).reset_time
        except StorageError as error:
            raise Refused(503, "rate_store", "requests cannot be counted just now; try again", 1) from error
        raise Refused(429, "too_many_requests", f"more than {self._rate} for this token", _until(reset))


class Places:
    """Requests at once."""

    def __init__(self, most: int) -> None:
        self._free = most

    @contextmanager
    def one(self) -> Generator[None]:
        """Hold a place.

        Raises:
            Refused: 503 if all are taken; nobody waits.
        """
        if self._free <= 0:
            raise Refused(503, "busy", "too many requests at once; try again", 1)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


async def whole_body(scope: Scope, receive: Receive, *, most: int, timeout_s: float) -> Receive:
    """Read a body while it comes, and hand it on in one piece.

    Args:
        scope: Of the request.
        receive: Where it comes from.
        most: Bytes, > 0.
        timeout_s: Until its end has come.

    Raises:
        Refused: 413 at the first byte too many, or where more is announced; 408 if it is slow.
    """
    if _announced(scope) > most:
        raise _too_large(most)
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return _once(message, receive)
                body += message.get("body", b"")
                if len(body) > most:
                    raise _too_large(most)
                if not message.get("more_body", False):
                    break
    except TimeoutError as error:
        raise Refused(408, "slow_body", f"the body did not come within {timeout_s:g} s") from error
    return _once({"type": "http.request", "body": bytes(body), "more_body": False}, receive)


async def linger(receive: Receive, *, most: int) -> bool:
    """Throw away what is left of a body, up to `most` bytes and one second; whether it ended."""
    left = most
    try:
        async with asyncio.timeout(LINGER_S):
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return True
                left -= len(message.get("body", b""))
    except TimeoutError:
        return False
    return False


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _too_large(most: int) -> Refused:
    return Refused(413, "too_large", f"the body is longer than {most} bytes")


def _once(first: Message, rest: Receive) -> Receive:
    waiting = [first]

    async def receive() -> Message:
        return waiting.pop() if waiting else await rest()

    return receive


def _until(reset: float) -> int:
    return max(1, ceil(reset - time.time()))
