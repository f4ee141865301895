"""Which of one reader's items belong together, by the links and words they share.

In:   items with links and words.
Out:  for each at most a few others, each with a weight in [0, 1].
Pure. Only points from one to the other: no item is rewritten for its neighbours' sake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from collab_layer.stages.tokens import terms

MOST = 4
"""Others that one item points to."""
FLOOR = 0.25
"""Least weight worth pointing out."""
CROWD = 64
"""A link or word in more items than this says nothing about which of them belong together."""


class Mention(NamedTuple):
    """An item by what it mentions."""

    id: str
    links: frozenset[int]
    text: str


def related(
    items: Sequence[Mention], *, most: int = MOST, floor: float = FLOOR, crowd: int = CROWD
) -> dict[tuple[str, str], float]:
    """The strongest pairs of each item.

    `weight = sum of idf² over what both have / (|one| * |other|)` with `idf = log(1 + N / df)`
    and `|x|` the root of the sum of idf² over all that x has: the idf-cosine, to 3 decimals.

    Args:
        items: Of one reader; N of them.
        most: The most others per item, >= 0.
        floor: Least weight, in (0, 1].
        crowd: Links and words of more items than this only make vectors longer, >= 2.

    Returns:
        (item, other) -> weight; ties go to the smaller id.
    """
    held = [sorted({*(f"#{link}" for link in one.links), *terms(one.text)}) for one in items]
    places: dict[str, list[int]] = {}
    for row, features in enumerate(held):
        for feature in features:
            places.setdefault(feature, []).append(row)
    square = {feature: float(np.log1p(len(items) / len(rows)) ** 2) for feature, rows in places.items()}
    shared = {feature: np.array(rows) for feature, rows in places.items() if 2 <= len(rows) <= crowd}
    norm = np.sqrt([max(sum(square[feature] for feature in features), 1e-12) for features in held])
    found: dict[tuple[str, str], float] = {}
    for row, features in enumerate(held):
        common = [feature for feature in features if feature in shared]
        if not common:
            continue
        rows = np.concatenate([shared[feature] for feature in common])
        weights = np.repeat([square[feature] for feature in common], [len(shared[feature]) for feature in common])
        others, at = np.unique(rows, return_inverse=True)
        cosine = np.minimum(np.bincount(at, weights) / (norm[others] * norm[row]), 1.0).round(3)
        near = [
            (float(-value), items[int(other)].id)
            for other, value in zip(others, cosine, strict=True)
            if value >= floor and other != row
        ]
        found.update({(items[row].id, other): -value for value, other in sorted(near)[:most]})
    return found


__all__ = ["CROWD", "FLOOR", "MOST", "Mention", "related"]
