"""Arrays that grow at the end, for columns that are only ever added to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Growing:
    """An array with room to grow; `view` is its filled part."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._size = 0
        self._array = np.zeros((64, width) if width else 64, dtype)

    @property
    def view(self) -> NDArray[Any]:
        """The filled part."""
        return self._array[: self._size]

    def extend(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        need = self._size + len(rows)
        if need > len(self._array):
            bigger = np.zeros((max(need, 2 * len(self._array)), *self._array.shape[1:]), self._array.dtype)
            bigger[: self._size] = self.view
            self._array = bigger
        self._array[self._size : need] = rows
        self._size = need

    def resize(self, size: int) -> None:
        """Grow to `size` with zeros."""
        if size > self._size:
            self.extend(np.zeros((size - self._size, *self._array.shape[1:]), self._array.dtype))
