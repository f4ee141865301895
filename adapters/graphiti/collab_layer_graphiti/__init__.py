"""Graphiti behind the collaborative layer: facts with a time axis.

In:   where a Graphiti graph is.
Out:  `GraphitiBackend` for `layer.attach` and `layer.index`; `SharedFalkorDriver` for a
      Graphiti of your own over the same graph. Nothing is imported from Graphiti until one
      of the names below is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collab_layer_graphiti.backend import GraphitiBackend
    from collab_layer_graphiti.driver import SharedFalkorDriver
    from collab_layer_graphiti.facts import Fact
    from collab_layer_graphiti.mapping import derived_group, group_of, owner_of
    from collab_layer_graphiti.place import Place

_HOME = {
    "Fact": "facts",
    "GraphitiBackend": "backend",
    "Place": "place",
    "SharedFalkorDriver": "driver",
    "derived_group": "mapping",
    "group_of": "mapping",
    "owner_of": "mapping",
}

__all__ = ["Fact", "GraphitiBackend", "Place", "SharedFalkorDriver", "derived_group", "group_of", "owner_of"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
