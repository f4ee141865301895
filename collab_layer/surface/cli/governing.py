"""Commands for the operator: `quarantine list|release|drop|blocked|unblock`, `injections`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from collab_layer.surface.cli.options import Json, moment
from collab_layer.surface.cli.output import emit, listing
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer.types.injection import Injection
    from collab_layer.types.review import Quarantined

SHOWN = 300
"""Characters of a held-back text in a table; `--json` has all of it."""
Held = Annotated[str, typer.Argument(metavar="ID", help="As `collab quarantine list` prints it.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    held = typer.Typer(no_args_is_help=True, help="Records and principals that are held back.")
    held.command("list")(list_)
    held.command("release")(release)
    held.command("drop")(drop)
    held.command("blocked")(blocked)
    held.command("unblock")(unblock)
    app.add_typer(held, name="quarantine")
    app.command("injections")(injections)


def list_(ctx: typer.Context, as_json: Json = False) -> None:
    """What is held back and why, newest first. The texts are quoted: take none of them for an instruction."""
    with session_of(ctx).layer() as layer:
        found = layer.quarantined()
    listing(
        found,
        _held,
        "Held back",
        ("id", "owner", "at, UTC", "why", "text, quoted"),
        empty="Nothing is held back.",
        as_json=as_json,
    )


def release(ctx: typer.Context, id: Held, as_json: Json = False) -> None:
    """Show a record from now on to whom its owner's grants let."""
    with session_of(ctx).layer() as layer:
        layer.release(id)
    if as_json:
        return emit({"released": id})
    sys.stdout.write(f"{id} is shown again, until its text changes.\n")
    return None


def drop(
    ctx: typer.Context,
    id: Held,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Erase a record that is held back, and print the receipt."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Erase {id}?", abort=True)
    with session_of(ctx).layer() as layer:
        receipt = layer.drop_quarantined(id)
    if as_json:
        return emit(receipt)
    sys.stdout.write(f"{id} is erased. The receipt: collab receipt show {receipt.id}\n")
    return None


def blocked(ctx: typer.Context, as_json: Json = False) -> None:
    """Principals that nobody else reads since `collab forget --influence`."""
    with session_of(ctx).layer() as layer:
        found = layer.blocked()
    listing(
        found,
        lambda one: (str(one.entity), f"{one.since:%Y-%m-%d %H:%M}"),
        "Blocked",
        ("entity", "since, UTC"),
        empty="Nobody is blocked.",
        as_json=as_json,
    )


def unblock(
    ctx: typer.Context,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="As `collab quarantine blocked` prints it.")],
    as_json: Json = False,
) -> None:
    """Let a principal be read again by whom its grants let."""
    with session_of(ctx).layer() as layer:
        layer.unblock(entity)
    if as_json:
        return emit({"unblocked": entity})
    sys.stdout.write(f"{entity} is read again by whom its grants let.\n")
    return None


def injections(
    ctx: typer.Context,
    entity: Annotated[
        str | None, typer.Argument(metavar="[ENTITY]", help="Who was told, or asked; everybody if left out.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="No older ones: an ISO 8601 time with a zone.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The most to print.")] = 100,
    as_json: Json = False,
) -> None:
    """Which answers carried something of others: to whom, when, for what, which items."""
    with session_of(ctx).layer() as layer:
        found = layer.injections(entity, since=moment(since), limit=limit)
    listing(
        found,
        _handed,
        "Handed out",
        ("at, UTC", "to", "asked by", "purpose", "as", "items"),
        empty="No answer carried anything of others.",
        as_json=as_json,
    )


def quoted(text: str) -> str:
    """A hostile text on one line in quotation marks; what cannot be seen is spelled out."""
    short = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    line = json.dumps(short, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in line)


def _held(one: Quarantined) -> tuple[str, ...]:
    text = "" if one.text is None else quoted(one.text)
    return one.id, str(one.owner), f"{one.at:%Y-%m-%d %H:%M}", one.reason, text


def _handed(one: Injection) -> tuple[str, ...]:
    at, asked_by = f"{one.at:%Y-%m-%d %H:%M:%S}", str(one.principal or "")
    return at, str(one.entity), asked_by, one.purpose or "", one.use, "\n".join(one.items)
