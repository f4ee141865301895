"""Edges as one snapshot shows them, each node read once, however many look at it.

In:   the adjacency, a snapshot, the present.
Out:  an `Adjacency` of that snapshot; nodes that are known to be looked at are read at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from collab_layer.graph.adjacency import Adjacency, Around, Kind


class Seen(Adjacency):
    """One snapshot of the present; not to be used beyond it."""

    def __init__(self, of: Adjacency, connection: Connection, tenant: str, now: int) -> None:
        self._of, self._snapshot, self._tenant, self._now = of, connection, tenant, now
        self._found: dict[int, Around] = {}

    def around(
        self, connection: Connection, tenant: str, nodes: Sequence[int], *, as_of: int | None = None, now: int = 0
    ) -> dict[int, Around]:
        """Those of the snapshot, whatever moment is named."""
        self._read(nodes)
        return {node: self._found[node] for node in nodes}

    def around_each(self, nodes: Sequence[int], cap: int) -> None:
        """Read what lies around some nodes: their groups, and the newest `cap` of their targets."""
        self._read(nodes)
        near: dict[int, None] = {}
        for node in nodes:
            mine = self._found[node]
            near.update(dict.fromkeys(mine.ends(Kind.INTERACTED, Kind.MENTIONS)[:cap].tolist()))
            near.update(dict.fromkeys(mine.ends(Kind.MEMBER_OF).tolist()))
        self._read(list(near))

    def _read(self, nodes: Sequence[int]) -> None:
        missing = [node for node in nodes if node not in self._found]
        if missing:
            self._found |= self._of.around(self._snapshot, self._tenant, missing, now=self._now)


__all__ = ["Seen"]
