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

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, select

from collab_layer.graph.among import one_of
from collab_layer.graph.in_one import in_one, numbers
from collab_layer.graph.lean import Lean
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

_T = terms.c
_NEWEST = (
    select(_T.card, _T.tf)
    .where(_T.tenant == bindparam("tenant"), _T.term == bindparam("term"))
    .order_by(_T.card.desc())
    .limit(bindparam("most"))
    .subquery()
)
_OF_TERM = Lean(select(in_one(_NEWEST.c.card), in_one(_NEWEST.c.tf)))
_SOME = (
    select(_T.term, _T.card, _T.tf)
    .where(_T.tenant == bindparam("tenant"), one_of(_T.term, "terms"))
    .limit(bindparam("most"))
    .subquery()
)
_OF_TERMS = Lean(select(_SOME.c.term, in_one(_SOME.c.card), in_one(_SOME.c.tf)).group_by(_SOME.c.term))
_OF_CARDS = select(terms.c.card, terms.c.term, terms.c.tf).where(
    terms.c.tenant == bindparam("tenant"), terms.c.card.in_(bindparam("cards", expanding=True))
)


class Postings:
    """One tenant's; used under the lock of its index.

    Args:
        tenant: Whose.
        row_of: The row of each card, -1 for those that are gone.
        most: Records of one term that are kept.
    """

    def __init__(self, tenant: str, row_of: Callable[[Ids], Rows], most: int = MOST) -> None:
        self._tenant, self._row_of, self._most = tenant, row_of, most
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
        self._read(connection, [term for term in dict.fromkeys(hashed) if term not in self._kept])
        found = [self._one(connection, term) for term in hashed]
        while self._count > KEPT and len(self._kept) > 1:
            self._count -= len(self._kept.popitem(last=False)[1][0])
        return found

    def _one(self, connection: Connection, term: int) -> Holding:
        if term in self._kept:
            self._kept.move_to_end(term)
            return self._kept[term]
        ((cards, tf),) = _OF_TERM.tuples(connection, {"tenant": self._tenant, "term": term, "most": self._most})
        self._place(term, numbers(cards), numbers(tf))
        return self._kept[term]

    def _read(self, connection: Connection, missing: Sequence[int]) -> None:
        """Several terms at once, unless they have so many records together that one may have too many."""
        if len(missing) < 2 or connection.dialect.name == "sqlite":  # there a statement is no round trip
            return
        rows = _OF_TERMS.tuples(connection, {"tenant": self._tenant, "terms": missing, "most": self._most})
        found = {term: (numbers(cards), numbers(tf)) for term, cards, tf in rows}
        if sum(len(cards) for cards, _ in found.values()) < self._most:
            for term in missing:
                self._place(term, *found.get(term, (numbers(None), numbers(None))))

    def _place(self, term: int, cards: Ids, tf: Ids) -> None:
        rows = self._row_of(cards)
        order = np.argsort(rows, kind="stable")  # quick: they mostly come in order
        order = order[rows[order] >= 0]
        self._put(term, (rows[order], tf[order].astype(np.int16)))

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
