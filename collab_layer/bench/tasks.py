"""The tasks beside taste, in one shape: a name, a question, a measurement.

In:   a task's name and `Options`.
Out:  its `Report`.
Never: a long measurement before the data was read whole and found sound.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from collab_layer.bench import embedders
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report
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


Measure = Callable[[Options, Progress], Coroutine[None, None, Report]]


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of question put to a memory.

    Attributes:
        name: As on the command line.
        asks: One sentence.
        measure: Runs it.
    """

    name: str
    asks: str
    measure: Measure


def tasks() -> dict[str, Task]:
    """Every task by name."""
    from collab_layer.bench import shapes, staleness, threads, tickets

    every = (
        Task("tickets", "Does an agent profit from tickets that others solved?", tickets.measure),
        Task("threads", "Which earlier thread helps with a new question, and who can answer it?", threads.measure),
        Task("staleness", "How long does an old value live on in what others are told?", staleness.measure),
        Task("shapes", "Does the layer take the right way by itself, through taste or through text?", shapes.measure),
    )
    return {task.name: task for task in every}


def named(name: str) -> Task:
    """A task by name.

    Raises:
        InputError: There is none of that name.
    """
    known = tasks()
    if name not in known:
        raise InputError(f"no task {name!r}; there are {', '.join(known)}")
    return known[name]


__all__ = ["Measure", "Options", "Task", "named", "tasks"]
