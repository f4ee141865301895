"""What language models cost and whether they answer: `usage`, and the model rows of `doctor`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import console, emit, table
from collab_layer.surface.cli.session import Session, session_of

if TYPE_CHECKING:
    from collab_layer import CollabLayer
    from collab_layer.errors import ModelError

Row = tuple[str, str, str]
"""Part, condition, detail."""

WELL = ("ok", "empty", "set", "rules")
"""Conditions that leave `doctor` at exit status 0."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("usage")(usage)


def usage(
    ctx: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=400, help="How many days (UTC) back, today included.")] = 1,
    as_json: Json = False,
) -> None:
    """What this tenant spent on language models, by day, role, stage and model."""
    with session_of(ctx).layer() as layer:
        spent = layer.usage(days)
    if as_json:
        return emit(spent)
    if not spent:
        sys.stdout.write("No language model was asked.\n")
        return None
    rows = [
        (one.day, one.role, one.stage, one.model, one.calls, one.failed, one.input_tokens, one.output_tokens)
        for one in spent
    ]
    columns = ("day", "role", "stage", "model", "calls", "failed", "tokens in", "tokens out")
    console().print(table("Spent on language models", columns, rows, numeric=columns[4:]))
    calls = sum(one.calls for one in spent)
    tokens = sum(one.input_tokens + one.output_tokens for one in spent)
    sys.stdout.write(f"{calls} calls, {tokens} tokens in all\n")
    return None


def parts_of(layer: CollabLayer, session: Session, *, ask_models: bool) -> list[Row]:
    """The layer's own parts, and for the operator a row for each role's model."""
    rows = [(part.name, str(part.condition), part.detail) for part in layer.health().parts]
    if session.principal is None:
        models = layer.models(ask=ask_models)
        rows += [(f"{row.role} model", str(row.condition), row.detail) for row in models]
    return rows


def parts_without_models(session: Session, error: ModelError) -> list[Row]:
    """Everything else, where a model cannot be opened as it is set up."""
    from collab_layer.config import RoleSettings
    from collab_layer.sync import CollabLayer

    bare = session.settings().model_copy(update={"memory": RoleSettings(), "reasoning": RoleSettings()})
    with CollabLayer.open(session.url, tenant=session.tenant, settings=bare) as layer:
        rows = [(part.name, str(part.condition), part.detail) for part in layer.health().parts]
    return [*rows, ("models", "down", str(error))]
