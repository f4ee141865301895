"""Commands about what ranking learned: `rebuild`."""

from __future__ import annotations

import sys

import typer

from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import emit
from collab_layer.surface.cli.session import session_of


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rebuild")(rebuild)


def rebuild(ctx: typer.Context, as_json: Json = False) -> None:
    """Make the edges between things anew, from what owners hold that everybody may read."""
    with session_of(ctx).layer() as layer:
        made = layer.rebuild()
    if as_json:
        return emit(made)
    sys.stdout.write(
        f"{made.edges} edges between {made.things} things ({made.method}), "
        f"resting on {made.owners} owners that everybody may read, in {made.seconds:.1f} s.\n"
    )
    return None
