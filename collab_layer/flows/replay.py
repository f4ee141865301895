"""Whether links may help text to rank: replayed on what a reader may read, and remembered.

In:   a snapshot cut to one audience.
Out:  yes or no. Nothing that the reader may not read moves the answer.
"""

from __future__ import annotations

from collections import OrderedDict

from collab_layer.graph.linked import links_of, newest_readable
from collab_layer.graph.reader import Reading
from collab_layer.stages.feedback import LEAST, link_rows, pays

ENTRIES = 1_024


class Replays:
    """One process's answers, by the records they rest on; the one unused longest goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, bytes], bool] = OrderedDict()

    def pay(self, reading: Reading, focus: int) -> bool:
        """Whether link feedback ranks better than text alone on the newest records at hand."""
        rows = newest_readable(reading, focus)
        if len(rows) < LEAST:
            return False
        columns = reading.index.cards
        key = (reading.tenant, reading.index.generation, columns.id[rows].tobytes())
        if key not in self._kept:
            held = links_of(reading, columns.id[rows])
            linked = [row for row, links in enumerate(held) if links]
            vectors = reading.index.vectors(rows[linked])
            self._kept[key] = len(linked) >= LEAST and pays(vectors, link_rows([held[row] for row in linked]))
            while len(self._kept) > ENTRIES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


__all__ = ["Replays"]
