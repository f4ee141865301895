"""Commands about curation rules: `rules show`, `check`, `generate`, `list`, `diff`, `use`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, number, progress, remark, table
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer.plugins.manager import Plugins
    from collab_layer.stages.rules import Scorer
    from collab_layer.types.rules import RuleDiff, RuleFiring, RuleSet, RulesPreview

Domain = Annotated[str | None, typer.Option(help="What this tenant is about, in a few plain words.")]
Which = Annotated[
    str, typer.Argument(metavar="HASH|PRESET|FILE", help="A stored set by its hash, a preset, or a rule file.")
]
SHOWN = 12
"""Characters of a hash that are printed."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    rules = typer.Typer(help="Show, check, generate and choose curation rules.", no_args_is_help=True)
    for name, command in (("show", show), ("check", check), ("generate", generate), ("list", list_)):
        rules.command(name)(command)
    rules.command("diff")(diff)
    rules.command("use")(use)
    app.add_typer(rules, name="rules")


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


def check(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A rule tree as JSON.")],
    data: Annotated[bool, typer.Option("--data", help="Also how each rule fires on this tenant's data.")] = False,
    as_json: Json = False,
) -> None:
    """Whether a rule file can be used, and what it says in words; what is wrong with it if not."""
    from collab_layer.plugins.manager import load

    source = _source(file)
    scorer = _compiled(source, load())
    found: RuleDiff | None = None
    if data:
        with session_of(ctx).layer() as layer, progress() as bar:
            bar.add_task("looking at the data", total=None)
            found = layer.compare_rules(source)
    if as_json:
        said: dict[str, Any] = {"name": scorer.name, "hash": scorer.hash, "words": scorer.explain()}
        on_data = () if found is None else ("firing", "overlap", "owners", "candidates")
        return emit(said | {name: value for name, value in dict(found or ()).items() if name in on_data})
    sys.stdout.write(f"{scorer.explain()}\n{file} can be used, hash {scorer.hash[:SHOWN]}\n")
    if found is not None:
        _on_data(found)
    return None


def generate(
    ctx: typer.Context,
    domain: Domain = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what a model would be shown, and ask none.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have the memory model write rules for this tenant's data; they are stored, not yet in use."""
    with session_of(ctx).layer() as layer, progress() as bar:
        bar.add_task("looking at the data" if dry_run else "looking at the data, asking the model", total=None)
        found = layer.preview_rules(domain) if dry_run else layer.generate_rules(domain)
    if as_json:
        return emit(found)
    return _preview(found) if dry_run else _generated(found)  # pyright: ignore[reportArgumentType]  by `dry_run`


def list_(ctx: typer.Context, as_json: Json = False) -> None:
    """The rule sets stored for this tenant, and what is in use."""
    with session_of(ctx).layer() as layer:
        used, stored = layer.rules_in_use(), layer.rule_sets()
    if as_json:
        return emit({"in_use": used, "stored": stored})
    rows = [
        (one.hash[:SHOWN], one.name, one.made_by, f"{one.at:%Y-%m-%d %H:%M}" if one.at else "", "yes" * one.in_use)
        for one in stored
    ]
    if rows:
        console().print(table("Stored rule sets", ("hash", "name", "made by", "at", "in use"), rows))
    else:
        sys.stdout.write("No rule set is stored. `collab rules generate` has a model write one.\n")
    sys.stdout.write(f"In use: {used.name} ({used.made_by}, {used.hash[:SHOWN]})\n")
    for finding in used.findings if used.made_by in ("preset", "file") else ():
        remark(finding)
    return None


def diff(ctx: typer.Context, which: Which, as_json: Json = False) -> None:
    """What other rules say and choose differently from those in use."""
    with session_of(ctx).layer() as layer, progress() as bar:
        bar.add_task("looking at the data", total=None)
        found = layer.compare_rules(_named(which))
    if as_json:
        return emit(found)
    lines = [("+", line) for line in found.added] + [("-", line) for line in found.removed]
    for before, after in found.changed:
        lines += [("-", before), ("+", after)]
    head = f"{found.before.name} ({found.before.hash[:SHOWN]}) -> {found.after.name} ({found.after.hash[:SHOWN]})"
    sys.stdout.write(head + "\n" + "".join(f"{sign} {line}\n" for sign, line in lines or [("", "no difference")]))
    _on_data(found)
    return None


def use(
    ctx: typer.Context,
    which: Annotated[
        str | None,
        typer.Argument(metavar="HASH|PRESET|FILE", help="A stored set by its hash, a preset, or a rule file."),
    ] = None,
    default: Annotated[bool, typer.Option("--default", help="Back to what the deployment is set to.")] = False,
    as_json: Json = False,
) -> None:
    """Choose this tenant's neighbours by other rules, from the next read on, in every process."""
    if (which is None) != default:
        raise InputError("name a hash, a preset or a file, or pass --default to go back to the deployment's own rules")
    with session_of(ctx).layer() as layer:
        used = layer.use_rules(None if which is None else _named(which))
    if as_json:
        return emit(used)
    sys.stdout.write(f"{used.words}\nIn use from the next read on: {used.name}, {used.hash[:SHOWN]}\n")
    return None


# -- parts -----------------------------------------------------------------------------


def _generated(made: RuleSet) -> None:
    sys.stdout.write(f"{made.words}\n")
    for finding in made.findings:
        sys.stdout.write(f"- {finding}\n")
    spent = ", ".join(f"{one.input_tokens} tokens in, {one.output_tokens} out" for one in made.usage)
    short = made.hash[:SHOWN]
    sys.stdout.write(f"Stored as {short}, written by {made.made_by} ({spent}), not in use.\n")
    remark(f"Compare it with `collab rules diff {short}`, use it with `collab rules use {short}`.")


def _preview(found: RulesPreview) -> None:
    sys.stdout.write(f"{found.instructions}\n\n{found.data}\n")
    remark(f"About {found.tokens} tokens; {found.model or 'no memory model is set'}. Nothing was sent.")


def _on_data(found: RuleDiff) -> None:
    if not found.firing:
        remark("No owner of this tenant may read another, so there is no data to check the rules on.")
        return
    title = f"{found.after.name} on {found.candidates} candidates of {found.owners} owners"
    columns = ("rule", "fires for", "changes", "")
    console().print(table(title, columns, _fires(found.firing), numeric=columns[1:3]))
    if found.overlap is not None:
        sys.stdout.write(f"{_percent(found.overlap)} of the top 16 are those that the rules in use choose too.\n")


def _fires(firing: Sequence[RuleFiring]) -> list[tuple[str, ...]]:
    return [(one.words, _percent(one.fires), _percent(one.acts), one.finding or "") for one in firing]


def _percent(share: float) -> str:
    return f"{number(float(f'{share * 100:.2g}'))} %"


def _named(which: str) -> str:
    """The words of a file, told by `.json` or a folder in its name; else the name as it is."""
    path = Path(which)
    if path.suffix != ".json" and len(path.parts) < 2:
        return which
    source = _source(path)
    if not source.lstrip().startswith("{"):
        raise InputError(f"`{path}` holds no rule tree: it must be a JSON object")
    return source


def _source(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"`{file}` cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"`{file}` is no UTF-8 text") from error


def _compiled(source: str | Mapping[str, Any], plugins: Plugins) -> Scorer:
    from collab_layer.stages.features import BUILTIN
    from collab_layer.stages.rules import load as compile_tree

    return compile_tree(source, [one for name, one in plugins.features.items() if name not in BUILTIN])
