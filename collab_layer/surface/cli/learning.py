"""Commands about what ranking learns: `rebuild`, `refit`, `lift`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import emit
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer.types.lift import Compared


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("rebuild")(rebuild)
    app.command("refit")(refit)
    app.command("lift")(lift)


def rebuild(
    ctx: typer.Context,
    on: Annotated[str, typer.Option(help="Who does it: `loop`, or `ray`.")] = "loop",
    workers: Annotated[int, typer.Option("--workers", "-n", min=1, max=1_000, help="Tasks at once, on Ray.")] = 2,
    as_json: Json = False,
) -> None:
    """Make the edges between things anew, from what owners hold that everybody may read."""
    with session_of(ctx).layer() as layer:
        made = layer.rebuild(on=on, workers=workers)
    if as_json:
        return emit(made)
    sys.stdout.write(
        f"{made.edges} edges between {made.things} things ({made.method}), "
        f"resting on {made.owners} owners that everybody may read, in {made.seconds:.1f} s.\n"
    )
    return None


def refit(ctx: typer.Context, as_json: Json = False) -> None:
    """Fit the ranking weights on past choices, and open or shut the gate."""
    with session_of(ctx).layer() as layer:
        found = layer.refit()
    if as_json:
        return emit(found)
    sys.stdout.write(
        f"The gate is {found.state}: on {found.cases} past choices neighbours gained {found.gain:+.3f} "
        f"(at least {found.low:+.3f}), and {found.few_gain:+.3f} (at least {found.few_low:+.3f}) "
        f"as if little had been known. Weights {found.version}.\n"
    )
    return None


def lift(
    ctx: typer.Context,
    entity: Annotated[str | None, typer.Argument(help="Whose choices; those of the whole tenant if left out.")] = None,
    as_json: Json = False,
) -> None:
    """What neighbours change in a hit rate, against own memory alone: by experiment and by replay."""
    with session_of(ctx).layer() as layer:
        found = layer.lift(entity)
    if as_json:
        return emit(found)
    ways = (("Experiment", found.experiment), ("Both orders", found.both_orders), ("Replay", found.replay))
    for name, one in ways:
        said = "nothing yet" if one is None else f"{one}, on {_cases(one)} choices"
        sys.stdout.write(f"{name}: {said}.\n")
    muted = " Neighbours are muted here: they did harm." if found.muted else ""
    sys.stdout.write(f"The gate is {found.gate.state}.{muted}\n")
    return None


def _cases(one: Compared) -> str:
    if one.alone_served:
        return f"{one.alone_cases} held-out and {one.together_cases} other"
    return str(one.together_cases)
