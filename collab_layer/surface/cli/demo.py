"""`collab demo`: the same questions alone and with neighbours, over real Mem0 stores.

With `--data DIR` it measures instead, on an evaluation set that the user downloaded.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, progress

if TYPE_CHECKING:
    from collab_layer.surface.cli.demo_scene import Scene


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    scene: Annotated[
        list[str] | None, typer.Option("--scene", help="support, agents or books; all of them if left out.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Measure the lift on the evaluation set in this folder.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=50, help="With --data: candidate lists per user.")] = 5,
    as_json: Json = False,
) -> None:
    """Side by side over real Mem0 stores: alone, and with neighbours."""
    if data is not None:
        from collab_layer.surface.cli.demo_lift import measure

        return measure(data, seeds=seeds, as_json=as_json)
    scenes = _play(scene or ())
    if as_json:
        return emit([dataclasses.asdict(one) for one in scenes])
    from collab_layer.surface.cli import demo_show

    out = console()
    for one in scenes:
        out.print(demo_show.scene(one))
    out.print("\nNothing was shared until its owner granted it. Yours: README.md, or `collab --help`.")
    return None


def _play(wanted: Sequence[str]) -> list[Scene]:
    from collab_layer.surface.cli.demo_play import SCENES, play, scene_data, size

    unknown = sorted(set(wanted) - set(SCENES))
    if unknown:
        raise InputError(f"there is no scene `{unknown[0]}`; there are {', '.join(SCENES)}")
    chosen = {name: scene_data(name) for name in SCENES if name in (wanted or SCENES)}
    with tempfile.TemporaryDirectory(prefix="collab-demo-") as folder, progress() as bar:
        task = bar.add_task("filling Mem0", total=sum(map(size, chosen.values())))
        return [
            play(name, data, Path(folder) / name, lambda: bar.advance(task))  # a store of its own per scene
            for name, data in chosen.items()
        ]
