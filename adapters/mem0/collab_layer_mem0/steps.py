"""Write a flow once, run it blocking or awaited.

In:   a generator that yields calls without arguments.
Out:  what the generator returns. Each yielded call is made here and its value, or its
      exception, goes back into the generator.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any

Step = Callable[[], Any]
Flow = Generator[Step, Any, Any]


def drive(flow: Flow) -> Any:
    """Make each call and use its value."""
    try:
        step: Step = next(flow)
        while True:
            try:
                value = step()
            except Exception as error:  # every failure belongs to the flow, which knows what to do
                step = flow.throw(error)
            else:
                step = flow.send(value)
    except StopIteration as stop:
        return stop.value


async def drive_async(flow: Flow) -> Any:
    """Make each call and use its value, awaited where it has to be."""
    try:
        step: Step = next(flow)
        while True:
            try:
                made: Any = step()
                value = await made if inspect.isawaitable(made) else made
            except Exception as error:  # as above
                step = flow.throw(error)
            else:
                step = flow.send(value)
    except StopIteration as stop:
        return stop.value


__all__ = ["Flow", "Step", "drive", "drive_async"]
