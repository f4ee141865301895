"""Zep's users, graphs and edges to entities and records, and back.

In:   user ids, graph names, and edges as the API gives them.
Out:  `Entity`, `MemoryRecord`, refs.
Pure: no SDK, no I/O, no clock.

A user is `user:` and its `user_id`; one without is `user:uuid:<uuid>`. A standalone graph is
the entity that its name reads as, `agent:coder`; any other is `app:uuid:<uuid>`. Different
users never become one entity. Refs are `<graph uuid>/<edge uuid>`, since Zep finds an edge
in its graph only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote, unquote
from uuid import UUID

from collab_layer.errors import InputError
from collab_layer.ports.stored_facts import Span, links_of, version_of
from collab_layer.types.entity import MAX_TEXT, Entity, MemoryRecord, MemoryRef

USER: Final = "user"
BY_UUID: Final = "uuid:"
"""Begins the id of an entity whose user or graph has no name of its own."""
RESERVED: Final = "collab:for:"
"""Begins the name of a graph that holds what was derived for an entity."""
LINKS: Final = "collab_links"
"""Attribute of a fact with explicit links: entities, as a list or separated by commas."""
BLANK: Final = "(taken back)"
"""What stands in place of a text between being taken back and being deleted."""
RETRACTED: Final = "collab_retracted_at"
"""Attribute of a fact that is not to be read any more."""

_UNFIT: Final = re.compile(
    r"[\s*/\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]|%(?=[0-9A-Fa-f]{2})"
)
_OTHER: Final = re.compile(r"[^\x00-\x7f]")


class Ref(NamedTuple):
    """Where a fact lies."""

    graph: str
    edge: str

    def __str__(self) -> str:
        return f"{self.graph}/{self.edge}"


def ref_of(id_: str) -> Ref | None:
    """The graph and the edge in a ref's id; None for what is none of ours."""
    graph, _, edge = id_.partition("/")
    return Ref(graph, edge) if is_uuid(graph) and is_uuid(edge) else None


def is_uuid(text: object) -> bool:
    """Whether Zep would take it for an id; its SDK puts anything else into the path as it is."""
    try:
        return isinstance(text, str) and str(UUID(text)) == text.lower()
    except ValueError:
        return False


def user_entity(user_id: object, uuid: object) -> Entity | None:
    """Whose a user's graph is; None for an id of more than 256 characters, encoded."""
    native = user_id if isinstance(user_id, str) and user_id else None
    try:
        return Entity(USER, f"{BY_UUID}{uuid}" if native is None else encode(native))
    except InputError:
        return None


def graph_entity(label: object, uuid: object) -> Entity | None:
    """Whose a standalone graph is, by its name; None for a reserved one."""
    text = label if isinstance(label, str) else ""
    if text.startswith(RESERVED):
        return None
    try:
        named = Entity.parse(text)
    except InputError:
        named = None
    if named is not None and named.kind != USER and str(named) == text and not named.id.startswith(BY_UUID):
        return named
    return Entity("app", f"{BY_UUID}{uuid}")


def user_id_of(owner: Entity) -> str | None:
    """The `user_id` behind a user; None where it has none, or the owner is no user."""
    return None if owner.kind != USER or owner.id.startswith(BY_UUID) else unquote(owner.id, errors="surrogatepass")


def uuid_of(owner: Entity) -> str | None:
    """The uuid of the user or graph that an entity is named by; None where it is named otherwise."""
    uuid = owner.id.removeprefix(BY_UUID)
    return uuid if owner.kind in (USER, "app") and uuid != owner.id and is_uuid(uuid) else None


def reserved_name(owner: Entity) -> str:
    """The name of the graph that holds what was derived for an entity."""
    return f"{RESERVED}{owner}"


def reserved_owner(name: object) -> Entity | None:
    """For whom a reserved graph is; None for any other graph."""
    if not isinstance(name, str) or not name.startswith(RESERVED):
        return None
    try:
        return Entity.parse(name.removeprefix(RESERVED))
    except InputError:
        return None


def record(
    backend: str, owner: Entity, graph: str, row: Mapping[str, Any], span: Span, score: float | None = None
) -> MemoryRecord | None:
    """An edge as a record; `at` and `valid_to` are when its fact holds.

    Returns:
        None for what is no fact of the owner's: no words, an edge to an episode, retracted.
    """
    text, attributes = row.get("fact"), _attributes(row)
    if not isinstance(text, str) or not text.strip() or text == BLANK:
        return None
    if row.get("scope") == "episodic" or attributes.get(RETRACTED):
        return None
    links = links_of(attributes.get(LINKS), owner)
    ref = Ref(graph, str(row["uuid"]))
    return MemoryRecord(
        ref=MemoryRef(backend=backend, id=str(ref), version=version_of(text, span, links)),
        owner=owner,
        text=text.replace("\x00", " ")[:MAX_TEXT],
        at=span.begin,
        valid_to=span.end,
        links=links,
        score=score,
    )


def _attributes(row: Mapping[str, Any]) -> Mapping[str, Any]:
    held = row.get("attributes")
    return cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else {}


def encode(native: str) -> str:
    """Write a native id or name so that an `Entity` takes it; two ids never become one."""
    fit = _UNFIT.sub(_percent, native)
    fit = fit if unicodedata.normalize("NFC", fit) == fit else _OTHER.sub(_percent, fit)
    return f"%{ord(fit[0]):02X}{fit[1:]}" if fit.startswith(BY_UUID) else fit


def _percent(found: re.Match[str]) -> str:
    return quote(found.group(), safe="", errors="surrogatepass")


__all__ = [
    "BLANK",
    "BY_UUID",
    "LINKS",
    "RESERVED",
    "RETRACTED",
    "USER",
    "Ref",
    "encode",
    "graph_entity",
    "is_uuid",
    "record",
    "ref_of",
    "reserved_name",
    "reserved_owner",
    "user_entity",
    "user_id_of",
    "uuid_of",
]
