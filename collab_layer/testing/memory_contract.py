"""The contract filled in for the in-memory store: an example to copy.

In:   nothing.
Out:  `InMemoryContract`, whose `backend` fixture a subclass may override.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from collab_layer.ports.backend import MemoryBackend
from collab_layer.testing.contract import BackendContract
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.entity import Entity, MemoryRef


class InMemoryContract(BackendContract):
    """How an owner uses the in-memory store, as the contract's hooks."""

    any_loop = True

    @pytest.fixture
    def backend(self) -> MemoryBackend:
        """An empty store with every ability that needs no embedder."""
        return InMemoryBackend()

    def put(self, backend: InMemoryBackend, owner: Entity, text: str) -> MemoryRef:
        """Add a memory."""
        return backend.add(owner, text)

    def remove(self, backend: InMemoryBackend, ref: MemoryRef) -> None:
        """Delete a memory."""
        backend.delete(ref)

    def edit(self, backend: InMemoryBackend, ref: MemoryRef, text: str) -> None:
        """Change a memory."""
        backend.edit(ref, text)

    def traces(self, backend: InMemoryBackend, text: str) -> list[str]:
        """Look through all it holds."""
        return [held for held in backend.texts() if text in held]

    @contextmanager
    def outage(self, backend: InMemoryBackend) -> Generator[None, None, None]:
        """Switch it off for a while."""
        backend.down = True
        try:
            yield
        finally:
            backend.down = False


__all__ = ["InMemoryContract"]
