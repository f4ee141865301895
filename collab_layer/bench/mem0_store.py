"""A real Mem0 as a contestant, with nothing of ours in it but the embedder.

In:   records, added as they are (`infer=False`: no model is asked).
Out:  what Mem0's own search finds, filled into the budget in its order.
`alone` searches the asking entity's memories, as Mem0 does; `shared` those of everybody. A private
record keeps its entity's name and is searched for that entity only.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from collab_layer.bench.stores import EVERYONE, Item
from collab_layer.errors import CollabError
from collab_layer.plugins.manager import load
from collab_layer.types.tokens import estimate_tokens

FOUND = 60
"""Memories that one search brings, before those that came later are left out."""
_POOL = "everyone"


class Mem0Store:
    """Mem0 over Chroma in a temporary folder.

    Args:
        shares: False gives each entity a memory of its own; True puts what is for everyone together.
    """

    def __init__(self, *, shares: bool = False) -> None:
        self._shares = shares
        self._folder = Path(tempfile.mkdtemp(prefix="collab-mem0-"))
        self._memory = offline_memory(self._folder, "bench")
        self._at: dict[str, datetime] = {}

    async def add(self, entity: str, text: str, links: Sequence[str], t: datetime, scope: str) -> str:
        """See `Store.add`; Mem0 takes no links."""
        whose = _POOL if self._shares and scope == EVERYONE else entity
        done = await asyncio.to_thread(self._memory.add, text, user_id=whose, infer=False)
        id_ = str(done["results"][0]["id"])
        self._at[id_] = t
        return id_

    async def context(self, entity: str, query: str, t: datetime, budget: int) -> list[Item]:
        """See `Store.context`."""
        rows: list[dict[str, Any]] = []
        for whose in (entity, _POOL) if self._shares else (entity,):
            found = await asyncio.to_thread(
                self._memory.search, query, filters={"user_id": whose}, top_k=FOUND, threshold=0.0
            )
            rows += found["results"]
        rows.sort(key=lambda row: -float(row.get("score") or 0.0))
        items: list[Item] = []
        for row in rows:
            cost = estimate_tokens(row["memory"]) + 1
            if cost <= budget and self._at[row["id"]] <= t:
                items.append(Item(row["memory"], (row["id"],), cost))
                budget -= cost
        return items

    async def aclose(self) -> None:
        """Close it and remove its files."""
        await asyncio.to_thread(self._memory.close)
        shutil.rmtree(self._folder, ignore_errors=True)


def alone() -> Mem0Store:
    """Mem0 as it is: each entity finds its own memories."""
    return Mem0Store()


def shared() -> Mem0Store:
    """The naive pool: one Mem0 for everybody."""
    return Mem0Store(shares=True)


def offline_memory(folder: Path, collection: str) -> Any:
    """A fresh `mem0.Memory` over Chroma whose files are all below `folder`, with our hashing embedder.

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
    memory.embedding_model = _hashing()
    return memory


def quiet(folder: Path) -> None:
    """Keep Mem0 and Chroma from reporting home and from writing outside `folder`.

    Both read these when they are first imported.
    """
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["ANONYMIZED_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(folder / "mem0")
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it warns of parts that this does without


def _hashing() -> Any:
    """Our embedder behind Mem0's port."""
    from mem0.embeddings.base import EmbeddingBase

    embedder = load().embedders["hashing"].open()

    def embed(text: str) -> list[float]:
        return [float(value) for value in asyncio.run(embedder.embed([text]))[0]]

    aside = ThreadPoolExecutor(1)  # Mem0 asks from wherever it is, also from inside an event loop

    class Hashing(EmbeddingBase):
        def embed(self, text: str, memory_action: str | None = None) -> Any:
            return aside.submit(embed, text).result()

    return Hashing()


__all__ = ["Mem0Store", "alone", "offline_memory", "quiet", "shared"]
