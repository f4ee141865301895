"""Which texts share words with a query.

In:   a query and texts.
Out:  one score per text in [0, 1].
Pure: no clock, no I/O, no randomness.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


def overlap(query: str, texts: Sequence[str]) -> list[float]:
    """Score each text by the share of the query's distinct words that it holds.

    Words are runs of letters, digits and underscores, compared without case.

    Returns:
        One score in [0, 1] per text, in the order given; 0 for a query without words.
    """
    wanted = _words(query)
    if not wanted:
        return [0.0] * len(texts)
    return [len(wanted & _words(text)) / len(wanted) for text in texts]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
