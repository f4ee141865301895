"""Texts to vectors without weights: signed feature hashing of stems and of letters within them.

In:   texts.
Out:  unit float32 vectors; zeros where a text has no content words.
Never: a download, a model, randomness. The same text gives the same vector everywhere.

It finds shared words, their inflections and near spellings, not paraphrases; see `docs/evidence`.
Source of the method: Weinberger et al., Feature Hashing for Large Scale Multitask Learning,
ICML 2009; letter n-grams within words: Bojanowski et al., TACL 2017.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray

from collab_layer.stages.tokens import terms
from collab_layer.types.graph import Vectors

DIM = 512
GRAM_SHARE = 0.8
"""Length of a word's letter part against its own feature of length 1."""
_READ = 1_000
"""Terms of one text that are embedded."""
_BATCH = 512


def _feature(name: str) -> tuple[int, float]:
    """A place in [0, 2**32) and a sign for one feature."""
    digest = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    return digest >> 32, 1.0 if digest & 1 else -1.0


def _grams(term: str) -> list[str]:
    marked = f"<{term}>"
    return sorted({marked[at : at + size] for size in (3, 4) for at in range(len(marked) - size + 1)})


@lru_cache(maxsize=1 << 16)
def _features(term: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Places and values of one term: itself at 1 and, for plain words, its letters at `GRAM_SHARE` together."""
    named = [(_feature(f"w:{term}"), 1.0)]
    if term.isalpha():
        grams = _grams(term)
        named += [(_feature(f"g:{gram}"), GRAM_SHARE / len(grams) ** 0.5) for gram in grams]
    places = np.array([place for (place, _), _ in named], np.int64)
    values = np.array([sign * weight for (_, sign), weight in named])
    return places, values


class HashingEmbedder:
    """The built-in embedder.

    Args:
        dim: Length of a vector, >= 16. Vectors of different lengths have different ids.
    """

    def __init__(self, dim: int = DIM) -> None:
        if dim < 16:
            raise ValueError(f"the dimension {dim} is too small, at least 16 are needed")
        self._dim = dim

    @property
    def id(self) -> str:
        """Name, length and version; changes whenever vectors do."""
        return f"hashing-{self._dim}-v1"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dim); zeros for a text without content.

        A term that occurs n times counts 1 + log(n); each term is spread over its own place
        and those of its letter triples and quadruples.
        """
        out = np.zeros((len(texts), self._dim), np.float32)
        for start in range(0, len(texts), _BATCH):
            part = texts[start : start + _BATCH]
            out[start : start + len(part)] = self._batch(part)
        return out

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """As `vectors`; computed in the caller's thread, since a text takes some 0.1 ms."""
        return self.vectors(texts)

    def _batch(self, texts: Sequence[str]) -> Vectors:
        places: list[NDArray[np.int64]] = []
        values: list[NDArray[np.float64]] = []
        weights: list[float] = []
        rows: list[int] = []
        for row, text in enumerate(texts):
            for term, count in Counter(terms(text, limit=_READ)).items():
                place, value = _features(term)
                places.append(place)
                values.append(value)
                weights.append(1.0 if count == 1 else 1.0 + log(count))
                rows.append(row)
        if not places:
            return np.zeros((len(texts), self._dim), np.float32)
        sizes = [len(place) for place in places]
        flat = np.concatenate(places) % self._dim + np.repeat(np.array(rows) * self._dim, sizes)
        scaled = np.concatenate(values) * np.repeat(np.array(weights), sizes)
        sums = np.bincount(flat, scaled, len(texts) * self._dim).reshape(len(texts), self._dim)
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        return (sums / np.where(length > 0, length, 1.0)).astype(np.float32)


__all__ = ["DIM", "HashingEmbedder"]
