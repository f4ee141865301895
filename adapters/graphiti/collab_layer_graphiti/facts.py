"""A fact that an owner states itself, with its time, stored without a language model.

In:   words, times, attributes.
Out:  the two nodes and the fact to store.
Pure: no SDK, no I/O, no clock.

Everything is checked before anything is stored: Graphiti takes a time without a zone for
UTC, drops attributes that bear its own names or overwrites itself with them, and fails in
the store over attributes that nest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity, Text, Value, entities
from collab_layer.types.time import UtcTime
from collab_layer_graphiti.derived import name_of, node, stable_id
from collab_layer_graphiti.mapping import LINKS, group_of

RESERVED: Final = frozenset(
    {"uuid", "group_id", "name", "fact", "fact_embedding", "episodes", "created_at", "expired_at", "valid_at"}
    | {"invalid_at", "reference_time", "source_uuid", "target_uuid", "source_node_uuid", "target_node_uuid"}
)
"""Attribute names that are Graphiti's own."""


class Fact(Value):
    """What an owner holds true, and when.

    Attributes:
        text: The statement, at most 100,000 characters.
        valid_at: From when it holds; from now if None.
        invalid_at: Until when; None is open. Later than `valid_at`.
        about: Name of the node it points to; the owner itself if None.
        name: Graphiti's name for the relation, upper case.
        links: Entities it refers to.
        attributes: Flat: text, numbers, truth values, or lists of them.
        key: The same key of the same owner is stored once; text and times if None.
    """

    text: Text
    valid_at: UtcTime | None = None
    invalid_at: UtcTime | None = None
    about: Text | None = None
    name: str = Field(default="STATES", pattern=r"^[A-Z][A-Z0-9_]{0,63}$")
    links: Annotated[tuple[Entity, ...], BeforeValidator(entities)] = ()
    attributes: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    key: Text | None = None

    @field_validator("text")
    @classmethod
    def _said(cls, value: str) -> str:
        if not value.strip():
            raise InputError("the text is empty")
        return value

    @field_validator("attributes")
    @classmethod
    def _flat(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        for key, held in value.items():
            if key in RESERVED or key.startswith("collab_"):
                raise InputError(f"the attribute `{key}` has a reserved name; choose another")
            if not key or "`" in key or not key.isprintable():
                raise InputError(f"the attribute name {key!r} cannot be stored; use letters, digits and underscores")
            parts = cast("list[Any]", held) if isinstance(held, list) else [held]
            if not all(_plain(part) for part in parts):
                raise InputError(f"the attribute `{key}` nests or is no plain value; make it text or a flat list")
        return value

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.valid_at is not None and self.invalid_at is not None:
            check_order(self.valid_at, self.invalid_at)
        return self


def check_order(begin: datetime, end: datetime) -> None:
    """Refuse a fact that would end before it begins.

    Raises:
        InputError: It would.
    """
    if end <= begin:
        raise InputError(f"the fact would end at {end.isoformat()}, but begin at {begin.isoformat()}")


def row(owner: Entity, fact: Fact, now: datetime, vector: list[float] | None) -> dict[str, Any]:
    """What to store of an owner's fact.

    Raises:
        InputError: It would end before it begins.
    """
    group, begin = group_of(owner), fact.valid_at or now
    if fact.invalid_at is not None:
        check_order(begin, fact.invalid_at)
    key = fact.key or f"{fact.text}|{fact.valid_at}|{fact.invalid_at}"
    stored: dict[str, Any] = {
        "uuid": stable_id(group, key),
        "group_id": group,
        "name": fact.name,
        "fact": fact.text,
        "episodes": list[str](),
        "created_at": now,
        "valid_at": begin,
        "invalid_at": fact.invalid_at,
        LINKS: [str(link) for link in fact.links],
        **fact.attributes,
    }
    source, target = node(group, name_of(owner), now), node(group, fact.about or name_of(owner), now)
    return {"source": source, "target": target, "fact": stored, "vector": vector}


def _plain(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (str, int, bool)) and not (isinstance(value, str) and "\x00" in value)


__all__ = ["RESERVED", "Fact", "check_order", "row"]
