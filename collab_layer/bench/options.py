"""What the measurement of a task may be told.

In:   choices of who asks.
Out:  the same, with one sentence where they do not fit the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from collab_layer.bench import embedders
from collab_layer.bench.stores import Opens
from collab_layer.errors import InputError
from collab_layer.ports.models import Embedder


@dataclass(frozen=True, slots=True)
class Options:
    """What a measurement may be told.

    Attributes:
        data: Folder of the set; None where the task makes its own.
        seed: The first seed.
        seeds: How many seeds in a row, >= 1.
        folds: How many parts of a set that is asked in parts; all if None.
        stores: Further contestants by name.
        embedder: Of every contestant of ours, and of the stores that ask for one.
        only: Parts of the task to run; all if empty.
    """

    data: Path | None = None
    seed: int = 0
    seeds: int = 1
    folds: int | None = None
    stores: Mapping[str, Opens] = field(default_factory=dict[str, Opens])
    embedder: Embedder = field(default_factory=embedders.opened)
    only: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of the set.

        Raises:
            InputError: None was given.
        """
        if self.data is None:
            raise InputError("this task needs an evaluation set: --data DIR")
        return self.data

    def chosen(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The parts to run.

        Raises:
            InputError: One of them is not a part of the task.
        """
        unknown = [part for part in self.only if part not in parts]
        if unknown:
            raise InputError(f"no part {', '.join(map(repr, unknown))} in this task; its parts are {', '.join(parts)}")
        return tuple(part for part in parts if not self.only or part in self.only)


__all__ = ["Options"]
