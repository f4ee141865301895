"""A real Mem0 that needs no key and no network: `mem0.Memory` over Chroma in a folder, with an embedder of ours.

In:   a folder, a collection's name, an embedder.
Out:  the memory. No model extracts anything: memories are to be added with `infer=False`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from collab_layer.bench import embedders
from collab_layer.errors import CollabError
from collab_layer.ports.models import Embedder


def offline_memory(folder: Path, collection: str, embedder: Embedder | None = None) -> Any:
    """A fresh `mem0.Memory` over Chroma whose files are all below `folder`.

    Args:
        folder: For all its files.
        collection: A name of 3 letters or more.
        embedder: None takes the one that `embedders.opened` opens.

    Raises:
        CollabError: Mem0 or Chroma is not installed.
    """
    for needed in ("mem0", "chromadb"):
        if find_spec(needed) is None:
            raise CollabError(f"`{needed}` is missing: pip install collab-layer-mem0 chromadb")
    quiet(folder)
    from mem0 import Memory

    keyless: dict[str, Any] = {"provider": "openai", "config": {"api_key": "not-used"}}
    memory = Memory.from_config(
        {
            "vector_store": {
                "provider": "chroma",
                "config": {"collection_name": collection, "path": str(folder / "chroma")},
            },
            "history_db_path": str(folder / "history.db"),
            "embedder": keyless,
            "llm": keyless,
        }
    )
    memory.embedding_model = _behind_port(embedder or embedders.opened())
    return memory


def quiet(folder: Path) -> None:
    """Keep Mem0 and Chroma from reporting home and from writing outside `folder`.

    Both read these when they are first imported.
    """
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["ANONYMIZED_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(folder / "mem0")
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it warns of parts that this does without


def _behind_port(embedder: Embedder) -> Any:
    """An embedder of ours behind Mem0's port."""
    from mem0.embeddings.base import EmbeddingBase

    def embed(text: str) -> list[float]:
        return [float(value) for value in asyncio.run(embedder.embed([text]))[0]]

    aside = ThreadPoolExecutor(1)  # Mem0 asks from wherever it is, also from inside an event loop

    class Ours(EmbeddingBase):
        def embed(self, text: str, memory_action: str | None = None) -> Any:
            return aside.submit(embed, text).result()

    return Ours()


__all__ = ["offline_memory", "quiet"]
