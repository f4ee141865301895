"""Which record is read first: the ending that several independent principals tell, where there is one.

In:   records that answer a query, best first: whose, how each ended, how much of the query it shares.
Out:  the place of the record to put in front, or None where nothing is corroborated.
Pure. Who copies the question ranks above everybody who merely knows the answer; it has no second
witness, however often it says so. Sybils, many verified principals of one hand, do have: the
order then follows the larger crowd, and says no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from collab_layer.stages.alike import words

COMPARED = 64
"""Records that are looked at, best first."""
SAME = 0.65
"""Jaccard of words from which two endings are one, if their numbers are the same."""
NEAR = 0.5
"""Part of the best record's share of the query that a witness must share: it tells of the same matter."""
WITNESSES = 2


@dataclass(frozen=True, slots=True)
class Telling:
    """One record as a witness.

    Attributes:
        voice: The principal that counts: all aliases are one.
        ending: How it ended; None if it does not tell.
        share: Of the query's words, by idf, that it shares, >= 0; words that one principal alone uses do not count.
    """

    voice: int
    ending: str | None
    share: float


def first_to_read(told: Sequence[Telling]) -> int | None:
    """The place of the best record whose ending the most independent principals tell.

    Each principal counts once for an ending, by the record that shares most of the query; an ending
    weighs the sum. It must weigh more than any single record, and have two principals.

    Returns:
        None also where no record tells an ending.
    """
    near = NEAR * max((one.share for one in told[:COMPARED]), default=0.0)
    endings: list[tuple[frozenset[str], list[int]]] = []
    for place, one in enumerate(told[:COMPARED]):
        said = frozenset(words(one.ending or ""))
        if not said or one.share < near:
            continue
        group = next((places for of, places in endings if _same(of, said)), None)
        if group is None:
            endings.append((said, [place]))
        else:
            group.append(place)
    weights = [(_weight(told, places), -places[0]) for _, places in endings if _voices(told, places) >= WITNESSES]
    weight, place = max(weights, default=(0.0, 0))
    return -place if weight > max((one.share for one in told[:COMPARED]), default=0.0) else None


def _voices(told: Sequence[Telling], places: Sequence[int]) -> int:
    return len({told[place].voice for place in places})


def _weight(told: Sequence[Telling], places: Sequence[int]) -> float:
    share: dict[int, float] = {}
    for place in places:
        share[told[place].voice] = max(share.get(told[place].voice, 0.0), told[place].share)
    return fsum(share.values())


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    if len(one & other) < SAME * len(one | other):
        return False
    return not any(word[0].isdigit() for word in one ^ other)


__all__ = ["COMPARED", "NEAR", "SAME", "Telling", "first_to_read"]
