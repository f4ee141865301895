"""Mem0 behind the collaborative layer, and a drop-in for Mem0's own classes.

In:   a `Memory`, `AsyncMemory`, `MemoryClient` or `AsyncMemoryClient`.
Out:  the same object's class, with `search` that also brings what neighbours know.
      Nothing is imported from Mem0 until one of the names below is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collab_layer_mem0.backend import Mem0Backend, Mem0PlatformBackend, backend_for
    from collab_layer_mem0.refusals import DerivedReadOnlyError, WildcardIdError
    from collab_layer_mem0.wrapper import AsyncMemory, Memory, backend_of, collaborative

_HOME = {
    "AsyncMemory": "wrapper",
    "DerivedReadOnlyError": "refusals",
    "Mem0Backend": "backend",
    "Mem0PlatformBackend": "backend",
    "Memory": "wrapper",
    "WildcardIdError": "refusals",
    "backend_for": "backend",
    "backend_of": "wrapper",
    "collaborative": "wrapper",
}

__all__ = [
    "AsyncMemory",
    "DerivedReadOnlyError",
    "Mem0Backend",
    "Mem0PlatformBackend",
    "Memory",
    "WildcardIdError",
    "backend_for",
    "backend_of",
    "collaborative",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
