"""Put what only repeats a better line, and what its principal told anew since, behind the rest; nothing is lost.

In:   lines, best first: whose, when, and how it ended, if it tells that.
Out:  the order in which to show them.
Pure. Wording may differ. Another number is no repetition, but a newer state where one principal tells both: who
imitates another's note never takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collab_layer.stages.alike import words

REPEATED = 0.65
"""Jaccard of words from which a line repeats another. Source: docs/evidence/govern.md."""
SAID_ANEW = 0.5
"""Jaccard of words without numbers from which a newer line of the same principal replaces it. Source: the same."""
COMPARED = 64
"""Lines that are looked at; those after them keep their places behind."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        text: What it says.
        ending: How it ended.
        voice: The principal behind it; None if there are several.
        at: When it was said last.
    """

    text: str
    ending: str | None = None
    voice: int | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class _Seen:
    said: frozenset[str]
    plain: frozenset[str]
    ending: tuple[str, ...]

    @classmethod
    def of(cls, line: Line) -> _Seen:
        said = frozenset(words(line.text))
        return cls(said, frozenset(word for word in said if not word[0].isdigit()), words(line.ending or ""))

    def repeats(self, other: _Seen) -> bool:
        same = self.ending == other.ending and _alike(self.said, other.said, REPEATED)
        return same and not any(word[0].isdigit() for word in self.said ^ other.said)

    def renews(self, other: _Seen) -> bool:
        return self.ending == other.ending and _alike(self.plain, other.plain, SAID_ANEW)


def in_order(lines: Sequence[Line]) -> list[int]:
    """Places of the lines in the order to show: first what is new, then what repeats it or is told anew.

    A line repeats a better one if they share 65 % of their words or more, have the same numbers
    and the same ending. Of lines of one principal that share half of their other words, and the ending,
    the newest stands in the place of the best.

    Args:
        lines: Best first.
    """
    seen = [_Seen.of(line) for line in lines[:COMPARED]]
    new: list[int] = []
    repeated: list[int] = []
    for place, mine in enumerate(seen):
        (repeated if any(mine.repeats(seen[other]) for other in new) else new).append(place)
    groups: list[list[int]] = []
    for place in [*new, *repeated]:
        voice = lines[place].voice
        mine = (one for one in groups if voice is not None and lines[one[0]].voice == voice)
        group = next((one for one in mine if seen[place].renews(seen[one[0]])), None)
        if group is None:
            groups.append([place])
        else:
            group.append(place)
    front = [max(group, key=lambda place: (lines[place].at, -place)) for group in groups]
    behind = sorted(frozenset(range(len(seen))) - frozenset(front))
    return [*front, *behind, *range(len(seen), len(lines))]


def _alike(one: frozenset[str], other: frozenset[str], least: float) -> bool:
    return len(one & other) >= least * len(one | other)


__all__ = ["COMPARED", "REPEATED", "SAID_ANEW", "Line", "in_order"]
