"""Whether two short texts say the same, safely enough to show one of them for both.

In:   texts.
Out:  their words in a normal form, and whether two normal forms are one statement.
Pure. No vector is asked: no embedder separates "loves" from "hates".

Only case, punctuation, inflection, a few words that say nothing, and the place of one clause in
a long text may differ. Negations, numbers, versions, signs and every other word count.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import chain, pairwise

from collab_layer.stages.tokens import by_chunk, letters, lower, normal, stem

ALIKE = 0.9
"""Share of neighbouring pairs of words that two orders of the same words must have in common."""
MOVED = 3
"""Pairs of neighbours that are broken where one clause stands elsewhere."""

_TOKEN = re.compile(
    r"\d+(?:[.,:/\-]\d+)*"  # a number, version, date or time as a whole
    r"|[^\W\d_]+(?:'[^\W\d_]+)*"  # a word
    r"|(?<!\w)[-−–](?=\d)"  # a minus sign
    r"|!(?==)"
    r"|[^\s.,;:…!\"'`«»“”„‘()\[\]{}_\-–—−‐·•]"  # any other sign: + = < > % ? # / and pictures
)
_FILLERS = "a an the just very really please also too so же ведь вот очень просто также тоже"
_FILLER = frozenset(_FILLERS.split())


@lru_cache(maxsize=1 << 14)
def words(text: str) -> tuple[str, ...]:
    """The text's words in order: stems in lower case, numbers and signs as they are.

    A capital A inside the text is a name ("plan A"), not an article.
    """
    plain = normal(text)
    found = tuple(chain.from_iterable(by_chunk(_of_chunk, plain)))
    first = _TOKEN.search(plain)
    return found[1:] if first is not None and first.group() == "A" else found


@lru_cache(maxsize=1 << 16)
def _of_chunk(chunk: str) -> tuple[str, ...]:
    """Words of a run without a space, "A" among them."""
    only = letters(chunk)
    if only:
        return (found,) if (found := _of_token(only)) else ()
    return tuple(word for token in _TOKEN.findall(chunk) if (word := _of_token(token)))


def _of_token(token: str) -> str:
    """Its normal form; empty if it says nothing."""
    word = lower(token)
    if word in _FILLER and token != "A":
        return ""
    return stem(word) if word[0].isalpha() else word


def alike(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two normal forms are one statement.

    The same words in the same order; or the same words equally often, with one clause standing
    elsewhere: of the pairs of neighbours, both ends of the text counted as neighbours too, at
    most 3 differ, and with repeats `|common| / |either| >= 0.9`, that is in 56 words or more. Two
    words that change places break four pairs, so that they never pass, or three if they are
    neighbours, so that they do not pass in a text as short as a lesson.
    """
    if one == other:
        return bool(one)
    if len(one) != len(other) or Counter(one) != Counter(other):
        return False
    here, there = _pairs(one), _pairs(other)
    common = (here & there).total()
    return here.total() - common <= MOVED and common >= ALIKE * (here | there).total()


def _pairs(text: tuple[str, ...]) -> Counter[tuple[str, str]]:
    return Counter(pairwise(("", *text, "")))


__all__ = ["ALIKE", "alike", "words"]
