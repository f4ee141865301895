"""Vectors in a byte per number, with how far off each may be: enough to leave out nearly all that lie far.

In:   vectors as stored; a direction.
Out:  scalar products, a bound of their error, squared lengths.
Pure.

A byte is a quarter of a float to read, and reading is what a product over many vectors costs. What
stands is computed once more from the vectors themselves, so that no answer depends on the codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collab_layer.graph.growing import Growing
from collab_layer.types.graph import Floats, Vectors

_LEVELS = 127
_AT_ONCE = 512
"""Vectors of a block, which is widened at once: so few stay in the cache of a core."""
_ROUNDING = 1e-4
"""Of a product of float32 over some thousand numbers, relative to both lengths; from above."""


class Codes:
    """Codes by row."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._blocks: list[NDArray[np.int8]] = []  # a row per number, so that a sparse direction reads few
        self._step = Growing(np.float32)
        self._off = Growing(np.float32)
        self._square = Growing(np.float64)

    def __len__(self) -> int:
        return len(self._step.view)

    @property
    def square(self) -> Floats:
        """Squared lengths, shape (c,)."""
        return self._square.view

    @property
    def off(self) -> Vectors:
        """By how much a product with a unit vector may be off, shape (c,), >= 0."""
        return self._off.view

    def extend(self, raw: NDArray[Any]) -> None:
        """Add vectors, shape (n, d)."""
        while len(raw):
            room = _AT_ONCE - len(self) % _AT_ONCE
            self._add(raw[:room].astype(np.float32))
            raw = raw[room:]

    def replace(self, row: int, vector: Vectors) -> None:
        """Another vector in the place of one, shape (d,)."""
        codes, step, off, square = _coded(vector[None, :])
        block, at = divmod(row, _AT_ONCE)
        self._blocks[block][:, at] = codes[0]
        self._step.view[row], self._off.view[row], self._square.view[row] = step[0], off[0], square[0]

    def _add(self, wide: Vectors) -> None:
        start = len(self) % _AT_ONCE
        if not start:
            self._blocks.append(np.zeros((self._dim, _AT_ONCE), np.int8))
        codes, step, off, square = _coded(wide)
        self._blocks[-1][:, start : start + len(wide)] = codes.T
        self._step.extend(step)
        self._off.extend(off)
        self._square.extend(square)

    def products(self, vector: Vectors, start: int = 0) -> Vectors:
        """Scalar product of a vector with those from a row on, off by `off` times its length at most."""
        numbers = np.flatnonzero(vector)
        first = start // _AT_ONCE
        blocks = self._blocks[first:]
        out = np.empty((len(blocks), _AT_ONCE), np.float32)
        sparse = 2 * len(numbers) < self._dim
        weights = vector[numbers] if sparse else vector
        # Into the same memory each time: fresh pages would cost more than what is done with them.
        picked = np.empty((len(weights), _AT_ONCE), np.int8)
        wide = np.empty((len(weights), _AT_ONCE), np.float32)
        for block, found in zip(blocks, out, strict=True):
            wide[:] = block.take(numbers, axis=0, out=picked, mode="clip") if sparse else block
            np.dot(weights, wide, out=found)
        whole = out.reshape(-1)[start - first * _AT_ONCE :][: len(self) - start]
        whole *= self._step.view[start:]
        return whole


def _coded(wide: Vectors) -> tuple[Vectors, Vectors, Floats, Floats]:
    """Whole numbers in [-127, 127] of shape (n, d); of each vector what one stands for, how far off, its square."""
    step = np.abs(wide).max(axis=1, initial=0.0) / _LEVELS
    codes = np.rint(np.divide(wide, step[:, None], out=np.zeros_like(wide), where=step[:, None] > 0))
    off = np.linalg.norm((wide - codes * step[:, None]).astype(np.float64), axis=1)
    square = np.einsum("ij,ij->i", wide, wide, dtype=np.float64)
    return codes, step, off + _ROUNDING * np.sqrt(square), square


__all__ = ["Codes"]
