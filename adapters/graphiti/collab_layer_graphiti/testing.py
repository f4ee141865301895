"""A real Graphiti without keys or network, for tests, examples and measurements.

In:   where a graph is.
Out:  a `Graphiti` with a hashing embedder and a language model that must not be asked.
      Set `GRAPHITI_TELEMETRY_ENABLED=false` before importing this.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, cast

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.driver import GraphDriver
from graphiti_core.embedder.client import EmbedderClient, EmbedderConfig
from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.config import LLMConfig

DIM = 384
_WORD = re.compile(r"\w+")
_STEM = 5


class HashEmbedder(EmbedderClient):
    """Words and their first five letters, hashed into signed buckets; unit length.

    Args:
        dim: Length of a vector.
    """

    def __init__(self, dim: int = DIM) -> None:
        self.config = EmbedderConfig(embedding_dim=dim)

    async def create(self, input_data: Any) -> list[float]:
        """One vector, of a text or of a list with one."""
        vector = [0.0] * self.config.embedding_dim
        text = cast("list[Any]", input_data)[0] if isinstance(input_data, list) else input_data
        for word in _WORD.findall(str(text).casefold()):
            for part in (word, word[:_STEM] + "_"):
                digest = blake2b(part.encode(), digest_size=4).digest()
                vector[int.from_bytes(digest[:3]) % len(vector)] += 1.0 if digest[3] & 1 else -1.0
        length = sum(value * value for value in vector) ** 0.5
        return [value / length for value in vector] if length else vector

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        """One vector per text."""
        return [await self.create(text) for text in input_data_list]


class AsGiven(CrossEncoderClient):
    """Ranks passages in the order in which they came."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """Each passage with one over its place."""
        return [(text, 1.0 / (1 + place)) for place, text in enumerate(passages)]


class NoModel(LLMClient):
    """A language model that must not be asked; `calls` says whether it was."""

    def __init__(self) -> None:
        super().__init__(LLMConfig(api_key="none", model="none"), cache=False)
        self.calls = 0

    async def _generate_response(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self.calls += 1
        raise AssertionError("the language model was asked")


def open_graphiti(driver: GraphDriver, model: LLMClient | None = None) -> Graphiti:
    """A Graphiti over a driver of the caller's."""
    return Graphiti(
        graph_driver=driver, llm_client=model or NoModel(), embedder=HashEmbedder(), cross_encoder=AsGiven()
    )


__all__ = ["DIM", "AsGiven", "HashEmbedder", "NoModel", "open_graphiti"]
