"""Letta behind the collaborative layer: agents' memories, a signal block, a pull tool.

In:   a `Letta` or `AsyncLetta` client, or a memory folder of Letta Code.
Out:  a store for the layer; `attach` and `detach` for one agent.
      Nothing is imported from Letta's SDK until one of the names below is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collab_layer_letta.agents import Attachment, attach, attach_async, detach, detach_async
    from collab_layer_letta.backend import LettaBackend
    from collab_layer_letta.keeper import Keeper, Report
    from collab_layer_letta.memfs import MemFsBackend

_HOME = {
    "Attachment": "agents",
    "Keeper": "keeper",
    "LettaBackend": "backend",
    "MemFsBackend": "memfs",
    "Report": "keeper",
    "attach": "agents",
    "attach_async": "agents",
    "detach": "agents",
    "detach_async": "agents",
}

__all__ = [
    "Attachment",
    "Keeper",
    "LettaBackend",
    "MemFsBackend",
    "Report",
    "attach",
    "attach_async",
    "detach",
    "detach_async",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
