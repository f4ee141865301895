"""Which words a query and a fact share, in English and Russian.

In:   a query; a fact.
Out:  the stems to look for; a score in [0, 1].
Pure: no clock, no I/O, no randomness.

FalkorDB's full-text index neither folds the case of Cyrillic nor stems it, so words are
looked for as parts of the text; here they are checked to begin a word.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any, Final, cast

import Stemmer

MAX_STEMS: Final = 32
"""The longest words of a query that are looked for."""
_MIN: Final = 3
_WORD: Final = re.compile(r"\w+")
_RUSSIAN: Final = re.compile(r"[а-яё]")
_LOCAL = threading.local()  # a stemmer keeps state between letters


def stems(query: str) -> list[str]:
    """The stems of a query's words, longest first, each once; short words only if there is nothing else."""
    words = list(dict.fromkeys(_WORD.findall(query.lower())))
    telling = [word for word in words if len(word) >= _MIN] or words
    found = dict.fromkeys(_stem(word) for word in telling)
    return sorted(found, key=lambda stem: (-len(stem), stem))[:MAX_STEMS]


def _stem(word: str) -> str:
    stemmer: Any = getattr(_LOCAL, "stemmers", None)
    if stemmer is None:
        made: Any = Stemmer
        stemmer = _LOCAL.stemmers = {name: made.Stemmer(name) for name in ("english", "russian")}
    stem = cast("str", stemmer["russian" if _RUSSIAN.search(word) else "english"].stemWord(word))
    # Some English stems are no part of the word they come from: `happi` of `happy`.
    return stem if word.startswith(stem) else word[: len(_common(word, stem))] or word


def _common(one: str, other: str) -> str:
    length = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def score(wanted: Sequence[str], text: str) -> float:
    """The share of the stems that begin a word of the text, longer ones counting more."""
    words = _WORD.findall(text.lower())
    total = sum(len(stem) for stem in wanted)
    found = sum(len(stem) for stem in wanted if any(word.startswith(stem) for word in words))
    return found / total if total else 0.0


__all__ = ["MAX_STEMS", "score", "stems"]
