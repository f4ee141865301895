"""Which records hold a term, kept in memory for the terms that were asked for.

In:   a snapshot, the rows of a tenant's cards, hashed terms.
Out:  per term the rows that hold it, ascending, and how often.

A term is read whole when it is first asked for; later only what was added since. Rows of cards that
died stay in it: whoever reads asks which are alive. A term that more than `MOST` records hold is known
by its newest `MOST`: it tells next to nothing, and its idf stays that of an everyday word.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, select

from collab_layer.graph.tables import terms
from collab_layer.types.graph import Ids, Rows

MOST = 200_000
"""Records of one term that are kept."""
KEPT = 4_000_000
"""Records of all terms together, 6 bytes each."""
ANEW = 2_000
"""Cards added at once from which on what is kept is read anew."""
_CHUNK = 400

Holding = tuple[Rows, NDArray[np.int16]]

_OF_TERM = (
    select(terms.c.card, terms.c.tf)
    .where(terms.c.tenant == bindparam("tenant"), terms.c.term == bindparam("term"))
    .order_by(terms.c.card.desc())
    .limit(MOST)
)
_OF_CARDS = select(terms.c.card, terms.c.term, terms.c.tf).where(
    terms.c.tenant == bindparam("tenant"), terms.c.card.in_(bindparam("cards", expanding=True))
)


class Postings:
    """One tenant's; used under the lock of its index.

    Args:
        tenant: Whose.
        row_of: The row of each card, -1 for those that are gone.
    """

    def __init__(self, tenant: str, row_of: Callable[[Ids], Rows]) -> None:
        self._tenant, self._row_of = tenant, row_of
        self._kept: OrderedDict[int, Holding] = OrderedDict()
        self._seen = 0
        self._count = 0

    def of(self, connection: Connection, hashed: Sequence[int], cards: Ids) -> list[Holding]:
        """Who holds each term.

        Args:
            connection: The snapshot that the rows are of.
            hashed: The terms.
            cards: The card of every row, dead ones too.
        """
        self._catch_up(connection, cards)
        found = [self._one(connection, term) for term in hashed]
        while self._count > KEPT and len(self._kept) > 1:
            self._count -= len(self._kept.popitem(last=False)[1][0])
        return found

    def _one(self, connection: Connection, term: int) -> Holding:
        if term in self._kept:
            self._kept.move_to_end(term)
            return self._kept[term]
        pairs = connection.execute(_OF_TERM, {"tenant": self._tenant, "term": term}).all()
        # Flat: of a sequence of rows numpy asks each row, in vain, whether it is an array.
        read = np.fromiter(chain.from_iterable(pairs), np.int64).reshape(-1, 2)
        rows = self._row_of(read[:, 0])
        order = np.argsort(rows)
        order = order[rows[order] >= 0]
        self._put(term, (rows[order], read[order, 1].astype(np.int16)))
        return self._kept[term]

    def _put(self, term: int, holding: Holding) -> None:
        before = self._kept.get(term)
        self._count += len(holding[0]) - (0 if before is None else len(before[0]))
        self._kept[term] = holding

    def _catch_up(self, connection: Connection, cards: Ids) -> None:
        """Take in the terms of rows added since the last look."""
        fresh, self._seen = cards[self._seen :], len(cards)
        if len(fresh) > ANEW:
            self._kept.clear()
            self._count = 0
        if not self._kept or not len(fresh):
            return
        added: dict[int, dict[int, int]] = {}
        for start in range(0, len(fresh), _CHUNK):
            given = {"tenant": self._tenant, "cards": fresh[start : start + _CHUNK].tolist()}
            for card, term, tf in connection.execute(_OF_CARDS, given):
                if term in self._kept:
                    added.setdefault(term, {})[card] = tf
        for term, of in added.items():
            self._add(term, of)

    def _add(self, term: int, of: dict[int, int]) -> None:
        rows = self._row_of(np.fromiter(of, np.int64, len(of)))
        tf = np.fromiter(of.values(), np.int16, len(of))
        order = np.argsort(rows)
        order = order[rows[order] >= 0]
        old = self._kept[term]
        self._put(term, (np.concatenate([old[0], rows[order]]), np.concatenate([old[1], tf[order]])))


__all__ = ["MOST", "Postings"]
