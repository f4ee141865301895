"""Replies: strict in what is asked for, lenient in what is taken.

In:   the closed ids and the bounds of one question.
Out:  a JSON schema that names them all, on a pydantic type that takes whatever came instead.
Pure. The schema keeps to what providers' strict modes and grammars understand: every property
required, nothing else allowed, enumerations, and the longest, most, lowest and highest values.
What still does not fit is for the stage's `read` to put right and to count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from math import isfinite
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

JsonSchema = dict[str, Any]
MAX_CHARS = 4_000
"""Characters read of one text in a reply."""
_ID = re.compile(r"(?<![^\W_])[a-z]\d{1,4}(?![^\W_])")
_CITED = re.compile(r"\s*[\[(]\s*[a-z]\d{1,4}(?:\s*[,;]?\s*[a-z]\d{1,4})*\s*[\])]")


def text(longest: int) -> JsonSchema:
    """A text of at most so many characters."""
    return {"type": "string", "maxLength": longest}


def whole(low: int, high: int) -> JsonSchema:
    """A whole number in [low, high]."""
    return {"type": "integer", "minimum": low, "maximum": high}


def one_of(ids: Sequence[str]) -> JsonSchema:
    """One of these ids; any short text where there is none, since an empty enumeration is no schema."""
    return {"type": "string", "enum": list(ids)} if ids else text(8)


def many(of: JsonSchema, most: int, least: int = 0) -> JsonSchema:
    """A list of `least` to `most`."""
    return {"type": "array", "items": of, "minItems": least, "maxItems": most}


def some_of(ids: Sequence[str], most: int, least: int = 0) -> JsonSchema:
    """A list of these ids, `least` to `most` of them; empty where there is none."""
    most = min(most, len(ids))
    return many(one_of(ids), most, min(least, most))


def obj(**properties: JsonSchema) -> JsonSchema:
    """An object with exactly these properties, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class Lenient(BaseModel):
    """A part of a reply. What it lacks is empty, what it has too much is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _only_the_list(cls, value: Any) -> Any:
        """A list where an object was asked for is taken as its first field."""
        return {next(iter(cls.model_fields)): cast("list[Any]", value)} if isinstance(value, list) else value


Part = TypeVar("Part", bound=BaseModel)


def closed(base: type[Part], schema: JsonSchema) -> type[Part]:
    """The same type under this JSON schema.

    Args:
        base: Validates leniently.
        schema: Of the whole reply, made by the functions above.
    """

    def described(cls: type[BaseModel], core: Any, handler: Any) -> JsonSchema:
        return deepcopy(schema)

    body = {"__module__": base.__module__, "__get_pydantic_json_schema__": classmethod(described)}
    return cast("type[Part]", type(base)(base.__name__, (base,), body))


def taken(base: type[Part], reply: BaseModel) -> Part:
    """A reply as `base`, whatever type it came as."""
    return reply if isinstance(reply, base) else base.model_validate(reply.model_dump())


def reply_tokens(rows: int, chars: int, ids: int, *, cyrillic: bool) -> int:
    """The longest reply of use: every row at every bound, spread over lines as small models like to.

    A reply that is cut off is worth nothing and costs as much, so this is well above what is usual.

    Args:
        rows: Objects in the list, > 0.
        chars: The longest text of a row.
        ids: The most ids in a row.
        cyrillic: The texts take two characters a token, not four.
    """
    return 16 + rows * (chars // (2 if cyrillic else 4) + 6 * ids + 24)


def without_ids(said: str) -> str:
    """A text without ids in brackets: outside of the prompt they mean nothing."""
    return _CITED.sub("", said)


def _text(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return value[:MAX_CHARS].encode("utf-8", "ignore").decode() if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _id(value: Any) -> str:
    return next(iter(_ids(value)), "")


def _ids(value: Any) -> tuple[str, ...]:
    """Ids in the order named, repeats kept; what is none stays as it is, so that it is counted."""
    if value is None or value == "":
        return ()
    if isinstance(value, (list, tuple)):
        return tuple(id_ for one in cast("Sequence[Any]", value) for id_ in _ids(one))
    known = cast("list[str]", _ID.findall(_text(value).casefold()))
    return tuple(known) if known else (_text(value)[:40] or "?",)


def _parts(value: Any) -> list[Any]:
    """Objects as they are; what is none becomes an empty one, so that it is counted."""
    if value is None:
        return []
    many_ = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
    return [one if isinstance(one, (dict, BaseModel)) else {} for one in cast("Sequence[Any]", many_)]


Text = Annotated[str, BeforeValidator(_text)]
"""Any value; empty where it is no text and no number."""
Number = Annotated[float | None, BeforeValidator(_number)]
"""Any value; None where it is no finite number."""
Id = Annotated[str, BeforeValidator(_id)]
"""Any value; the first id in it."""
Ids = Annotated[tuple[str, ...], BeforeValidator(_ids)]
"""Any value; every id in it."""
Parts = BeforeValidator(_parts)
"""For a tuple of `Lenient`s: `Annotated[tuple[X, ...], Parts]`."""

__all__ = [
    "Id",
    "Ids",
    "JsonSchema",
    "Lenient",
    "Number",
    "Part",
    "Parts",
    "Text",
    "closed",
    "many",
    "obj",
    "one_of",
    "reply_tokens",
    "some_of",
    "taken",
    "text",
    "whole",
    "without_ids",
]
