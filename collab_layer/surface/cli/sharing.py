"""Commands about who may use what: `grant`, `grants`, `publish`, `revoke`, `forget`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.options import Audience, Json, Owner, moment
from collab_layer.surface.cli.output import console, emit, listing, table
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer.types.scope import Grant


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("grant")(grant)
    app.command("grants")(grants)
    app.command("publish")(publish)
    app.command("revoke")(revoke)
    app.command("forget")(forget)
    app.command("alias")(alias)


def grant(
    ctx: typer.Context,
    owner: Owner,
    to: Audience,
    level: Annotated[
        Literal["facets", "records"], typer.Option(help="`facets`: distilled; `records`: may be quoted.")
    ] = "facets",
    purpose: Annotated[str | None, typer.Option("--for", help="Only readers with this purpose.")] = None,
    until: Annotated[str | None, typer.Option(help="Ends at this ISO 8601 time with a zone.")] = None,
    as_json: Json = False,
) -> None:
    """Let an audience use an owner's memories."""
    with session_of(ctx).layer() as layer:
        made = layer.grant(owner, to, level=level, purpose=purpose, until=moment(until))
    if as_json:
        return emit(made)
    end = f" until {made.until:%Y-%m-%d %H:%M} UTC" if made.until else ""
    aim = f" for `{made.purpose}`" if made.purpose else ""
    sys.stdout.write(f"{made.to} may use the {made.level} of {made.owner}{aim}{end}.\n")
    sys.stdout.write(f"Take it back: collab revoke {made.id}\n")
    return None


def publish(
    ctx: typer.Context,
    owner: Owner,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="In words that all of the audience may read.")],
    to: Audience,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Id of a record of the owner's it rests on; may be repeated.")
    ] = None,
    purpose: Annotated[str | None, typer.Option("--for", help="Only readers with this purpose.")] = None,
    until: Annotated[str | None, typer.Option(help="Ends at this ISO 8601 time with a zone.")] = None,
    as_json: Json = False,
) -> None:
    """Let an audience know something in the owner's chosen words; its records stay closed."""
    with session_of(ctx).layer() as layer:
        made = layer.publish(owner, text, to, source or (), purpose=purpose, until=moment(until))
    if as_json:
        return emit(made)
    end = f" until {made.until:%Y-%m-%d %H:%M} UTC" if made.until else ""
    aim = f" for `{made.purpose}`" if made.purpose else ""
    sys.stdout.write(f"{made.to} may read this notice of {made.owner}{aim}{end}.\n")
    sys.stdout.write(f"Take it back: collab revoke {made.id}\n")
    return None


def revoke(
    ctx: typer.Context,
    grant_id: Annotated[
        str, typer.Argument(metavar="GRANT", help="The id that `collab grant` or `collab publish` printed.")
    ],
    as_json: Json = False,
) -> None:
    """Take a grant or a notice back, at once."""
    with session_of(ctx).layer() as layer:
        receipt = layer.revoke(grant_id)
    if as_json:
        return emit({"revoked": grant_id, "receipt": receipt})
    what = "Notice" if grant_id.startswith("d") else "Grant"
    sys.stdout.write(f"{what} {grant_id} no longer holds. The receipt: collab receipt show {receipt.id}\n")
    return None


def forget(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="WHAT", help="An entity, or the id of a record or facet.")],
    source: Annotated[
        bool, typer.Option("--source", help="Also in the stores where it lies, by the next process that opens them.")
    ] = False,
    influence: Annotated[
        bool, typer.Option("--influence", help="Of an entity, only what was derived of it for others.")
    ] = False,
    block: Annotated[
        bool, typer.Option("--block/--no-block", help="With --influence: nobody else reads it until it is unblocked.")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove something and all that was derived from it."""
    if source and influence:
        raise InputError("--influence leaves an entity's own memories alone; leave --source out")
    if not yes and sys.stdin.isatty():
        asked = f"Take back all that was derived of {what}?" if influence else f"Forget {what} and all derived from it?"
        typer.confirm(asked, abort=True)
    with session_of(ctx).layer() as layer:
        receipt = layer.forget_influence(what, block=block) if influence else layer.forget(what, source=source)
    if as_json:
        return emit(receipt)
    rows = sorted(receipt.removed.items())
    console().print(table(f"Receipt {receipt.id}", ("removed from", "rows"), rows, numeric=("rows",)))
    if receipt.pending:
        sys.stdout.write(f"{receipt.pending} copies in stores are queued for removal: collab worker --once\n")
    if influence and block:
        sys.stdout.write(f"Nobody else reads {what} until: collab quarantine unblock {what}\n")
    return None


def alias(
    ctx: typer.Context,
    entity: Annotated[
        str | None, typer.Argument(metavar="[ENTITY]", help="The alias; all are listed if left out.")
    ] = None,
    principal: Annotated[str | None, typer.Argument(metavar="[PRINCIPAL]", help="Who is counted for both.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Count the alias by itself again.")] = False,
    as_json: Json = False,
) -> None:
    """Say that two entities are one principal, so that they are counted once."""
    if remove != (entity is not None and principal is None):
        raise InputError("name an alias and its principal, or an alias and --remove, or nothing to list them")
    with session_of(ctx).layer() as layer:
        if entity is not None and principal is not None:
            layer.alias(entity, principal)
        elif entity is not None:
            layer.unalias(entity)
        found = layer.aliases()
    listing(
        found,
        lambda one: (str(one.entity), str(one.principal), f"{one.at:%Y-%m-%d %H:%M}"),
        "One principal",
        ("entity", "counts as", "since, UTC"),
        empty="Every entity counts by itself.",
        as_json=as_json,
    )


def grants(
    ctx: typer.Context,
    owner: Annotated[str | None, typer.Argument(metavar="[OWNER]", help="Whose; everybody's if left out.")] = None,
    as_json: Json = False,
) -> None:
    """The grants and opt-outs in force, newest first."""
    with session_of(ctx).layer() as layer:
        found = layer.grants(owner)
    listing(
        found,
        _given,
        "Grants",
        ("id", "owner", "to", "may use", "for", "until, UTC"),
        empty="Nothing is granted.",
        as_json=as_json,
    )


def _given(one: Grant) -> tuple[str, ...]:
    level, until = "nothing" if one.denied else one.level, f"{one.until:%Y-%m-%d %H:%M}" if one.until else ""
    return one.id, str(one.owner or "the tenant"), one.to, level, one.purpose or "", until
