"""A real Mem0 without keys, downloads or network, for tests, examples and demos.

In:   a folder, and which vector store.
Out:  a `Memory` or `AsyncMemory` with a hashing embedder and an extraction that repeats
      what the user said. Set `MEM0_TELEMETRY=False` and `MEM0_DIR` before importing this.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import mem0

DIM = 256
Store = Literal["chroma", "qdrant", "faiss"]
_WORD = re.compile(r"\w+")
_USER_LINE = re.compile(r"^user: (.+)$", re.MULTILINE)
_STEM = 5


class HashEmbedding:
    """Words and their first five letters, hashed into 256 signed buckets; unit length."""

    def __init__(self) -> None:
        self.config = _Settings()
        self.calls = 0

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """One vector; the action makes no difference."""
        self.calls += 1
        vector = [0.0] * DIM
        for word in _WORD.findall(text.casefold()):
            for part in (word, word[:_STEM] + "_"):
                digest = blake2b(part.encode(), digest_size=4).digest()
                vector[int.from_bytes(digest[:2]) % DIM] += 1.0 if digest[2] & 1 else -1.0
        length = sum(value * value for value in vector) ** 0.5
        return [value / length for value in vector] if length else vector

    def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        """One vector per text."""
        return [self.embed(text, memory_action) for text in texts]


class _Settings:
    model = "hash"
    embedding_dims = DIM


class EchoModel:
    """Extracts, as facts, the lines that the user said."""

    config = None

    def generate_response(self, messages: list[dict[str, str]], **kwargs: Any) -> str:
        """Mem0's extraction reply for the newest messages in its prompt."""
        said = messages[-1]["content"].rpartition("## New Messages")[2]
        facts = [{"id": str(number), "text": text} for number, text in enumerate(_USER_LINE.findall(said))]
        return json.dumps({"memory": facts})


def open_memory(
    folder: str | Path, store: Store = "chroma", *, cls: type | None = None, collection: str = "memories"
) -> Any:
    """A real Mem0 object in a folder.

    Args:
        folder: Where vectors and history lie; made if it is not there.
        store: Embedded vector store.
        cls: `mem0.Memory` unless another class is given.
        collection: Name of the vector store's collection.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    place: dict[str, Any] = {"collection_name": collection, "path": str(home / store)}
    if store != "chroma":
        place["embedding_model_dims"] = DIM
    if store == "qdrant":
        place["on_disk"] = True
    if store == "faiss":
        place["distance_strategy"] = "cosine"
    return open_configured({"provider": store, "config": place}, home / "history.db", cls=cls)


def open_configured(vector_store: dict[str, Any], history: str | Path, *, cls: type | None = None) -> Any:
    """A real Mem0 object over any vector store, with the embedder and the extraction of this module."""
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    made: Any = cls or mem0.Memory
    memory = made.from_config(
        {"vector_store": vector_store, "embedder": unused, "llm": unused, "history_db_path": str(history)}
    )
    memory.embedding_model, memory.llm = HashEmbedding(), EchoModel()
    return memory


__all__ = ["DIM", "EchoModel", "HashEmbedding", "Store", "open_configured", "open_memory"]
