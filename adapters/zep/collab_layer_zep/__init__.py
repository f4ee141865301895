"""Zep Cloud behind the collaborative layer, and its own client with what neighbours know.

In:   a `Zep` or `AsyncZep` of zep-cloud 4.
Out:  a store for the layer; the same client, whose contexts and edge searches carry a
      delimited section; user groups as audiences. Nothing is imported from Zep's SDK until
      one of the names below is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collab_layer_zep.backend import ZepBackend
    from collab_layer_zep.facts import Fact
    from collab_layer_zep.groups import Mirrored, mirror_groups, mirror_groups_async
    from collab_layer_zep.refusals import (
        ZepAuthError,
        ZepBusyError,
        ZepConflictError,
        ZepGoneError,
        ZepRejectedError,
        ZepResidueError,
        ZepTaskError,
        ZepTooLargeError,
        ZepVersionError,
    )
    from collab_layer_zep.wrapper import backend_of, collaborative

_HOME = {
    "Fact": "facts",
    "Mirrored": "groups",
    "ZepAuthError": "refusals",
    "ZepBackend": "backend",
    "ZepBusyError": "refusals",
    "ZepConflictError": "refusals",
    "ZepGoneError": "refusals",
    "ZepRejectedError": "refusals",
    "ZepResidueError": "refusals",
    "ZepTaskError": "refusals",
    "ZepTooLargeError": "refusals",
    "ZepVersionError": "refusals",
    "backend_of": "wrapper",
    "collaborative": "wrapper",
    "mirror_groups": "groups",
    "mirror_groups_async": "groups",
}

__all__ = [
    "Fact",
    "Mirrored",
    "ZepAuthError",
    "ZepBackend",
    "ZepBusyError",
    "ZepConflictError",
    "ZepGoneError",
    "ZepRejectedError",
    "ZepResidueError",
    "ZepTaskError",
    "ZepTooLargeError",
    "ZepVersionError",
    "backend_of",
    "collaborative",
    "mirror_groups",
    "mirror_groups_async",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
