"""Put what only repeats a better line behind what says something else; nothing is left out.

In:   lines, best first, each with how it ended, if it tells that.
Out:  the order in which to show them.
Pure. Wording may differ; another number or another ending is no repetition.
"""

from __future__ import annotations

from collections.abc import Sequence

from collab_layer.stages.alike import words

REPEATED = 0.65
"""Jaccard of words from which a line repeats another. Source: docs/evidence/govern.md."""
COMPARED = 64
"""Lines that are looked at; those after them keep their places behind."""


def repeats_last(lines: Sequence[tuple[str, str | None]]) -> list[int]:
    """Places of the lines in the order to show: first what is new, then what repeats it.

    A line repeats a better one if they share 65 % of their words or more, have the same numbers
    and the same ending.

    Args:
        lines: Text and ending of each, best first.
    """
    new: list[int] = []
    repeated: list[int] = []
    kept: list[tuple[frozenset[str], tuple[str, ...]]] = []
    for place, (text, ending) in enumerate(lines[:COMPARED]):
        mine = frozenset(words(text)), words(ending or "")
        if any(_repeats(mine, other) for other in kept):
            repeated.append(place)
        else:
            new.append(place)
            kept.append(mine)
    return [*new, *repeated, *range(min(COMPARED, len(lines)), len(lines))]


def _repeats(one: tuple[frozenset[str], tuple[str, ...]], other: tuple[frozenset[str], tuple[str, ...]]) -> bool:
    (here, end), (there, other_end) = one, other
    both = len(here) + len(there)
    if end != other_end or min(len(here), len(there)) < REPEATED * max(len(here), len(there)):
        return False  # whatever they share, it is too little
    shared = len(here & there)
    if shared < REPEATED * (both - shared):
        return False
    return not any(word[0].isdigit() for word in here ^ there)


__all__ = ["COMPARED", "REPEATED", "repeats_last"]
