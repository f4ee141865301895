"""Put what only repeats a better line behind what says something else; nothing is left out.

In:   lines, best first, each with how it ended, if it tells that.
Out:  the order in which to show them.
Pure. Wording may differ; another number or another ending is no repetition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from collab_layer.stages.alike import words

REPEATED = 0.65
"""Jaccard of words from which a line repeats another. Source: docs/evidence/govern.md."""
COMPARED = 64
"""Lines that are looked at; those after them keep their places behind."""


def repeats_last(lines: Sequence[tuple[str, str | None]]) -> Iterator[int]:
    """Places of the lines in the order to show: first what is new, then what repeats it.

    Lines are compared only as far as places are asked for.

    A line repeats a better one if they share 65 % of their words or more, have the same numbers
    and the same ending.

    Args:
        lines: Text and ending of each, best first.
    """
    repeated: list[int] = []
    kept: list[tuple[int, tuple[str, ...]]] = []
    bits = _Bits()
    for place, (text, ending) in enumerate(lines[:COMPARED]):
        mine, end = bits.of(words(text)), words(ending or "")
        if any(end == other_end and bits.repeat(mine, other) for other, other_end in kept):
            repeated.append(place)
        else:
            kept.append((mine, end))
            yield place
    yield from repeated
    yield from range(min(COMPARED, len(lines)), len(lines))


class _Bits:
    """Sets of words as bits, since every line is compared with all better ones."""

    def __init__(self) -> None:
        self._bit: dict[str, int] = {}
        self._numbers = 0

    def of(self, found: Iterable[str]) -> int:
        """The bits of some words."""
        mine = 0
        for word in found:
            bit = self._bit.get(word)
            if bit is None:
                bit = self._bit[word] = 1 << len(self._bit)
                self._numbers |= bit if word[0].isdigit() else 0
            mine |= bit
        return mine

    def repeat(self, one: int, other: int) -> bool:
        """Whether two sets share enough and differ in no number."""
        shared, either = (one & other).bit_count(), (one | other).bit_count()
        return shared >= REPEATED * either and not (one ^ other) & self._numbers


__all__ = ["COMPARED", "REPEATED", "repeats_last"]
