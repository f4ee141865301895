"""The command that tidies what was derived: `consolidate`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, progress, table
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer import Consolidation

MEANING = {
    "merged": "items made that each stand for several with one meaning",
    "parts": "items that now stand behind such a one",
    "split": "merged items taken apart again",
    "restored": "items shown again",
    "superseded": "items that a newer event contradicts",
    "ended": "items given another end",
    "expired": "items deleted, long after their end",
    "related": "relations written",
    "unrelated": "relations removed",
    "queued": "deliveries to make",
    "retracted": "deliveries to take back",
    "edges": "edges of records that hold no more",
    "packs": "packed neighbour lists that were wrong",
    "degrees": "counts of neighbours that were wrong",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("consolidate")(consolidate)


def consolidate(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would be changed.")] = False,
    as_json: Json = False,
) -> None:
    """Merge, supersede, expire and relate what was derived, and check what is derived of edges."""
    with session_of(ctx).layer() as layer, progress() as bar:
        task = bar.add_task("tidying", total=None)
        report = layer.consolidate(
            dry_run=dry_run, progress=lambda done, total: bar.update(task, completed=done, total=total)
        )
    if as_json:
        return emit(report)
    _show(report)
    return None


def _show(report: Consolidation) -> None:
    changed = [(MEANING[kind], count) for kind, count in report.changes.items()]
    looked = f"{report.items} items of {report.owners} readers and the edges of {report.nodes} entities"
    would = "would change" if report.dry_run else "changed"
    if changed:
        console().print(table(f"What {would}", ("", "count"), changed, numeric=("count",)))
    else:
        sys.stdout.write(f"Nothing {would}.\n")
    went = " (going on where it had stopped)" if report.resumed else ""
    sys.stdout.write(f"Looked at {looked} in {report.seconds:.1f} s{went}.\n")
