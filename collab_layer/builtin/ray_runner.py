"""Drive workers, and bulk work, as tasks of Ray.

In:   one worker's work, or a function with its parts; how many at once.
Out:  what they return. State stays in the database: a task that dies is begun again.

`RAY_ADDRESS` names a cluster; without it Ray is started here for as long as it is needed, with as many
places as workers, on the loopback interface, without a dashboard and without usage reports. In a program
that uses Ray already, that Ray is used and left running.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from collab_layer.builtin.runner import Work
from collab_layer.errors import InputError
from collab_layer.plugins.specs import Spread

LOCAL = "127.0.0.1"
PATIENCE_S = 0.5
"""Between two looks at the tasks, so that an interrupt is heard."""


def run(work: Work, /, *, workers: int = 1) -> int:
    """Run until every worker is done, or until interrupted: each then finishes what it has in hand.

    Raises:
        CollabError: The first one that a worker met; the others stop as if interrupted.
        InputError: Ray is not installed.
    """
    with _cluster(workers) as ray:
        flag = ray.remote(num_cpus=0)(_Flag).remote()
        task = ray.remote(num_cpus=1, max_retries=-1)(_worker)
        running = [task.remote(work, flag) for _ in range(workers)]
        try:
            _wait(ray, running)
        except KeyboardInterrupt:
            pass  # the usual way to stop workers; they are told below
        finally:
            ray.get(flag.set.remote())
        return sum(_answers(ray, running))


@contextmanager
def bulk(workers: int) -> Generator[Spread]:
    """A way to call a function with each of several parts at once; what they share is sent once.

    Raises:
        InputError: Ray is not installed.
    """
    with _cluster(workers) as ray:

        def spread(call: Callable[[Any, Any], Any], shared: Any, parts: Sequence[Any]) -> Iterable[Any]:
            task, there = ray.remote(num_cpus=1, max_retries=-1)(call), ray.put(shared)
            return _answers(ray, [task.remote(there, part) for part in parts])

        yield spread


class _Flag:
    """Whether to stop, as an actor that all workers ask."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set


def _worker(work: Work, flag: Any) -> int:
    ray: Any = import_module("ray")
    return work(lambda: bool(ray.get(flag.is_set.remote())))


@contextmanager
def _cluster(workers: int) -> Generator[Any]:
    """Ray, connected; ended afterwards if it was begun here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray: Any = import_module("ray")
    except ModuleNotFoundError as error:
        raise InputError("Ray needs the extra: pip install 'collab-layer[ray]'") from error
    if ray.is_initialized():
        yield ray
        return
    address = os.environ.get("RAY_ADDRESS")
    here = {"address": "local", "num_cpus": workers, "_node_ip_address": LOCAL, "include_dashboard": False}
    with _own_signals():
        ray.init(**({"address": address} if address else here), log_to_driver=False)
    try:
        yield ray
    finally:
        with _own_signals():
            ray.shutdown()


@contextmanager
def _own_signals() -> Generator[None]:
    """Ray takes SIGTERM for itself; it is whoever's it was."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait(ray: Any, running: Sequence[Any]) -> None:
    """Until all are done, or one has failed."""
    left = list(running)
    while left:
        done, left = ray.wait(left, num_returns=1, timeout=PATIENCE_S)
        _answers(ray, done)


def _answers(ray: Any, tasks: Sequence[Any]) -> list[Any]:
    """What the tasks returned; what one raised is raised as it was."""
    try:
        return ray.get(list(tasks))
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from None


__all__ = ["bulk", "run"]
