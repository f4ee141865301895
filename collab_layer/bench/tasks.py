"""The tasks beside taste, in one shape: a name, a question, a measurement.

In:   a task's name and `Options`.
Out:  its `Report`.
Never: a long measurement before the data was read whole and found sound.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from collab_layer.bench import shapes, staleness, threads, tickets
from collab_layer.bench.options import Options
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report
from collab_layer.errors import InputError

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


__all__ = ["Measure", "Task", "named", "tasks"]
