"""The entry point of `collab`: global options, every command, one line for an error.

In:   the arguments of the command line.
Out:  0 if it worked, 2 for bad input, 1 for any other failure; never a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collab_layer.errors import CollabError, InputError
from collab_layer.surface.cli import (
    bench,
    demo,
    federation,
    governing,
    info,
    learning,
    policies,
    reading,
    receipt,
    rules,
    serving,
    sharing,
    spending,
    upkeep,
    working,
)
from collab_layer.surface.cli.session import Session

if TYPE_CHECKING:
    from pydantic import ValidationError


def run() -> None:
    """Run the command line of this process."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit status."""
    from collab_layer.plugins.manager import load

    app = build()
    load().add_commands(app)  # what could not be loaded is told by `collab backends`
    try:
        app(args=list(arguments), prog_name="collab")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except InputError as error:
        return _fail(str(error), 2)
    except CollabError as error:
        return _fail(str(error), 1)
    except _invalid() as error:
        return _fail(_first(error.errors()), 2)
    return 0


def build() -> typer.Typer:
    """The application with our own commands."""
    app = typer.Typer(
        name="collab",
        help="A graph between owners, above the memory stores they already use.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_globals)
    consent = (sharing, policies, receipt, governing, federation)
    for room in (demo, reading, *consent, working, upkeep, learning, serving, info, rules, spending, bench):
        room.register(app)
    return app


def _globals(
    context: typer.Context,
    url: Annotated[str, typer.Option(envvar="COLLAB_URL", help="The layer's file or database URL.")] = "collab.db",
    tenant: Annotated[str, typer.Option(envvar="COLLAB_TENANT", help="Nothing crosses it.")] = "default",
    principal: Annotated[
        str | None,
        typer.Option("--as", envvar="COLLAB_AS", help="Who is asking; the operator if left out."),
    ] = None,
    purpose: Annotated[str | None, typer.Option(envvar="COLLAB_PURPOSE", help="For what; grants may ask.")] = None,
) -> None:
    """Which layer, and as whom."""
    context.obj = Session(url=url, tenant=tenant, principal=principal, purpose=purpose)


def _invalid() -> type[ValidationError]:
    """What pydantic raises, imported when something was raised and not for `--help`."""
    from pydantic import ValidationError

    return ValidationError


def _first(errors: Sequence[Any]) -> str:
    first = errors[0]
    return f"`{'.'.join(str(part) for part in first['loc'])}`: {first['msg']}"


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return status
