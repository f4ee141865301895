"""MCP over streamable HTTP, inside the HTTP service.

In:   requests that passed the gate, which left the caller's view with them.
Out:  one JSON answer per POST. There are no sessions: every request stands for itself, with
      its own token, so any process may serve it, and nobody can take a session over.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from collab_layer.layer import AsyncCollabLayer
from collab_layer.surface.http.auth import acting
from collab_layer.surface.mcp.server import Context, build

PATH = "/mcp"
SUFFIX = "X-Collab-Suffix"
"""Header: what the names of the tools are to end in."""
HERE = ("127.0.0.1", "localhost", "[::1]")


class Mounted:
    """The route, and the life of what is behind it.

    Args:
        hosts: Names under which clients may reach it, beside those of this machine. Any other
            Host or Origin is refused, so that a web page whose name was made to point here
            gets nowhere.
        max_body_bytes: The longest body.
    """

    def __init__(self, hosts: Sequence[str], max_body_bytes: int) -> None:
        self._manager = StreamableHTTPSessionManager(
            app=build(_caller, _naming),
            json_response=True,
            stateless=True,
            security_settings=_security(hosts),
            max_request_body_size=max_body_bytes,
        )
        self.route = Route(PATH, StreamableHTTPASGIApp(self._manager), methods=["POST"], include_in_schema=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve until the end of the block; once in the life of this object."""
        async with self._manager.run():
            yield


async def _caller(context: Context) -> AsyncCollabLayer:
    request: Any = context.request
    return acting(getattr(request, "state", None))


def _naming(context: Context) -> str:
    headers: Any = getattr(context.request, "headers", None) or {}
    return str(headers.get(SUFFIX, ""))


def _security(hosts: Sequence[str]) -> TransportSecuritySettings:
    names = [form for host in (*HERE, *hosts) for form in (host, f"{host}:*")]
    origins = [f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    return TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=origins)
