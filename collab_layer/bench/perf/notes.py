"""Seeded notes in words that nobody speaks, the common ones very common.

In:   how many notes, a seed.
Out:  texts, and questions in the same words.
Pure.
"""

from __future__ import annotations

import numpy as np

VOCABULARY, NOTE_WORDS, QUESTION_WORDS = 20_000, 30, 8
EXPONENT = 1.0
"""Of Zipf's law."""
_STARTS = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "t", "v", "z", "br", "dr", "kl", "pr", "st", "tr"]
_MIDDLES = ["a", "e", "i", "o", "u"]
_ENDS = ["k", "l", "m", "n", "p", "r", "x"]


class Writer:
    """Writes notes and questions from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        share = (np.arange(VOCABULARY) + 1.0) ** -EXPONENT
        self._share = np.cumsum(share / share.sum())

    def note(self) -> str:
        """One note."""
        return self._words(NOTE_WORDS)

    def question(self) -> str:
        """One question: as likely to hold common words as the notes are."""
        return self._words(QUESTION_WORDS)

    def _words(self, count: int) -> str:
        return " ".join(word(int(at)) for at in np.searchsorted(self._share, self._random.random(count)))


def word(number: int) -> str:
    """The word of a rank, always the same."""
    syllables: list[str] = []
    for _ in range(3):
        number, start = divmod(number, len(_STARTS))
        number, middle = divmod(number, len(_MIDDLES))
        syllables.append(_STARTS[start] + _MIDDLES[middle])
    return "".join(syllables) + _ENDS[sum(map(ord, "".join(syllables))) % len(_ENDS)]


__all__ = ["Writer", "word"]
