"""Commands that look at the installation: `backends`, `doctor`."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collab_layer.errors import CollabError, ModelError
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, remark, table
from collab_layer.surface.cli.session import session_of
from collab_layer.surface.cli.spending import WELL, parts_of, parts_without_models

if TYPE_CHECKING:
    from collab_layer.plugins.manager import Plugins


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backends")(backends)
    app.command("doctor")(doctor)


def backends(as_json: Json = False) -> None:
    """The installed stores, what each can do, and which plugins were left out."""
    from collab_layer.plugins.manager import load

    plugins = load()
    if as_json:
        return emit(_described(plugins))
    if plugins.backends:
        rows = [(spec.name, ", ".join(sorted(spec.can)), spec.summary) for spec in plugins.backends.values()]
        console().print(table("Backends", ("name", "can", "what it is"), rows))
    else:
        sys.stdout.write("No backend is installed. For Mem0: pip install collab-layer-mem0\n")
    for failure in plugins.failures:
        remark(str(failure))
    return None


def doctor(
    ctx: typer.Context,
    ask_models: Annotated[
        bool, typer.Option("--ask-models", help="Put one tiny question to each model; it is counted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Whether everything works: plugins, the database, each store, each model. Exit status 1 if not."""
    from collab_layer.plugins.manager import load

    session = session_of(ctx)
    rows = [("python", "ok", platform.python_version()), *_plugin_rows(load())]
    try:
        try:
            with session.layer() as layer:
                rows += parts_of(layer, session, ask_models=ask_models)
        except ModelError as error:
            rows += parts_without_models(session, error)
    except CollabError as error:
        rows.append(("database", "down", str(error)))
    well = all(condition in WELL for _, condition, _ in rows)
    if as_json:
        emit({"ok": well, "parts": [dict(zip(("name", "condition", "detail"), row, strict=True)) for row in rows]})
    else:
        console().print(table(f"collab doctor: {session.url}", ("part", "condition", "detail"), rows))
    if not well:
        raise typer.Exit(1)


def _plugin_rows(plugins: Plugins) -> list[tuple[str, str, str]]:
    good = [(f"plugin {name}", "ok", "") for name in plugins.loaded]
    return good + [(f"plugin {failure.plugin}", "down", failure.why) for failure in plugins.failures]


def _described(plugins: Plugins) -> dict[str, Any]:
    return {
        "backends": [
            {
                "name": spec.name,
                "summary": spec.summary,
                "can": sorted(spec.can),
                "distribution": spec.distribution,
                "settings": dict(spec.settings),
            }
            for spec in plugins.backends.values()
        ],
        "plugins": list(plugins.loaded),
        "failures": [{"plugin": failure.plugin, "why": failure.why} for failure in plugins.failures],
    }
