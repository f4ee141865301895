"""An MCP server over the layer: lists the tools, and calls them as whoever asks.

In:   a door: the context of a call to the view of its caller. It is asked at every call, so
      a token that was revoked is refused at the next one.
Out:  results, structured and in few words; errors of ours as tool errors with our code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import ValidationError

from collab_layer.errors import CollabError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.surface.http.errors import Problem, of_error, of_fields
from collab_layer.surface.mcp.tools import DATA, OFFERS, Offer

Context = ServerRequestContext[dict[str, Any], Any]
Door = Callable[[Context], Awaitable[AsyncCollabLayer]]
"""Who calls; raises `TokenRefusedError` if nobody may."""

INSTRUCTIONS = f"Memory between agents: ask `context` first, tell `observe` what you found out. {DATA}"


def build(door: Door) -> Server[dict[str, Any]]:
    """A server whose tools act for whoever the door lets in."""

    async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=listed())

    async def call_tool(context: Context, asked: CallToolRequestParams) -> CallToolResult:
        offer = next((one for one in OFFERS if one.name == asked.name), None)
        if offer is None:
            raise MCPError(code=INVALID_PARAMS, message="there is no such tool")
        return await _call(offer, asked.arguments or {}, context, door)

    return Server(
        "collab_layer",
        version=version("collab-layer"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def listed() -> list[Tool]:
    """Every tool with its schemas."""
    return [
        Tool(
            name=one.name,
            description=one.does,
            input_schema=one.asked.model_json_schema(),
            output_schema=one.reply.model_json_schema(mode="serialization"),
            annotations=ToolAnnotations(
                read_only_hint=not one.writes,
                destructive_hint=False,
                idempotent_hint=not one.writes,
                open_world_hint=False,
            ),
        )
        for one in OFFERS
    ]


async def _call(offer: Offer, arguments: dict[str, Any], context: Context, door: Door) -> CallToolResult:
    try:
        view = await door(context)
        reply = await offer.call(view, _checked(offer, arguments))
    except ValidationError as error:
        return _failed(of_fields(error.errors(include_url=False, include_input=False)).problem)
    except CollabError as error:
        return _failed(of_error(error).problem)
    return CallToolResult(
        content=[TextContent(text=offer.text(reply))], structured_content=reply.model_dump(mode="json")
    )


def _checked(offer: Offer, arguments: dict[str, Any]) -> Any:
    return offer.asked.model_validate(arguments)


def _failed(problem: Problem) -> CallToolResult:
    told = problem.model_dump(include={"code", "detail", "retryable", "errors"}, exclude_none=True)
    return CallToolResult(
        content=[TextContent(text=f"{problem.code}: {problem.detail}")], structured_content=told, is_error=True
    )
