"""Commands between organisations: `export`, `import`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, listing, plain, table
from collab_layer.surface.cli.session import session_of


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("export")(export)
    app.command("import")(import_)


def export(
    ctx: typer.Context,
    path: Annotated[Path | None, typer.Argument(metavar="[PATH]", help="Where to write it.")] = None,
    to: Annotated[str, typer.Option(help="For whom, as owners name it in their grants.")] = "federation:all",
    days: Annotated[int, typer.Option(help="Until it ends by itself.")] = 30,
    revoke: Annotated[str | None, typer.Option(metavar="BUNDLE", help="Write a list that revokes it instead.")] = None,
    as_json: Json = False,
) -> None:
    """Write a signed bundle of what several owners have, or revoke one; without a path, list those issued."""
    if path is None and revoke is not None:
        raise InputError("name the file that the list of revocations is to be written to")
    with session_of(ctx).layer() as layer:
        if path is None:
            return _listed(layer.bundles(), as_json)
        made = layer.export_bundle(to, days) if revoke is None else layer.revoke_bundle(revoke)
    _write(path, plain(made))
    if as_json:
        return emit(made)
    if revoke is not None:
        sys.stdout.write(f"{revoke} is revoked. Give {path} to whoever took it.\n")
    else:
        shown = f"{len(made.facets)} facets for {to} until {made.expires:%Y-%m-%d}"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]  a bundle
        sys.stdout.write(f"{path}: {shown}\nRevoke it: collab export LIST --revoke {made.id}\n")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  a bundle
    return None


def import_(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A bundle, or a list of revocations.")],
    trust: Annotated[
        list[str] | None, typer.Option(metavar="KEY=0.3", help="How far an issuer is trusted; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Take what another organisation says, as candidates: all of a bundle or nothing."""
    given = dict(_trust(word) for word in trust or ())
    with session_of(ctx).layer() as layer:
        done = layer.import_bundle(path, given)
    if as_json:
        return emit(done)
    rows = [("taken", done.taken), ("left out", done.left_out), ("dropped", done.dropped), ("trust", done.trust)]
    console().print(table(f"From {done.issuer}", ("facets", ""), rows, numeric=("",)))
    return None


def _listed(found: list[Any], as_json: bool) -> None:
    columns = ("bundle", "for", "issued, UTC", "ends", "facets", "state", "revoke it, since")
    listing(
        found, _issued, "Bundles issued", columns, empty="No bundle was issued.", as_json=as_json, numeric=("facets",)
    )


def _issued(one: Any) -> tuple[Any, ...]:
    at, ends = f"{one.at:%Y-%m-%d %H:%M}", f"{one.expires:%Y-%m-%d}"
    return one.id, str(one.to), at, ends, one.facets, one.state, one.why or ""


def _write(path: Path, value: Any) -> None:
    """The whole file or none."""
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise InputError(f"`{path.name}` cannot be written: {error.strerror}") from error


def _trust(word: str) -> tuple[str, float]:
    key, _, said = word.rpartition("=")
    try:
        return key.strip(), float(said)
    except ValueError as error:
        raise InputError(f"`{word[:80]}` is no trust; write it as KEY=0.3") from error
