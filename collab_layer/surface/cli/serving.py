"""Commands for other programs: `serve`, `mcp`, `token issue`, `token list`, `token revoke`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.options import Json, moment
from collab_layer.surface.cli.output import emit, listing, remark
from collab_layer.surface.cli.session import Session, session_of

if TYPE_CHECKING:
    from collab_layer.types.access import Token

PORT = 8377
EXTRA = "this needs the extra: pip install 'collab-layer[serve]'"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("serve")(serve)
    app.command("mcp")(mcp)
    tokens = typer.Typer(no_args_is_help=True, help="Who may use `collab serve`, each for one entity.")
    tokens.command("issue")(issue)
    tokens.command("list")(list_)
    tokens.command("revoke")(revoke)
    app.add_typer(tokens, name="token")


def serve(
    ctx: typer.Context,
    host: Annotated[str, typer.Option(help="Where to listen; other machines reach it only if told to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = PORT,
    worker: Annotated[
        bool | None,
        typer.Option("--worker/--no-worker", help="Also link, embed and propagate here; as COLLAB_WORKER says."),
    ] = None,
    with_mcp: Annotated[bool, typer.Option("--mcp", help="Also serve MCP under /mcp.")] = False,
    as_json: Json = False,
) -> None:
    """Serve the layer over HTTP, every tenant of the database, to bearers of tokens."""
    session = session_of(ctx)
    if session.principal is not None:
        raise InputError("whom a request acts for says its token; leave `--as` and COLLAB_AS out")
    try:
        from collab_layer.surface.http.server import Place
        from collab_layer.surface.http.server import serve as run
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; {EXTRA}") from error
    from collab_layer.config import Settings

    settings = Settings()
    place = Place(host, port, worker=settings.worker if worker is None else worker, mcp=with_mcp)
    if place.exposed:
        remark(
            f"warning: {host} can be reached from other machines, and this is plain HTTP: "
            "let a proxy that speaks TLS stand before it, or tokens can be read on the way."
        )
    asyncio.run(run(session.url, settings, place, _listening(place.mcp, as_json)))
    if not as_json:
        sys.stdout.write("Stopped.\n")


def mcp(
    ctx: typer.Context,
    token_env: Annotated[
        str, typer.Option(help="The environment variable that holds the token; `--as` stands in for it.")
    ] = "COLLAB_TOKEN",
    suffix: Annotated[str, typer.Option(envvar="COLLAB_MCP_SUFFIX", help="What the names of the tools end in.")] = "",
    as_json: Json = False,
) -> None:
    """Serve MCP over stdin and stdout, for one token or one entity. With --json: print the tools, and end."""
    try:
        from collab_layer.surface.mcp.server import SUFFIX, listed
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; {EXTRA}") from error
    if not SUFFIX.fullmatch(suffix):
        raise InputError("a suffix has at most 24 letters, digits, `_` and `-`")
    if as_json:
        return emit([one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in listed(suffix)])
    session, token = session_of(ctx), os.environ.get(token_env)
    if token is None and session.principal is None:
        raise InputError(f"name whom to act for: a token in {token_env}, or `collab --as agent:coder-a mcp`")
    if token is not None and session.principal is not None:
        raise InputError(f"{token_env} holds a token and `--as` names an entity; one of them says whom to act for")
    asyncio.run(_mcp(session, token, suffix))
    return None


def issue(
    ctx: typer.Context,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="The one entity its bearer acts for.")],
    purpose: Annotated[str | None, typer.Option("--for", help="What its bearer acts for; grants may ask.")] = None,
    days: Annotated[int | None, typer.Option(min=1, max=36_500, help="How long it holds; 90 if left out.")] = None,
    until: Annotated[str | None, typer.Option(help="Or: ends at this ISO 8601 time with a zone.")] = None,
    as_json: Json = False,
) -> None:
    """Issue an access token. Its text is shown this once."""
    if days is not None and until is not None:
        raise InputError("say `--days` or `--until`, not both")
    end = moment(until) if days is None else datetime.now(UTC) + timedelta(days=days)
    with session_of(ctx).layer() as layer:
        made = layer.issue_token(entity, purpose=purpose, until=end)
    if as_json:
        return emit(made)
    sys.stdout.write(f"{made.text}\n")
    aim = f" for `{made.purpose}`" if made.purpose else ""
    remark(f"Acts as {made.principal}{aim} until {made.until:%Y-%m-%d %H:%M} UTC. It is not shown again.")
    remark(f"Take it back: collab token revoke {made.id}")
    return None


def list_(ctx: typer.Context, as_json: Json = False) -> None:
    """Every token of the tenant, newest first; never its text."""
    with session_of(ctx).layer() as layer:
        found = layer.tokens()
    now = datetime.now(UTC)
    listing(
        found,
        lambda one: (one.id, str(one.principal), one.purpose or "", _day(one.created), _state(one, now)),
        "Access tokens",
        ("token", "acts as", "for", "issued", "state"),
        empty="No token was issued.",
        as_json=as_json,
    )


def revoke(
    ctx: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="The id that `collab token list` prints.")],
    as_json: Json = False,
) -> None:
    """Take a token back, at once."""
    with session_of(ctx).layer() as layer:
        layer.revoke_token(token_id)
    if as_json:
        return emit({"revoked": token_id})
    sys.stdout.write(f"Token {token_id} no longer holds.\n")
    return None


async def _mcp(session: Session, token: str | None, suffix: str) -> None:
    from collab_layer.config import Settings
    from collab_layer.layer import AsyncCollabLayer
    from collab_layer.surface.mcp.stdio import serve_as, serve_token

    async with await AsyncCollabLayer.open(session.url, tenant=session.tenant, settings=Settings()) as layer:
        if token is not None:
            await serve_token(layer, token, suffix)
        elif session.principal is not None:
            await serve_as(layer.as_(session.principal, session.purpose), suffix)


def _listening(with_mcp: bool, as_json: bool) -> Callable[[str, int], None]:
    def tell(host: str, port: int) -> None:
        name = f"[{host}]" if ":" in host else host
        at = {"host": host, "port": port, "url": f"http://{name}:{port}"}
        if with_mcp:
            at["mcp"] = f"{at['url']}/mcp"
        line = json.dumps(at) if as_json else f"Listening on {at['url']}; stop with Ctrl-C."
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    return tell


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d}"


def _state(token: Token, now: datetime) -> str:
    if token.revoked is not None:
        return f"revoked {_day(token.revoked)}"
    return f"ended {_day(token.until)}" if token.until <= now else f"holds until {_day(token.until)}"
