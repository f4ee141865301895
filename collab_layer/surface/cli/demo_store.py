"""A real Mem0 that needs no key and no network, in a folder of its own.

In:   a folder.
Out:  a `mem0.Memory` over Chroma, with our hashing embedder in place of a paid one.
      Nothing is extracted by a model: memories are added with `infer=False`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from collab_layer.errors import CollabError

INSTALL = "the demo runs over Mem0; install its adapter: pip install collab-layer-mem0 chromadb"


def open_memory(folder: Path) -> Any:
    """A fresh `mem0.Memory` whose files are all below `folder`.

    Raises:
        CollabError: Mem0, Chroma or our adapter is not installed.
    """
    quiet(folder)
    for needed in ("mem0", "chromadb", "collab_layer_mem0"):
        if find_spec(needed) is None:
            raise CollabError(f"`{needed}` is missing; {INSTALL}")
    from mem0 import Memory

    files = str(folder / "chroma")
    keyless: dict[str, Any] = {"provider": "openai", "config": {"api_key": "not-used"}}
    memory = Memory.from_config(
        {
            "vector_store": {
                "provider": "chroma",
                "config": {"collection_name": "demo", "path": files},
            },
            "history_db_path": str(folder / "history.db"),
            "embedder": keyless,
            "llm": keyless,
        }
    )
    memory.embedding_model = _hashing()
    return memory


def quiet(folder: Path) -> None:
    """Keep Mem0 and Chroma from reporting home and from writing outside `folder`.

    Both read these when they are first imported.
    """
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["ANONYMIZED_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(folder / "mem0")
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it warns of parts that the demo does without


def _hashing() -> Any:
    """Our embedder behind Mem0's port."""
    from mem0.embeddings.base import EmbeddingBase

    from collab_layer.plugins.manager import load

    embedder = load().embedders["hashing"].open()

    def embed(text: str) -> list[float]:
        return [float(value) for value in asyncio.run(embedder.embed([text]))[0]]

    aside = ThreadPoolExecutor(1)  # Mem0 asks from wherever it is, also from inside an event loop

    class Hashing(EmbeddingBase):
        def embed(self, text: str, memory_action: str | None = None) -> Any:
            return aside.submit(embed, text).result()

    return Hashing()
