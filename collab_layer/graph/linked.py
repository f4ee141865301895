"""The links of records that may tell which records are alike, as a reader may see them.

In:   a `Reading`, already cut to its audience.
Out:  links by record, topics left out: those were read from the same words that text is ranked by.
"""

from __future__ import annotations

import json
from math import isqrt

import numpy as np
from sqlalchemy import select

from collab_layer.graph.reader import Reading
from collab_layer.graph.tables import cards
from collab_layer.types.graph import Counts, Ids, Rows

SAMPLE, BLOCK = 256, 32
"""Newest records that a replay looks at; it is repeated when so many have come since."""
_TOPIC = "topic:"


def links_of(reading: Reading, ids: Ids) -> list[tuple[int, ...]]:
    """What each record refers to, ascending, in the order given."""
    c, held = cards.c, dict[int, tuple[int, ...]]()
    wanted: list[int] = ids.tolist()
    names = reading.index.names
    for start in range(0, len(wanted), 400):
        query = select(c.id, c.links).where(
            c.tenant == reading.tenant, c.id.in_(wanted[start : start + 400]), c.quarantine.is_(None)
        )
        for row in reading.connection.execute(query):
            links: list[int] = json.loads(row.links)
            held[row.id] = tuple(
                sorted({one for one in links if one < len(names) and not names[one].startswith(_TOPIC)})
            )
    return [held.get(id_, ()) for id_ in wanted]


def newest_readable(reading: Reading, focus: int) -> Rows:
    """Rows of the newest records with a vector that others let the reader quote, oldest first.

    The newest few are left out, so that the same rows are meant until `BLOCK` more have come.
    """
    held = reading.index.cards
    standing = reading.readable(focus) & held.has_vector
    rows = np.flatnonzero(standing)
    unsettled = len(rows) % BLOCK
    most = SAMPLE + unsettled
    if len(rows) > most:
        # All are as new as the oldest of as many of a part: few others are, in whatever order they came.
        part = rows[:: len(rows) // isqrt(len(rows) * most)]
        rows = np.flatnonzero(standing & (held.at >= _nth(held.at[part], most)))
        at = held.at[rows]
        rows = rows[at >= _nth(at, most)]
    order = rows[np.lexsort((held.id[rows], held.at[rows]))]
    return order[: len(order) - unsettled][-SAMPLE:].astype(np.int32)


def _nth(values: Counts, n: int) -> int:
    """The n-th largest."""
    return int(np.partition(values, len(values) - n)[len(values) - n])


__all__ = ["BLOCK", "SAMPLE", "links_of", "newest_readable"]
