"""Commands for the operator: `policy set`, `policy list`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import emit, listing
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer.types.scope import Policy

Team = Annotated[str | None, typer.Argument(metavar="[TEAM]", help="Such as team:support; the tenant if left out.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    policy = typer.Typer(no_args_is_help=True, help="What the tenant and its teams may share at most.")
    policy.command("set")(set_)
    policy.command("list")(list_)
    app.add_typer(policy, name="policy")


def set_(
    ctx: typer.Context,
    team: Team = None,
    min_contributors: Annotated[int | None, typer.Option(help="Distinct owners behind a facet, at least.")] = None,
    level: Annotated[Literal["facets", "records"] | None, typer.Option(help="The most a grant may give.")] = None,
    purpose: Annotated[
        list[str] | None, typer.Option("--for", help="A grant must name one of these; may be repeated.")
    ] = None,
    longest_days: Annotated[float | None, typer.Option(help="How many days a grant may hold.")] = None,
    as_json: Json = False,
) -> None:
    """Limit what a team, or the tenant, may share, in place of its policy before; what is left out is not limited."""
    with session_of(ctx).layer() as layer:
        made = layer.set_policy(
            team, min_contributors=min_contributors, level=level, purposes=purpose, longest_days=longest_days
        )
    if as_json:
        return emit(made)
    sys.stdout.write(f"{made.team or 'The tenant'}: {_said(made)}\n")
    return None


def list_(ctx: typer.Context, as_json: Json = False) -> None:
    """The policies as they were set, the tenant's first."""
    with session_of(ctx).layer() as layer:
        found = layer.policies()
    listing(
        found,
        lambda one: (str(one.team or "the tenant"), _said(one)),
        "Policies",
        ("of", "allows at most"),
        empty="No policy was set.",
        as_json=as_json,
    )


def _said(policy: Policy) -> str:
    parts = [
        None if policy.min_contributors is None else f"facets of {policy.min_contributors} owners or more",
        None if policy.level is None else f"level {policy.level}",
        None if policy.purposes is None else f"for {', '.join(policy.purposes) or 'nothing'}",
        None if policy.longest_days is None else f"grants of {policy.longest_days:g} days",
    ]
    return "; ".join(part for part in parts if part) or "no limits"
