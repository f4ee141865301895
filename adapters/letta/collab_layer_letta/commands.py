"""`collab letta`: attach an agent, detach it, bring every signal block up to date.

In:   the global options of `collab`; the Letta server from LETTA_BASE_URL and LETTA_API_KEY.
Out:  a few lines, or one JSON value with `--json`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collab_layer_letta.mcp_settings import COMMAND, Kind

if TYPE_CHECKING:
    from letta_client import Letta

    from collab_layer_letta.keeper import Report
    from collab_layer_letta.signal import Settled

Agent = Annotated[str, typer.Option(help="The agent's id, as Letta has it.")]
Server = Annotated[str | None, typer.Option(envvar="LETTA_BASE_URL", help="Address of the Letta server.")]
Key = Annotated[str | None, typer.Option(envvar="LETTA_API_KEY", help="Key for it.", show_envvar=True)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of lines.")]


def register(app: typer.Typer) -> None:
    """Add the group to `collab`."""
    group = typer.Typer(name="letta", help="Signal blocks and the pull tool of Letta agents.", no_args_is_help=True)
    group.command("attach")(attach)
    group.command("detach")(detach)
    group.command("sync")(sync)
    app.add_typer(group)


def attach(
    ctx: typer.Context,
    agent: Agent,
    entity: Annotated[
        str | None, typer.Option(help="Whom it stands for, as kind:id; as its tag says, else itself, if left out.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Address of `collab serve`, as the Letta server reaches it; adds the pull tool.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="COLLAB_SERVICE_TOKEN", help="For the service; issued if left out.")
    ] = None,
    mcp: Annotated[
        Kind | None, typer.Option(help="Register an MCP server instead of the tool: stdio, or http for --url/mcp.")
    ] = None,
    command: Annotated[
        str, typer.Option("--mcp-command", help="For stdio: where `collab` is on the Letta server's machine.")
    ] = COMMAND,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Characters of the signal block; 4000 for a new one.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Give an agent a read-only block with what its neighbours know and, with --url or --mcp, tools to ask."""
    from collab_layer_letta import agents

    session = ctx.find_root().obj
    asked: dict[str, Any] = {"url": url, "token": token, "mcp": mcp, "command": command}
    if mcp == "stdio":
        asked["database"] = session.url
    with session.layer() as layer, _client(server, key) as client:
        made = agents.attach(client, agent, entity=entity, layer=layer, limit=limit, every_s=None, **asked)
    told = {"agent": made.agent, "entity": str(made.entity), "tool": made.tool, "mcp": made.mcp}
    if as_json:
        return _emit({**told, "signal": _signal(made.signal)})
    tool = f", pull tool {made.tool}" if made.tool else f", MCP server {made.mcp}" if made.mcp else ""
    return _say([f"{made.agent} stands for {made.entity}{tool}.", _line(made.signal)])


def detach(ctx: typer.Context, agent: Agent, server: Server = None, key: Key = None, as_json: Json = False) -> None:
    """Take block, tools, environment keys and tags from an agent; its tokens are revoked."""
    from collab_layer_letta import agents

    with ctx.find_root().obj.layer() as layer, _client(server, key) as client:
        gone = agents.detach(client, agent, layer=layer)
    entity = None if gone.entity is None else str(gone.entity)
    if as_json:
        return _emit({"agent": gone.agent, "entity": entity, "tool": gone.tool})
    return _say([f"{gone.agent} was not attached." if entity is None else f"{gone.agent} stands for {entity} no more."])


def sync(
    ctx: typer.Context,
    every: Annotated[float | None, typer.Option(min=1, help="Again every so many seconds, until interrupted.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Read what attached agents remembered, deliver what is known, repair their signal blocks."""
    from collab_layer.errors import CollabError
    from collab_layer_letta.agents import keeper_of

    with ctx.find_root().obj.layer() as layer, _client(server, key) as client:
        keeper = keeper_of(layer, client)
        failed = _told(keeper.sync(), as_json)
        while every is not None:
            time.sleep(every)
            try:
                failed = _told(keeper.sync(), as_json)
            except CollabError as error:
                sys.stderr.write(f"error: {error}\n")
    if failed:
        raise typer.Exit(1)


def _client(server: str | None, key: str | None) -> Letta:
    from collab_layer_letta.client import made

    return made(server, key)


def _told(report: Report, as_json: bool) -> bool:
    """Print a round; whether it was not whole."""
    if as_json:
        signals = [_signal(one) for one in report.signals]
        counts = {"read": report.read, "delivered": report.delivered}
        _emit({**counts, "signals": signals, "failed": list(report.failed)})
    else:
        head = f"{report.read} memories read, {report.delivered} items delivered or taken back."
        _say([head, *map(_line, report.signals)])
        for why in report.failed:
            sys.stderr.write(f"error: {why}\n")
    return bool(report.failed)


def _signal(one: Settled) -> dict[str, Any]:
    return {**one._asdict(), "entity": str(one.entity), "done": list(one.done)}


def _line(one: Settled) -> str:
    done = ", ".join(one.done) or "unchanged"
    dropped = f", {one.dropped} notes do not fit" if one.dropped else ""
    return f"{one.entity}: {one.chars} characters for {one.agents} agents{dropped}; {done}."


def _say(lines: Sequence[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")


def _emit(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


__all__ = ["register"]
