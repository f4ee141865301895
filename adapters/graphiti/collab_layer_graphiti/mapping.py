"""Graphiti's groups and facts to entities and records, and back.

In:   group ids, and the columns of a fact as the store gives them.
Out:  `Entity`, `MemoryRecord`, group ids that Graphiti takes.
Pure: no SDK, no I/O, no clock.

A group belongs to one entity and an entity has one group: `alice` is `user:alice`,
`agent_coder` is `agent:coder`. Characters that Graphiti refuses are written in hex between
double underscores. No hyphen is ever added: Graphiti's own full-text search finds nothing
in a group whose id has one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from collab_layer.errors import InputError
from collab_layer.ports.stored_facts import Span, links_of, version_of
from collab_layer.types.entity import MAX_TEXT, OWNER_KINDS, Entity, MemoryRecord, MemoryRef

PLAIN_KIND: Final = "user"
"""The kind of entity whose groups have no prefix."""
DERIVED_PREFIX: Final = "collab_for_"
"""Before the group of an owner: the reserved group that holds what was derived for it."""
LINKS: Final = "collab_links"
"""Attribute of a fact with explicit links: entities, as a list or separated by commas."""

_KIND_PREFIX: Final = "collab_kind_"
_PREFIXED: Final = tuple(sorted(OWNER_KINDS - {PLAIN_KIND}))
_TAKEN: Final = (*(f"{kind}_" for kind in _PREFIXED), "collab_")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]+")
_UNFIT_OR_DOUBLE: Final = re.compile(r"(?:[^A-Za-z0-9_-]|_{2,})+")
_CODE: Final = re.compile(r"__((?:[0-9a-f]{2})+)__")
_GROUP: Final = re.compile(r"[A-Za-z0-9_-]+")


def group_of(owner: Entity) -> str:
    """The group that holds an entity's own facts; other entities never have the same one."""
    if owner.kind == PLAIN_KIND:
        plain = _encode(owner.id)
        return f"__{plain[0].encode().hex()}__{plain[1:]}" if plain.startswith(_TAKEN) else plain
    if owner.kind in _PREFIXED:
        return f"{owner.kind}_{_encode(owner.id)}"
    return f"{_KIND_PREFIX}{owner.kind}-{_encode(owner.id)}"


def derived_group(owner: Entity) -> str:
    """The reserved group that holds what was derived for an entity."""
    return DERIVED_PREFIX + group_of(owner)


@lru_cache(4096)
def owner_of(group: object) -> Entity | None:
    """Whose facts a group holds; None for what names nobody, and for reserved groups."""
    if not isinstance(group, str) or not _GROUP.fullmatch(group) or group.startswith(DERIVED_PREFIX):
        return None
    try:
        owner = _read(group)
    except (InputError, UnicodeDecodeError):
        return None
    return owner if group_of(owner) == group else None


def _read(group: str) -> Entity:
    if group.startswith(_KIND_PREFIX):
        kind, _, rest = group.removeprefix(_KIND_PREFIX).partition("-")
        return Entity(kind, _decode(rest))
    for kind in _PREFIXED:
        if group.startswith(f"{kind}_"):
            return Entity(kind, _decode(group.removeprefix(f"{kind}_")))
    return Entity(PLAIN_KIND, _decode(group))


def _encode(id_: str) -> str:
    simple = _UNFIT.sub(_code, id_)
    # Underscores of the id itself could read as a code: then they are written as one.
    return simple if _decoded(simple) == id_ else _UNFIT_OR_DOUBLE.sub(_code, id_)


def _code(found: re.Match[str]) -> str:
    return f"__{found.group().encode().hex()}__"


def _decode(text: str) -> str:
    return _CODE.sub(lambda found: bytes.fromhex(found.group(1)).decode(), text)


def _decoded(text: str) -> str | None:
    try:
        return _decode(text)
    except UnicodeDecodeError:
        return None


def record(
    backend: str, owner: Entity, row: Mapping[str, Any], span: Span, score: float | None = None
) -> MemoryRecord | None:
    """A stored fact as a record; `at` and `valid_to` are when it holds.

    Returns:
        None for a fact without words.
    """
    text = row.get("fact")
    if not isinstance(text, str) or not text.strip():
        return None
    links = links_of(row.get("links"), owner)
    return MemoryRecord(
        ref=MemoryRef(backend=backend, id=str(row["uuid"]), version=version_of(text, span, links)),
        owner=owner,
        text=text[:MAX_TEXT],
        at=span.begin,
        valid_to=span.end,
        links=links,
        score=score,
    )


__all__ = ["DERIVED_PREFIX", "LINKS", "PLAIN_KIND", "derived_group", "group_of", "owner_of", "record"]
