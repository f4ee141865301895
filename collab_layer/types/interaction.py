"""What happened: one actor, perhaps a target, a verb, words, links and an outcome."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity, MemoryRef, Text, Value, entities
from collab_layer.types.time import UtcTime

MAX_LINKS = 64


class Interaction(Value):
    """One thing that happened, as its caller saw it.

    Attributes:
        actor: Whose memory this is.
        target: What it was done to, if anything.
        verb: A lower-case word: `liked`, `read`, `solved`, `remembered`, `described`.
        text: The actor's private words about it, at most 100,000 characters.
        links: Entities it refers to, at most 64.
        outcome: How it ended, in a few words; becomes the "did" of a lesson.
        at: When it happened. The time of recording if not given.
        key: The caller's idempotency key: the same key of the same actor is stored once.
        weight: How strong it was, finite and in [0, 1000]. With 0 it is told, but the actor holds
            nothing by it: with `replaces`, so a liking is taken back.
        ref: The memory in a backend that this reports.
        replaces: The id of an earlier interaction of the same actor whose statement no longer
            holds; it held until this one.
    """

    actor: Entity
    target: Entity | None = None
    verb: str = Field(default="interacted", pattern=r"^[a-z][a-z0-9_-]{0,31}$")
    text: Text | None = None
    links: Annotated[tuple[Entity, ...], BeforeValidator(entities)] = ()
    outcome: Text | None = None
    at: UtcTime | None = None
    key: Text | None = Field(default=None, max_length=512)
    weight: float = 1.0
    ref: MemoryRef | None = None
    replaces: Text | None = Field(default=None, max_length=32)

    @field_validator("weight")
    @classmethod
    def _finite(cls, value: float) -> float:
        if not math.isfinite(value) or not 0 <= value <= 1000:
            raise InputError(f"the weight {value!r} must be a finite number in [0, 1000]")
        return value

    @field_validator("links")
    @classmethod
    def _few(cls, value: tuple[Entity, ...]) -> tuple[Entity, ...]:
        if len(value) > MAX_LINKS:
            raise InputError(f"{len(value)} links were given, at most {MAX_LINKS} are allowed")
        return value

    @field_validator("text", "outcome")
    @classmethod
    def _said(cls, value: Any) -> Any:
        if isinstance(value, str) and not value.strip():
            raise InputError("the text is empty; leave it out, or say something")
        return value


__all__ = ["MAX_LINKS", "Interaction"]
