"""A Mem0 that needs no key and no network, so that the examples run anywhere.

Yours is `mem0.Memory()` with your own configuration.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(prefix="collab-example-"))
os.environ.update(MEM0_TELEMETRY="False", ANONYMIZED_TELEMETRY="False", MEM0_DIR=str(FOLDER / "mem0"))

logging.getLogger("mem0").setLevel(logging.ERROR)  # it warns of parts that are not needed here

from mem0 import Memory  # noqa: E402  it reads the lines above when it is imported
from mem0.embeddings.base import EmbeddingBase  # noqa: E402  as above


class HashedWords(EmbeddingBase):
    """Each word adds one to a place of the vector."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """A unit vector of length 256."""
        vector = [0.0] * 256
        for word in text.lower().split():
            vector[int(hashlib.sha256(word.strip(".,;:!?").encode()).hexdigest(), 16) % 256] += 1.0
        length = sum(value * value for value in vector) ** 0.5 or 1.0
        return [value / length for value in vector]


def offline_memory() -> Memory:
    """A `mem0.Memory` over Chroma in a temporary folder."""
    keyless = {"provider": "openai", "config": {"api_key": "not-used"}}
    store = {"provider": "chroma", "config": {"collection_name": "example", "path": str(FOLDER / "chroma")}}
    memory = Memory.from_config(
        {"vector_store": store, "history_db_path": str(FOLDER / "history.db"), "embedder": keyless, "llm": keyless}
    )
    memory.embedding_model = HashedWords()
    return memory
