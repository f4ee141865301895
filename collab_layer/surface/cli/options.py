"""Options that several commands share, and how their words are read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of a table.")]
"""The option every command has."""
AsOf = Annotated[str | None, typer.Option(help="Read the past: an ISO 8601 time with a zone.")]
Audience = Annotated[
    str, typer.Option("--to", help="An entity, a group such as team:support, `kind:agent`, or `tenant`.")
]
Embedder = Annotated[
    str | None, typer.Option("--embedder", metavar="NAME", help="Texts to vectors: hashing, onnx:DIR, or a plugin's.")
]
Links = Annotated[list[str] | None, typer.Option("--link", help="An entity it refers to; may be repeated.")]
Owner = Annotated[str, typer.Argument(metavar="OWNER", help="Whose memories, as `kind:id`.")]
Query = Annotated[str | None, typer.Option("--query", "-q", help="What it is about.")]
Who = Annotated[str, typer.Argument(metavar="ENTITY", help="As `kind:id`, for example user:alice.")]


def required(text: str) -> datetime:
    """A time in UTC.

    Raises:
        InputError: No ISO 8601 time, or one without a zone.
    """
    from collab_layer.types.time import utc  # pydantic loads only for commands that read a time

    return utc(text)


def moment(text: str | None) -> datetime | None:
    """A time in UTC, or None.

    Raises:
        InputError: No ISO 8601 time, or one without a zone.
    """
    return None if text is None else required(text)
