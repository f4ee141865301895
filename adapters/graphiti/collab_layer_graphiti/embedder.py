"""The embedder that Graphiti was given, as the layer's embedder; used on the driver's loop.

In:   texts.
Out:  unit float32 vectors for the layer; lists as they are for the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphiti_core.embedder.client import EmbedderClient

from collab_layer.errors import BackendError
from collab_layer.types.graph import Vectors
from collab_layer_graphiti.client import Graph


class GraphitiEmbedder:
    """The `Embedder` port over one of Graphiti's embedders.

    Args:
        client: Nobody else's: it belongs to the loop it is used on.
        graph: Whose loop that is.
        store: Name of the backend, for errors.
    """

    def __init__(self, client: EmbedderClient, graph: Graph, store: str) -> None:
        self._client, self._graph, self._store = client, graph, store
        self._config: Any = getattr(client, "config", None)

    @property
    def id(self) -> str:
        """Class, model and dimension, for example `OpenAIEmbedder/text-embedding-3-small/1024`."""
        model = getattr(self._config, "embedding_model", None)
        return f"{type(self._client).__name__}/{model or 'default'}/{self.dim}"

    @property
    def dim(self) -> int:
        """As the embedder's settings say.

        Raises:
            BackendError: They do not say it.
        """
        said = getattr(self._config, "embedding_dim", None)
        if not isinstance(said, int):
            raise BackendError(self._store, "its embedder does not say its dimension: give it `config.embedding_dim`")
        return said

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """Unit float32 vectors, shape (len(texts), dim); zeros for a text without content.

        Raises:
            BackendError: The embedder fails, or gives vectors of another length.
        """
        rows = await self.lists(list(dict.fromkeys(text for text in texts if text.strip())))
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for number, text in enumerate(texts):
            if text in rows:
                if len(rows[text]) != self.dim:
                    raise BackendError(self._store, f"its embedder gave {len(rows[text])} numbers, not {self.dim}")
                out[number] = rows[text]
        length = np.linalg.norm(out, axis=1, keepdims=True)
        return np.divide(out, length, out=out, where=length > 0)

    async def lists(self, texts: Sequence[str]) -> dict[str, list[float]]:
        """The vector of each text as Graphiti would store it."""
        return await self._graph.away(lambda: self._ask(texts)) if texts else {}

    async def _ask(self, texts: Sequence[str]) -> dict[str, list[float]]:
        lines = [text.replace("\n", " ") for text in texts]  # as Graphiti does before it embeds a fact
        try:
            rows = await self._client.create_batch(lines)
        except NotImplementedError:
            rows = [await self._client.create([line]) for line in lines]
        return {text: [float(value) for value in row] for text, row in zip(texts, rows, strict=True)}


__all__ = ["GraphitiEmbedder"]
