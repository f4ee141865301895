"""Put what one principal says beyond its part of a context behind what others say; nothing is left out.

In:   lines, best first: what each takes, and whose it is.
Out:  the order in which to show them.
Pure. Whoever writes most, or repeats the question best, then fills a context only where nobody
else has anything to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

PART = 0.5
"""Of the records that are read for a query, and of the tokens of a context: what one principal may take before all
others have had their turn. Source: docs/evidence/govern.md."""


def turns(lines: Iterable[tuple[int, int | None]], part: float) -> Iterator[int]:
    """Places of the lines in the order to show; lines are looked at only as far as places are asked for.

    Args:
        lines: Best first: the tokens of each, and whose it is; None for what counts against nobody: the reader's own,
            and what several say.
        part: Tokens that one principal may take before everybody else has had its turn; the first
            line of each is always within it.
    """
    beyond: list[int] = []
    taken = Counter[int]()
    for place, (cost, voice) in enumerate(lines):
        if voice is not None and taken[voice] and taken[voice] + cost > part:
            beyond.append(place)
            continue
        yield place
        if voice is not None:
            taken[voice] += cost
    yield from beyond


__all__ = ["PART", "turns"]
