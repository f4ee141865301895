"""A fact that an owner states itself, with its time: what adapters of stores that keep facts take.

In:   words, times, links.
Out:  the same, checked before anything is sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Self, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity, Text, Value, entities
from collab_layer.types.time import UtcTime

STATES: Final = "STATES"
"""The relation of a fact that has no name of its own."""


class StatedFact(Value):
    """What an owner holds true, and when.

    Attributes:
        text: The statement, at most 100,000 characters.
        valid_at: From when it holds; from now if None.
        invalid_at: Until when; None is open. Later than `valid_at`.
        about: Name of the node it points to; the owner itself if None.
        name: The store's name for the relation, upper case.
        links: Entities it refers to.
        attributes: Flat: text without NUL, finite numbers, truth values; lists of them where `LISTS`.
        key: The same key of the same owner is stored once; text and times if None.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset()
    """Attribute names that are the store's own; those that begin with `collab_` are ours."""
    UNFIT: ClassVar[str] = ""
    """Characters that the store cannot keep in an attribute name."""
    LISTS: ClassVar[bool] = False
    """Whether it keeps lists."""

    text: Text
    valid_at: UtcTime | None = None
    invalid_at: UtcTime | None = None
    about: Text | None = None
    name: str = Field(default=STATES, pattern=r"^[A-Z][A-Z0-9_]{0,63}$")
    links: Annotated[tuple[Entity, ...], BeforeValidator(entities)] = ()
    attributes: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    key: Text | None = None

    @field_validator("text", "about", "key")
    @classmethod
    def _said(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise InputError("the text is empty")
        return value

    @field_validator("attributes")
    @classmethod
    def _flat(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        shape = "a flat list" if cls.LISTS else "a number"
        for key, held in value.items():
            if key in cls.RESERVED or key.startswith("collab_"):
                raise InputError(f"the attribute `{key}` has a reserved name; choose another")
            if not key or not key.isprintable() or any(one in key for one in cls.UNFIT):
                raise InputError(f"the attribute name {key!r} cannot be stored; use letters, digits and underscores")
            parts = cast("list[Any]", held) if cls.LISTS and isinstance(held, list) else [held]
            if not all(map(_is_plain, parts)):
                raise InputError(f"the attribute `{key}` nests or is no plain value; make it text or {shape}")
        return value

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.valid_at is not None and self.invalid_at is not None:
            check_order(self.valid_at, self.invalid_at)
        return self

    @property
    def content_key(self) -> str:
        """`key`, else the text with its times."""
        return self.key or f"{self.text}|{self.valid_at}|{self.invalid_at}"

    def begin(self, now: datetime) -> datetime:
        """From when it holds.

        Raises:
            InputError: It would end before it begins.
        """
        begin = self.valid_at or now
        if self.invalid_at is not None:
            check_order(begin, self.invalid_at)
        return begin


def check_order(begin: datetime, end: datetime) -> None:
    """Refuse a fact that would end before it begins.

    Raises:
        InputError: It would.
    """
    if end <= begin:
        raise InputError(f"the fact would end at {end.isoformat()}, but begin at {begin.isoformat()}")


def _is_plain(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (str, int, bool)) and not (isinstance(value, str) and "\x00" in value)


__all__ = ["STATES", "StatedFact", "check_order"]
