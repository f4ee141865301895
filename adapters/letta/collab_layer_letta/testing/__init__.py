"""A Letta server in memory, for tests, examples and adapters of others.

In:   nothing.
Out:  `FakeLetta`, with a transport for either of the SDK's clients.
"""

from __future__ import annotations

from collab_layer_letta.testing.fake import FakeLetta, Turn
from collab_layer_letta.testing.routes import transport

__all__ = ["FakeLetta", "Turn", "transport"]
