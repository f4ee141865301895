"""Whose search it is, and whether an id in it stands for everybody.

In:   the arguments of a Mem0 call, by name.
Out:  the owner, or None where no single one can be told; the field that holds `*`.
Pure: no SDK, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity
from collab_layer_mem0.mapping import ANY, KINDS, entity

_LOGICAL = ("AND", "OR", "NOT", "$and", "$or", "$not")


def owner_asked(arguments: Mapping[str, Any]) -> Entity | None:
    """The owner a search is about: user, else agent, else run, else app.

    `AND` lists are read through. None where ids sit under `OR` or `NOT`, contradict one
    another or are not plain values, and where anything but ids is filtered: an item of
    somebody else cannot satisfy a condition on the owner's own metadata.
    """
    ids: dict[str, str] = {}
    try:
        for field, value in _conditions(arguments):
            if ids.setdefault(field, value) != value:
                return None
        return next((entity(field, ids[field]) for field in KINDS if field in ids), None)
    except InputError:
        return None


def _conditions(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in KINDS:
        if arguments.get(field) is not None:
            yield field, _plain(arguments[field])
    filters = arguments.get("filters")
    if isinstance(filters, Mapping):
        yield from _inside(cast("Mapping[str, Any]", filters))


def _inside(filters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field, value in filters.items():
        if field in KINDS:
            if value is not None:
                yield field, _plain(value)
        elif field in ("AND", "$and") and isinstance(value, list):
            for part in cast("list[Any]", value):
                if not isinstance(part, Mapping):
                    raise InputError("a condition that is no mapping")
                yield from _inside(cast("Mapping[str, Any]", part))
        else:
            raise InputError("a condition on something else than an id")


def _plain(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise InputError("an id that is no plain value")
    return str(value).strip()


def wildcard_field(arguments: Mapping[str, Any]) -> str | None:
    """The first id field that holds `*`, at the top or anywhere inside the filters."""
    return next(_wildcards({field: arguments.get(field) for field in (*KINDS, "filters")}), None)


def _wildcards(node: Mapping[str, Any]) -> Iterator[str]:
    for field, value in node.items():
        if field in KINDS:
            if any(isinstance(one, str) and one.strip() == ANY for one in _leaves(value)):
                yield field
        elif field == "filters" or field in _LOGICAL:
            parts = cast("list[Any]", value if isinstance(value, list) else [value])
            for part in parts:
                if isinstance(part, Mapping):
                    yield from _wildcards(cast("Mapping[str, Any]", part))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for part in cast("Mapping[str, Any]", value).values():
            yield from _leaves(part)
    elif isinstance(value, (list, tuple)):
        for part in cast("list[Any]", value):
            yield from _leaves(part)
    else:
        yield value


__all__ = ["owner_asked", "wildcard_field"]
