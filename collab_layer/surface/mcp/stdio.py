"""MCP over stdin and stdout, for clients that start their servers themselves.

In:   an open layer, and a token or an entity to act for.
Out:  the protocol on stdout, remarks on stderr; returns when stdin ends.
"""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from collab_layer.layer import AsyncCollabLayer
from collab_layer.surface.mcp.server import Context, Door, build


async def serve_token(layer: AsyncCollabLayer, token: str, suffix: str = "") -> None:
    """Act for the bearer of a token, which is verified at every call.

    Args:
        layer: Open.
        token: Its text.
        suffix: What the names of the tools end in.

    Raises:
        TokenRefusedError: It does not hold to begin with.
    """
    await layer.open_with(token)

    async def door(_: Context) -> AsyncCollabLayer:
        return await layer.open_with(token)

    await _serve(door, suffix)


async def serve_as(view: AsyncCollabLayer, suffix: str = "") -> None:
    """Act for the entity of a view, as whoever can read the database may."""

    async def door(_: Context) -> AsyncCollabLayer:
        return view

    await _serve(door, suffix)


async def _serve(door: Door, suffix: str) -> None:
    server = build(door, lambda _: suffix)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())
