"""A real Mem0 for the demo, or what to install.

In:   a folder.
Out:  a `mem0.Memory` over Chroma, with our hashing embedder in place of a paid one.
      Nothing is extracted by a model: memories are added with `infer=False`.
"""

from __future__ import annotations

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
    from collab_layer.bench.mem0_offline import offline_memory, quiet

    quiet(folder)
    for needed in ("mem0", "chromadb", "collab_layer_mem0"):
        if find_spec(needed) is None:
            raise CollabError(f"`{needed}` is missing; {INSTALL}")
    return offline_memory(folder, "demo")


__all__ = ["INSTALL", "open_memory"]
