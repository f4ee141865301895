"""Who or what has memory, and where a memory lies.

`Entity` is a kind and an id, written `user:alice`; strings are accepted wherever
an entity is. Ids are normalised to NFC, so that one name is one entity.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler
from pydantic_core import core_schema

from collab_layer.errors import InputError, InvalidEntityError
from collab_layer.types.time import UtcTime

MAX_ID = 256
MAX_TEXT = 100_000
_KIND = re.compile(r"[a-z][a-z0-9_]{0,31}")
_FORBIDDEN = re.compile(r"[\s*/\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

OWNER_KINDS = frozenset({"user", "agent", "team", "session", "app"})
"""Kinds that hold memories of their own; everything else is a thing they refer to."""


class Entity:
    """Anything with memory: `user:alice`, `agent:coder-a`, `item:dune`, `topic:go-modules`.

    Args:
        kind: A lower-case word of at most 32 letters, digits or underscores.
        id: At most 256 characters; no white space, `*`, `/`, control or invisible
            direction characters, and no half of a surrogate pair.

    Raises:
        InvalidEntityError: kind or id cannot be used; the message says why.
    """

    __slots__ = ("_text", "id", "kind")
    kind: str
    id: str
    _text: str

    def __init__(self, kind: str, id: str) -> None:
        normal = unicodedata.normalize("NFC", id)
        given = f"{kind}:{id}"
        if not _KIND.fullmatch(kind):
            raise InvalidEntityError(given, "the kind must be a lower-case word such as `user`")
        if not normal:
            raise InvalidEntityError(given, "the id is empty")
        if len(normal) > MAX_ID:
            raise InvalidEntityError(given, f"the id has {len(normal)} characters, at most {MAX_ID} are allowed")
        bad = _FORBIDDEN.search(normal)
        if bad:
            raise InvalidEntityError(given, f"the id contains {bad.group()!r}")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "id", normal)
        object.__setattr__(self, "_text", f"{kind}:{normal}")

    @classmethod
    def parse(cls, text: Entity | str) -> Entity:
        """Read `kind:id`; an `Entity` passes through.

        Raises:
            InvalidEntityError: The text has no kind, or kind or id cannot be used.
        """
        if isinstance(text, Entity):
            return text
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  callers pass anything
            raise InvalidEntityError(repr(text), "it must be text")
        kind, colon, name = text.partition(":")
        if not colon:
            raise InvalidEntityError(text, "the kind is missing")
        return cls(kind, name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an Entity cannot be changed")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Entity({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entity) and self._text == other._text

    def __lt__(self, other: Entity) -> bool:
        return self._text < other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return Entity, (self.kind, self.id)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse,
            serialization=core_schema.to_string_ser_schema(),
            json_schema_input_schema=core_schema.str_schema(),
        )


def checked_text(value: Any) -> Any:
    """Refuse text that no stage could use: too long, or not encodable.

    Raises:
        InputError: More than 100,000 characters, NUL, or lone surrogates.
    """
    if not isinstance(value, str):
        return value
    if len(value) > MAX_TEXT:
        raise InputError(f"the text has {len(value)} characters, at most {MAX_TEXT} are allowed; split it")
    if "\x00" in value:
        raise InputError("the text contains a NUL character; remove it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError("the text contains half of a surrogate pair; it is not valid Unicode") from error
    return value


Text = Annotated[str, BeforeValidator(checked_text)]


class Value(BaseModel):
    """A frozen value; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class MemoryRef(Value):
    """Where a memory lies: which backend, under which native id, at which version."""

    backend: Text
    id: Text
    version: Text = ""


class MemoryRecord(Value):
    """One memory as its store has it.

    `owner` is whose memory it is; `links` are entities the store itself attached.
    `version` changes whenever the content does.
    """

    ref: MemoryRef
    owner: Entity
    text: str
    at: UtcTime | None = None
    valid_to: UtcTime | None = None
    links: tuple[Entity, ...] = ()
    score: float | None = None


def entities(values: Any) -> tuple[Entity, ...]:
    """Parse a list of entities; order is kept, doubles are dropped."""
    if isinstance(values, (str, Entity)):
        values = (values,)
    return tuple(dict.fromkeys(Entity.parse(value) for value in values))


__all__ = ["OWNER_KINDS", "Entity", "MemoryRecord", "MemoryRef", "Text", "Value", "entities"]
