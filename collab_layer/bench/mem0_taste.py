"""Mem0 by itself as isolated memory of taste: how like a thing is to what its owner holds, by Mem0's own search.

In:   what a user holds and some things, as texts.
Out:  a score per thing.
Never: anything of another user: each history is a user of its own, added as it is (`infer=False`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from collab_layer.bench.mem0_offline import offline_memory
from collab_layer.bench.mem0_store import added, search
from collab_layer.bench.phases import Clock, unclocked
from collab_layer.ports.models import Embedder
from collab_layer.types.graph import Floats

NAME = "mem0"
NEAREST = 3
"""Memories whose scores are averaged, as in the layer's own feature of the same kind."""


class Mem0Taste:
    """A Mem0 in a temporary folder.

    Args:
        texts: Of every thing.
        embedder: Of the run.
    """

    def __init__(self, texts: Mapping[int, str], embedder: Embedder) -> None:
        self._texts = texts
        self._folder = Path(tempfile.mkdtemp(prefix="collab-mem0-"))
        self._memory = offline_memory(self._folder, "taste", embedder)
        self._users = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def scores(self, held: Sequence[int], items: Sequence[int], clock: Clock = unclocked) -> Mapping[str, Floats]:
        """Mean score of the nearest own memories that Mem0 finds for each thing's text, shape (n,); 0 without one."""
        self._users += 1
        user = f"user:u{self._users}"
        with clock("mem0_write"):
            for item in held:
                added(self._memory, user, self._texts[item], {})
        with clock(NAME):
            return {NAME: np.array([self._nearest(user, self._texts[item]) for item in items])}

    def _nearest(self, user: str, text: str) -> float:
        scores = [float(row.get("score") or 0.0) for row in search(self._memory, user, text, NEAREST)]
        return float(np.mean(scores)) if scores else 0.0


__all__ = ["NAME", "Mem0Taste"]
