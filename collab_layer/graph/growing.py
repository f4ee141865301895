"""Arrays that grow at the end, for columns that are only ever added to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Growing:
    """An array with room to grow; `view` is its filled part.

    Args:
        dtype: Of what.
        width: Of a row, where it has rows.
        room: Rows that come without moving those before; room of which nothing is filled takes no memory.
    """

    def __init__(self, dtype: Any, width: int | None = None, room: int = 64) -> None:
        self._size = 0
        self._array = np.empty((room, width) if width else room, dtype)

    @property
    def view(self) -> NDArray[Any]:
        """The filled part."""
        return self._array[: self._size]

    def extend(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        need = self._size + len(rows)
        if need > len(self._array):
            bigger = np.empty((max(need, 2 * len(self._array)), *self._array.shape[1:]), self._array.dtype)
            bigger[: self._size] = self.view
            self._array = bigger
        self._array[self._size : need] = rows
        self._size = need

    def resize(self, size: int) -> None:
        """Grow to `size` with zeros."""
        if size > self._size:
            self.extend(np.zeros((size - self._size, *self._array.shape[1:]), self._array.dtype))
