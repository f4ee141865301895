"""Mem0's own embedding model as the layer's embedder, without paying for a text twice.

In:   texts.
Out:  unit float32 vectors; texts that Mem0 embedded a moment ago come from `Recent`.
      Mem0 itself is never answered from there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from collab_layer.errors import BackendError
from collab_layer.types.graph import Vectors
from collab_layer_mem0.client import failures

KEPT = 512
"""Vectors kept; 3 MB at 1,536 dimensions."""
_OURS = "mem0.embeddings."


class Recent:
    """The last vectors by text; may be used from several threads."""

    def __init__(self, size: int = KEPT) -> None:
        self._size, self._lock = size, Lock()
        self._held: OrderedDict[str, Vectors] = OrderedDict()

    def put(self, text: object, vector: object) -> None:
        """Keep a vector; what is no text or no vector is left out."""
        try:
            row = np.asarray(vector, dtype=np.float32)
        except (TypeError, ValueError):
            return
        if not isinstance(text, str) or row.ndim != 1 or not len(row):
            return
        with self._lock:
            self._held[text] = row
            self._held.move_to_end(text)
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def get(self, text: str) -> Vectors | None:
        """The vector of a text, if it is still kept."""
        with self._lock:
            return self._held.get(text)

    @property
    def dim(self) -> int | None:
        """Length of the vectors seen so far."""
        with self._lock:
            return next((len(row) for row in self._held.values()), None)


class Mem0Embedder:
    """The `Embedder` port over `memory.embedding_model`.

    Args:
        memory: A `Memory` or `AsyncMemory`; its embedding model is read at each call.
        name: Of the backend, for errors.
        recent: Vectors that Mem0 computed itself.
    """

    def __init__(self, memory: Any, name: str, recent: Recent) -> None:
        self._memory, self._name, self._recent = memory, name, recent
        self._dim: int | None = None

    @property
    def id(self) -> str:
        """Provider, model and dimension, for example `openai/text-embedding-3-small/1536`."""
        kind: type = self._memory.embedding_model.__class__  # of the model itself, not of a stand-in for it
        model = getattr(getattr(self._memory.embedding_model, "config", None), "model", None)
        provider = kind.__module__.removeprefix(_OURS) if kind.__module__.startswith(_OURS) else kind.__qualname__
        return f"{provider}/{model or 'default'}/{self.dim}"

    @property
    def dim(self) -> int:
        """As the model's settings say, else as the vectors come; asked once with a short text if need be."""
        if self._dim is None:
            config = getattr(self._memory.embedding_model, "config", None)
            said = getattr(config, "embedding_dims", None)
            self._dim = self._recent.dim or (said if isinstance(said, int) else len(self._ask(["dimension"])[0]))
        return self._dim

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """Unit float32 vectors, shape (len(texts), dim); zeros for a text without content.

        Raises:
            BackendError: The model fails, or gives vectors of another length.
        """
        missing = [text for text in dict.fromkeys(texts) if text.strip() and self._recent.get(text) is None]
        made: dict[str, Vectors] = {}
        if missing:
            with failures(self._name, "its embedding model"):
                rows = await asyncio.to_thread(self._ask, missing)
            made = dict(zip(missing, rows, strict=True))
        return self._stacked([made.get(text) if text in made else self._recent.get(text) for text in texts])

    def _ask(self, texts: Sequence[str]) -> list[Vectors]:
        model = self._memory.embedding_model
        rows = model.embed_batch(list(texts), "add") if hasattr(model, "embed_batch") else None
        if rows is None or len(rows) != len(texts):
            rows = [model.embed(text, "add") for text in texts]
        return [np.asarray(row, dtype=np.float32) for row in rows]

    def _stacked(self, rows: Sequence[Vectors | None]) -> Vectors:
        out = np.zeros((len(rows), self.dim), dtype=np.float32)
        for number, row in enumerate(rows):
            if row is not None:
                if len(row) != self.dim:
                    raise BackendError(self._name, f"its embedding model gave {len(row)} numbers, not {self.dim}")
                out[number] = row
        length = np.linalg.norm(out, axis=1, keepdims=True)
        return np.divide(out, length, out=out, where=length > 0)


__all__ = ["KEPT", "Mem0Embedder", "Recent"]
