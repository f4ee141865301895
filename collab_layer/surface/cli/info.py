"""Commands that look at the installation: `backends`, `doctor`, `rules`."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collab_layer.errors import CollabError, InputError
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, remark, table
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer.plugins.manager import Plugins
    from collab_layer.stages.rules import Scorer


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backends")(backends)
    app.command("doctor")(doctor)
    rules = typer.Typer(help="Show or check curation rules.", no_args_is_help=True)
    rules.command("show")(show)
    rules.command("check")(check)
    app.add_typer(rules, name="rules")


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


def doctor(ctx: typer.Context, as_json: Json = False) -> None:
    """Whether everything works: plugins, the database, each store. Exit status 1 if not."""
    from collab_layer.plugins.manager import load

    session = session_of(ctx)
    rows = [("python", "ok", platform.python_version()), *_plugin_rows(load())]
    try:
        with session.layer() as layer:
            health = layer.health()
            rows += [(part.name, part.condition, part.detail) for part in health.parts]
    except CollabError as error:
        rows.append(("database", "down", str(error)))
    well = all(condition in ("ok", "empty") for _, condition, _ in rows)
    if as_json:
        emit({"ok": well, "parts": [dict(zip(("name", "condition", "detail"), row, strict=True)) for row in rows]})
    else:
        console().print(table(f"collab doctor: {session.url}", ("part", "condition", "detail"), rows))
    if not well:
        raise typer.Exit(1)


def show(
    name: Annotated[str | None, typer.Argument(help="A preset; all of them if left out.")] = None, as_json: Json = False
) -> None:
    """The rule presets, or one of them in words; its tree with --json."""
    from collab_layer.plugins.manager import load

    plugins = load()
    domains = plugins.domains
    if name is None:
        if as_json:
            return emit({spec.name: {"summary": spec.summary, "source": spec.source} for spec in domains.values()})
        rows = [(spec.name, spec.summary, spec.source) for spec in domains.values()]
        console().print(table("Rule presets", ("name", "what it is", "where from"), rows))
        return None
    if name not in domains:
        raise InputError(f"there is no preset `{name}`; there are {', '.join(f'`{one}`' for one in domains)}")
    if as_json:
        return emit(domains[name].tree)
    sys.stdout.write(f"{_compiled(domains[name].tree, plugins).explain()}\nfrom: {domains[name].source}\n")
    return None


def check(file: Annotated[Path, typer.Argument(help="A rule tree as JSON.")], as_json: Json = False) -> None:
    """Whether a rule file can be used, and what it says in words; what is wrong with it if not."""
    from collab_layer.plugins.manager import load

    try:
        source = file.read_bytes()
    except OSError as error:
        raise InputError(f"`{file}` cannot be read: {error.strerror}") from error
    scorer = _compiled(source, load())
    if as_json:
        return emit({"name": scorer.name, "hash": scorer.hash, "words": scorer.explain()})
    sys.stdout.write(f"{scorer.explain()}\n{file} can be used, hash {scorer.hash[:12]}\n")
    return None


def _compiled(source: bytes | Mapping[str, Any], plugins: Plugins) -> Scorer:
    from collab_layer.stages.rules import load as compile_tree

    return compile_tree(source, plugins.features.values())


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
