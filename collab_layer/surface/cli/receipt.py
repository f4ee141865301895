"""Commands about receipts of erasures: `receipt show`, `receipt list`, `receipt key`, `receipt verify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, listing, remark, table
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer import ErasureReceipt


OUTCOMES = {
    "erased": "erased there too",
    "pending": "still to be erased there",
    "partly": "erased there as far as it can; it says that it keeps something",
    "unable": "not erased there; it promises no erasure",
}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    receipts = typer.Typer(no_args_is_help=True, help="What was erased, signed.")
    receipts.command("show")(show)
    receipts.command("list")(list_)
    receipts.command("key")(key)
    receipts.command("verify")(verify)
    app.add_typer(receipts, name="receipt")


def show(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="As `collab forget` printed it.")],
    as_json: Json = False,
) -> None:
    """A receipt as it stands now; with --json, as it is signed and verified."""
    with session_of(ctx).layer() as layer:
        found = layer.receipt(id)
    return emit(found) if as_json else _print(found)


def list_(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="The most to print.")] = 100,
    as_json: Json = False,
) -> None:
    """Receipts as they stand, newest first."""
    with session_of(ctx).layer() as layer:
        found = layer.receipts(limit)
    listing(
        found,
        _line,
        "Receipts",
        ("receipt", "at, UTC", "of", "status", "pending"),
        empty="Nothing was erased.",
        as_json=as_json,
        numeric=("pending",),
    )


def key(ctx: typer.Context, as_json: Json = False) -> None:
    """The public key that this deployment's receipts are verified with; made if there is none yet."""
    with session_of(ctx).layer() as layer:
        public = layer.receipt_key()
    if as_json:
        return emit({"public_key": public})
    sys.stdout.write(public)
    return None


def verify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A receipt as JSON; - is standard input.")],
    key: Annotated[
        str | None, typer.Option("--key", metavar="PUB", help="Who must have signed it: a PEM file, or base64.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Whether a receipt holds. Offline: opens no database. Exit status 1 if it does not."""
    from collab_layer.receipts import verify_receipt  # cryptography loads only for this

    found = verify_receipt(_file(file), None if key is None else _key(key))
    if as_json:
        return emit({"holds": True, "key_checked": key is not None, "receipt": found})
    _print(found)
    sys.stdout.write("The receipt holds: nobody has changed it since it was signed.\n")
    if key is None:
        remark(f"Signed by {found.key}. Whose key that is, only --key checks: collab receipt key > key.pem")
    return None


def _line(one: ErasureReceipt) -> tuple[str | int, ...]:
    return one.id, f"{one.at:%Y-%m-%d %H:%M}", one.action, one.status, one.pending


def _print(found: ErasureReceipt) -> None:
    kinds = {kind: ids.count for kind, ids in found.erased.items()}
    names = sorted({*found.removed, *kinds})
    rows = [(name, found.removed.get(name), kinds.get(name)) for name in names]
    title = f"Receipt {found.id}, revision {found.revision}: {found.status}, {found.at:%Y-%m-%d %H:%M:%S} UTC"
    console().print(table(title, ("removed from", "rows", "ids listed"), rows, numeric=("rows", "ids listed")))
    for name, outcome in found.stores.items():
        sys.stdout.write(f"{name}: {OUTCOMES[outcome]}\n")
    if found.pending:
        sys.stdout.write(f"{found.pending} copies in stores are still to be removed: collab worker --once\n")
    if found.signature is None:
        remark("It is not signed yet: collab doctor says why.")


def _file(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"the receipt `{name}` cannot be read: {error.strerror}") from error


def _key(given: str) -> str:
    """The text of a key, which may be given itself or by a file's name."""
    path = Path(given)
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else given
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the key `{path.name}` cannot be read; pass what `collab receipt key` prints") from error
