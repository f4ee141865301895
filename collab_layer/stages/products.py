"""Products of all rows with all rows, on the caller's thread alone.

In:   two matrices of rows of the same length.
Out:  every scalar product of a row of one with a row of the other.
Pure.

BLAS starts a thread per core for a product of more than 2**18 multiplications, and each then spins
for 30 ms in wait of more: in a process that answers many at once that is the time of another's answer.
So large products are made of tiles, each too small for that.

How BLAS rounds a product depends on the processor and on what stands beside it in its matrices. Where an answer must
not, the rows are put on a grid first (`on_grid`), on which every sum is exact.
"""

from __future__ import annotations

from math import isqrt
from typing import TypeVar, cast

import numpy as np

from collab_layer.types.graph import Floats, Vectors

_ALONE = 1 << 17
"""Multiplications of one tile."""
_GRID = 2.0**24
Matrix = TypeVar("Matrix", Floats, Vectors)


def products(rows: Matrix, others: Matrix) -> Matrix:
    """`rows @ others.T`, shape (n, m), for shapes (n, d) and (m, d)."""
    side = max(1, isqrt(_ALONE // max(rows.shape[1], 1)))
    down, across = _tiles(rows, side), _tiles(others, side)
    tiles = np.matmul(down[:, None], across[None].swapaxes(-1, -2))
    whole = tiles.swapaxes(1, 2).reshape(len(down) * side, len(across) * side)
    return whole[: len(rows), : len(others)]


def on_grid(rows: Vectors) -> Floats:
    """The rows in steps of 2**-24, which is as exact as float32 near 1.

    Products of two such rows whose lengths multiply to 32 at most take no more than the 53 bits of a float64, however
    they are added up.
    """
    return np.rint(rows.astype(np.float64) * _GRID) / _GRID


def _tiles(rows: Matrix, side: int) -> Matrix:
    """So many rows each, the last filled up with zeros, shape (tiles, side, d)."""
    count = -(-len(rows) // side)
    out = np.zeros((count * side, rows.shape[1]), rows.dtype)
    out[: len(rows)] = rows
    return cast(Matrix, out.reshape(count, side, rows.shape[1]))


__all__ = ["on_grid", "products"]
