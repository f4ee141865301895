"""Reading facts that a store keeps with their times: what adapters of such stores have in common.

In:   rows as the store gives them, field by field.
Out:  the span in which a fact holds, its links, what names its content; what could not be read.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, cast

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import MAX_LINKS

SLACK: Final = timedelta(days=1)
"""More than any offset from UTC: a store may compare times as text, whatever zone they are written in."""

_log = logging.getLogger(__name__)


class Span(NamedTuple):
    """From `begin`, inclusive, to `end`, exclusive; None is open."""

    begin: datetime
    end: datetime | None

    def holds(self, at: datetime) -> bool:
        """Whether the fact holds at an aware time."""
        return self.begin <= at and (self.end is None or at < self.end)


class UnreadableTimeError(ValueError):
    """A stored time is no time; `field` says which."""

    def __init__(self, field: str) -> None:
        self.field = field
        super().__init__(f"`{field}` is no time")


class Unread:
    """Facts that are left out because a time of theirs cannot be read; each is logged once.

    Attributes:
        fields: By the fact's id, which of its times it is.
    """

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}

    def span(self, id_: str, read: Callable[[], Span | None]) -> Span | None:
        """What `read` gives; None, and kept in mind, if it raises `UnreadableTimeError`."""
        try:
            span = read()
        except UnreadableTimeError as error:
            if id_ not in self.fields:
                _log.warning("fact `%s` is left out: its `%s` is no time", id_, error.field)
            self.fields[id_] = error.field
            return None
        self.fields.pop(id_, None)
        return span

    def complaint(self) -> str:
        """How many there are, with an example; empty if there are none."""
        if not self.fields:
            return ""
        id_, field = next(iter(self.fields.items()))
        return f"{len(self.fields)} facts are left out, such as `{id_}`: correct its `{field}`"


def span_between(begin: datetime | None, end: datetime | None, field: str) -> Span | None:
    """When a fact holds; None if it ends before it begins.

    Raises:
        UnreadableTimeError: There is nothing to begin at; `field` is where it is looked for first.
    """
    if begin is None:
        raise UnreadableTimeError(field)
    return None if end is not None and end <= begin else Span(begin, end)


def first_moment(row: Mapping[str, Any], fields: tuple[str, ...]) -> datetime | None:
    """The first of some fields that is given, as an aware time.

    Raises:
        UnreadableTimeError: It is no time.
    """
    for field in fields:
        value = row.get(field)
        if value is not None and value != "":
            return moment(field, value)
    return None


def moment(field: str, value: Any) -> datetime:
    """A stored time in UTC; one without a zone is UTC.

    Raises:
        UnreadableTimeError: It is no time.
    """
    native = value.to_native() if hasattr(value, "to_native") else value
    try:
        read = datetime.fromisoformat(native) if isinstance(native, str) else native
        if not isinstance(read, datetime):
            raise UnreadableTimeError(field)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableTimeError(field) from error


def around(at: datetime) -> tuple[datetime, datetime]:
    """Bounds, `SLACK` before and after an aware time, for a query that must lose nothing.

    What it gives is checked again with `Span.holds`.
    """
    low, high = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    return (at - SLACK if at - low > SLACK else low), (at + SLACK if high - at > SLACK else high)


def links_of(value: object, owner: Entity) -> tuple[Entity, ...]:
    """The entities in a `collab_links` attribute; what is none is left out; at most 64."""
    given = value.split(",") if isinstance(value, str) else value
    found: dict[Entity, None] = {}
    for text in cast("list[object]", given) if isinstance(given, list) else ():
        try:
            found[Entity.parse(str(text).strip())] = None
        except InputError:
            continue
    found.pop(owner, None)
    return tuple(found)[:MAX_LINKS]


def version_of(text: str, span: Span, links: tuple[Entity, ...]) -> str:
    """What changes whenever the words, the time or the links do."""
    content = "\x1f".join([text, str(span.begin), str(span.end), *map(str, links)])
    return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:16]


__all__ = [
    "SLACK",
    "Span",
    "UnreadableTimeError",
    "Unread",
    "around",
    "first_moment",
    "links_of",
    "moment",
    "span_between",
    "version_of",
]
