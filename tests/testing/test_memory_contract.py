"""The in-memory store keeps the whole contract, with every ability and with none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from collab_layer.testing import InMemoryBackend, InMemoryContract
from collab_layer.types.graph import Vectors


class LetterEmbedder:
    """Counts letters; enough to be an embedder."""

    id = "letters-1"
    dim = 64

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        counts = np.zeros((len(texts), self.dim), np.float32)
        for row, text in enumerate(texts):
            for letter in text:
                counts[row, ord(letter) % self.dim] += 1
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


class TestEveryAbility(InMemoryContract):
    @pytest.fixture
    def backend(self) -> InMemoryBackend:
        return InMemoryBackend(embedder=LetterEmbedder())


class TestNoAbility(InMemoryContract):
    @pytest.fixture
    def backend(self) -> InMemoryBackend:
        return InMemoryBackend(can=())
