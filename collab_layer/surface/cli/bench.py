"""`collab bench …`: what sharing and models are worth, measured.

In:   an evaluation set, or a seed; perhaps models of the user's own.
Out:  one row per figure; exit status 1 if a figure misses its bar.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.bench_perf import register as register_perf
from collab_layer.surface.cli.bench_show import show, teller
from collab_layer.surface.cli.bench_soak import register as register_soak
from collab_layer.surface.cli.bench_tasks import register as register_tasks
from collab_layer.surface.cli.options import Embedder, Json
from collab_layer.surface.cli.output import progress, remark
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer.bench.report import Report

Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="An evaluation set as its publisher lays it out.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    bench = typer.Typer(help="Measure what sharing and models are worth.", no_args_is_help=True)
    bench.command("lift")(lift)
    bench.command("live")(live)
    bench.command("prompts")(prompts)
    bench.command("govern")(govern)
    bench.command("erase")(erase)
    bench.command("triggers")(triggers)
    register_perf(bench)
    register_soak(bench)
    register_tasks(bench)
    app.add_typer(bench, name="bench")


def lift(
    data: Data,
    reasoning_model: Annotated[
        str | None, typer.Option(help="Ranks with real, foreign, meaningless and no facets: openai:gpt-4o-mini.")
    ] = None,
    memory_model: Annotated[str | None, typer.Option(help="Words the facets; the rules do if left out.")] = None,
    users: Annotated[
        int | None,
        typer.Option(min=2, help="Users asked for, and as many to fit on; all if left out, 100 with a model."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Candidate lists per user; without a model only.")] = 5,
    seed: Annotated[int, typer.Option(help="Draws the users and the order of the candidates.")] = 0,
    full: Annotated[bool, typer.Option("--full", help="Also other curation, noise, attackers.")] = False,
    store: Annotated[
        Literal["mem0"] | None, typer.Option(help="Also a real Mem0, whose own search is isolated memory; slow.")
    ] = None,
    embedder: Embedder = None,
    as_json: Json = False,
) -> None:
    """Neighbours against none; with a reasoning model, whether it profits from what they know.

    Addresses and keys of models come from the settings (`COLLAB_REASONING_BASE_URL`, …).
    """
    if reasoning_model is None:
        from collab_layer.surface.cli.demo_lift import measure

        if memory_model is not None:
            raise InputError("a memory model is measured by how a reasoning model ranks; name one: --reasoning-model")
        return measure(
            data, seeds=seeds, users=users, full=full, mem0=store == "mem0", embedder=embedder, as_json=as_json
        )
    return show(asyncio.run(_ablation(data, reasoning_model, memory_model, users or 100, seed)), as_json)


def live(
    ctx: typer.Context,
    owner: Annotated[list[str] | None, typer.Option(help="Whose as well; may be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """What neighbours change in the layer in use: by experiment, in both orders of what was served, by replay.

    Exit status 1 if neighbours do harm, that is if the upper bound of the change is below 0, and are not muted.
    """
    from collab_layer.bench import live as measured

    with session_of(ctx).layer() as layer:
        report = measured.report(layer, owner or ())
    show(report, as_json)


def prompts(
    data: Data,
    users: Annotated[int, typer.Option(min=2, help="Users whose prompts are laid out.")] = 30,
    seed: Annotated[int, typer.Option(help="Draws the users.")] = 0,
    as_json: Json = False,
) -> None:
    """How long each stage's prompts are; no model is asked."""
    from collab_layer.bench import prompts as measured

    with progress() as bar:
        report = asyncio.run(measured.measure(data, users=users, seed=seed, progress=teller(bar)))
    show(report, as_json)


def triggers(
    seed: Annotated[int, typer.Option(help="Of the first stream of notes.")] = 20,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Streams in all.")] = 1,
    as_json: Json = False,
) -> None:
    """What asking the memory model costs by trigger, and how many recurring facts it gets to see.

    The model is a stand-in that repeats what notes have in common.
    """
    from collab_layer.bench import triggers as measured

    with progress() as bar:
        report = asyncio.run(measured.compare(range(seed, seed + seeds), progress=teller(bar)))
    show(report, as_json)


def govern(
    data: Annotated[Path | None, typer.Option("--data", metavar="DIR", help="GateMem; left out, only attacks.")] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Of each domain, the first; all if left out.")] = None,
    attacks: Annotated[bool, typer.Option(help="Let the attacks loose as well.")] = True,
    seed: Annotated[int, typer.Option(help="Of the attacks and of the crowd they fall upon.")] = 0,
    as_json: Json = False,
) -> None:
    """What borders, deletions and attacks do to what is told: utility, exposure, residue, attack success.

    All of GateMem takes an hour on two slow cores; `--episodes 2` a minute or two.
    """
    from collab_layer.bench import govern as measured

    with progress() as bar:
        report = asyncio.run(measured.report(data, most=episodes, attacked=attacks, seed=seed, progress=teller(bar)))
    show(report, as_json)


def erase(
    operations: Annotated[
        int, typer.Option(min=1, help="Calls of `forget`, `forget_influence` and `revoke` to be answered.")
    ] = 300,
    kills: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the batches whose process is killed in their midst.")
    ] = 0.2,
    store: Annotated[
        str, typer.Option(help="Where half of the memories lie, to be erased there too: none, memory, or mem0.")
    ] = "none",
    seed: Annotated[int, typer.Option(help="Of every choice; the moment of a kill is the clock's.")] = 0,
    as_json: Json = False,
) -> None:
    """Whether any forgotten word is left in any byte of the files, over thousands of erasures and killed processes."""
    from collab_layer.bench import residue as measured
    from collab_layer.bench.residue_stores import kind_of

    with progress() as bar:
        report = measured.measure(operations, seed=seed, kills=kills, store=kind_of(store), progress=teller(bar))
    show(report, as_json)


async def _ablation(data: Path, reasoning: str, memory: str | None, users: int, seed: int) -> Report:
    from collab_layer import roles
    from collab_layer.bench import ablation
    from collab_layer.config import Settings
    from collab_layer.plugins.manager import load
    from collab_layer.ports.models import Closes

    settings = Settings()
    if memory is None:  # what is set for daily use is not meant here
        settings = settings.model_copy(update={"memory": settings.memory.model_copy(update={"model": None})})
    models = roles.open_models(load(settings.disabled_plugins), settings, {"memory": memory, "reasoning": reasoning})
    remark(f"About {users * (len(ablation.VARIANTS) + 2)} questions to {reasoning}.")
    asked = models.get("memory")
    try:
        with progress() as bar:
            return await ablation.measure(
                data,
                models["reasoning"].model,
                None if asked is None else asked.model,
                users=users,
                seed=seed,
                progress=teller(bar),
            )
    finally:
        for one in models.values():
            if isinstance(one.model, Closes):
                await one.model.aclose()


__all__ = ["register"]
