"""A fact that an owner states itself, with its time, stored without a language model.

In:   words, times, attributes.
Out:  the edge to store.
Pure: no SDK, no I/O, no clock.

Everything is checked before anything is sent: Zep's own types take any text for a time, and
what is wrong comes back when a part of a batch may be stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Final, Self, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity, Text, Value, entities
from collab_layer.types.time import UtcTime
from collab_layer_zep.mapping import LINKS

STATES: Final = "STATES"
Edge = dict[str, Any]
"""An edge as the API takes it."""


class Fact(Value):
    """What an owner holds true, and when.

    Attributes:
        text: The statement, at most 100,000 characters.
        valid_at: From when it holds; from now if None.
        invalid_at: Until when; None is open. Later than `valid_at`.
        about: Name of the node it points to; the owner itself if None.
        name: Zep's name for the relation, upper case.
        links: Entities it refers to, kept as the attribute `collab_links`.
        attributes: Flat: text, finite numbers, truth values. Zep takes only those that the ontology
            of the graph defines for `name`; so it does with `collab_links`.
        key: The same key of the same owner is stored once; text and times if None.
    """

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
        for key, held in value.items():
            if key.startswith("collab_"):
                raise InputError(f"the attribute `{key}` has a reserved name; choose another")
            if not key or not key.isprintable():
                raise InputError(f"the attribute name {key!r} cannot be stored; use letters, digits and underscores")
            if not _plain(held):
                raise InputError(f"the attribute `{key}` nests or is no plain value; make it text or a number")
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


def key_of(owner: Entity, fact: Fact) -> str:
    """What a fact is known by in the ledger; nothing of its text can be read from it."""
    said = fact.key or f"{fact.text}|{fact.valid_at}|{fact.invalid_at}"
    return f"fact:{sha256(f'{owner}|{said}'.encode()).hexdigest()[:32]}"


def edge(owner: Entity, fact: Fact, now: datetime) -> Edge:
    """What to store of an owner's fact.

    Raises:
        InputError: It would end before it begins.
    """
    begin = fact.valid_at or now
    if fact.invalid_at is not None:
        check_order(begin, fact.invalid_at)
    attributes = dict(fact.attributes)
    if fact.links:
        attributes[LINKS] = ",".join(map(str, fact.links))
    stored: Edge = {
        "fact": fact.text,
        "fact_name": fact.name,
        "source_node": {"name": owner.id},
        "target_node": {"name": fact.about or owner.id},
        "valid_at": begin.isoformat(),
    }
    if fact.invalid_at is not None:
        stored["invalid_at"] = fact.invalid_at.isoformat()
    return {**stored, "attributes": attributes} if attributes else stored


def _plain(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (str, int, bool)) and not (isinstance(value, str) and "\x00" in value)


def nodes_of(edges: list[Edge]) -> list[str]:
    """The names of the nodes that edges hang between, each once."""
    ends = (cast("dict[str, str]", one[end]) for one in edges for end in ("source_node", "target_node"))
    return list(dict.fromkeys(end["name"] for end in ends if "name" in end))


__all__ = ["STATES", "Edge", "Fact", "check_order", "edge", "key_of", "nodes_of"]
