"""An MCP server over the layer: lists the tools, and calls them as whoever asks.

In:   a door: the context of a call to the view of its caller. It is asked at every call, so
      a token that was revoked is refused at the next one.
Out:  results, structured and in few words; errors of ours as tool errors with our code.
"""

from __future__ import annotations

import re
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
Naming = Callable[[Context], str]
"""What the names of the tools end in for this caller: some hosts keep the tools of all servers in one list."""
SUFFIX = re.compile(r"[A-Za-z0-9_-]{0,24}")

INSTRUCTIONS = f"Memory between agents: ask `context` first, tell `observe` what you found out. {DATA}"


def _plain(_: Context) -> str:
    return ""


def build(door: Door, naming: Naming = _plain) -> Server[dict[str, Any]]:
    """A server whose tools act for whoever the door lets in."""

    async def list_tools(context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=listed(checked_suffix(naming(context))))

    async def call_tool(context: Context, asked: CallToolRequestParams) -> CallToolResult:
        end = checked_suffix(naming(context))
        offer = next((one for one in OFFERS if one.name + end == asked.name), None)
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


def checked_suffix(suffix: str) -> str:
    """The end of tool names, if they can end so.

    Raises:
        MCPError: It is longer than 24 characters, or not of letters, digits, `_` and `-`.
    """
    if not SUFFIX.fullmatch(suffix):
        raise MCPError(code=INVALID_PARAMS, message="a suffix has at most 24 letters, digits, `_` and `-`")
    return suffix


def listed(suffix: str = "") -> list[Tool]:
    """Every tool with its schemas, its name with the suffix."""
    return [
        Tool(
            name=one.name + suffix,
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
