"""Every request passes here first: a place, a token, a rate, a body, a time limit.

In:   what the server received.
Out:  the application's answer, or a problem. HTTP and MCP stand behind the same gate, and
      nothing of a request is parsed before its bearer is known.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collab_layer.config import ServeSettings
from collab_layer.errors import CollabError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.surface.http.auth import VIEW, enter
from collab_layer.surface.http.errors import Refused, Reply, of_error, of_refusal
from collab_layer.surface.http.limits import Places, Rates, linger, whole_body

LIVE, READY, SCHEMA = "/v1/health/live", "/v1/health/ready", "/v1/openapi.json"
OPEN = frozenset({READY, SCHEMA})
"""Paths that need no token, but a place."""


class Gate:
    """Stands before an application.

    Args:
        app: What is behind it.
        layer: Where tokens are verified.
        settings: The limits.

    Raises:
        InputError: The rate cannot be used.
    """

    def __init__(self, app: ASGIApp, layer: AsyncCollabLayer, settings: ServeSettings) -> None:
        self._app, self._layer, self._settings = app, layer, settings
        self._places = Places(settings.max_requests)
        self._rates = Rates(settings.rate, settings.rate_store)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] == LIVE:
            await self._app(scope, receive, send)
            return
        hearing, answering = _Hearing(receive), _Answering(send)
        clock = asyncio.timeout(self._settings.timeout_s)
        try:
            async with clock:
                with self._places.one():
                    await self._pass(scope, hearing, answering)
        except Refused as refused:
            await self._refuse(of_refusal(refused), scope, hearing, answering)
        except CollabError as error:
            await self._refuse(of_error(error), scope, hearing, answering)
        except TimeoutError:
            if not clock.expired():
                raise
            late = Refused(503, "timeout", f"no answer within {self._settings.timeout_s:g} s; try again", 1)
            await self._refuse(of_refusal(late), scope, hearing, answering)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in OPEN:
            view, counted_as = await enter(self._layer, scope)
            await self._rates.take(counted_as)
            limits = self._settings
            receive = await whole_body(scope, receive, most=limits.max_body_bytes, timeout_s=limits.body_timeout_s)
            scope.setdefault("state", {})[VIEW] = view
        await self._app(scope, receive, send)

    async def _refuse(self, reply: Reply, scope: Scope, hearing: _Hearing, answering: _Answering) -> None:
        if answering.begun:  # half an answer cannot be taken back; the server closes the connection
            return
        response = reply.response()
        if not hearing.ended and not await linger(hearing, most=self._settings.max_body_bytes):
            response.headers["Connection"] = "close"
        await response(scope, hearing, answering)


class _Hearing:
    """Remembers whether all of a request has come."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message


class _Answering:
    """Remembers whether an answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        self.begun = self.begun or message["type"] == "http.response.start"
        await self._send(message)
