"""Letta Code's memory: a git folder of Markdown files, read and written with git itself.

In:   a folder, and whose memory it is.
Out:  `MemFsBackend`.
"""

from __future__ import annotations

from collab_layer_letta.memfs.backend import MemFsBackend

__all__ = ["MemFsBackend"]
