"""Programs that the tests run as processes of their own: `python programs.py NAME ARGUMENTS`.

Each prints one line per thing it has done, flushed at once, so that a test knows what was
acknowledged before it kills the process.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime

from collab_layer import AsyncCollabLayer, CollabLayer, Sharing
from collab_layer.config import Settings

SHARED = Sharing.within_tenant("records")


def said(number: int) -> dict[str, object]:
    """The interaction with that number; the same in every process."""
    return {
        "actor": f"user:u{number % 20}",
        "target": f"item:i{number % 37}",
        "verb": "liked",
        "text": f"Note {number}: the {number % 37} series keeps its settings in one file",
        "key": f"k{number}",
    }


def write(url: str, first: str, count: str, worker: str) -> None:
    """Observe numbers one after another; print each number and its id after it was acknowledged."""
    settings = Settings(worker=worker == "worker")
    with CollabLayer.open(url, sharing=SHARED, settings=settings) as layer:
        for number in range(int(first), int(first) + int(count)):
            (id_,) = layer.observe(**said(number))
            print(number, id_, flush=True)


def work(url: str) -> None:
    """Be a worker until killed."""

    async def story() -> None:
        async with await AsyncCollabLayer.open(url, settings=Settings(worker=False)) as layer:
            print("working", flush=True)
            await layer.work()

    asyncio.run(story())


def slow_clock() -> datetime:
    """The time, a little later: every page of upkeep looks at it once, so that a kill finds one on its way."""
    time.sleep(0.02)
    return datetime.now(UTC)


def tidy(url: str) -> None:
    """Tidy; print when it begins, and what it changed."""
    with CollabLayer.open(url, settings=Settings(worker=False), clock=slow_clock) as layer:
        print("tidying", flush=True)
        print(json.dumps(layer.consolidate().changes), flush=True)


def ask(url: str, reader: str, question: str) -> None:
    """Read a context for each line that comes in, and print what it says on one line."""
    with CollabLayer.open(url, tenant="acme", settings=Settings(worker=False)) as layer:
        for _ in sys.stdin:
            memory = layer.context(reader, question)
            said = " ".join(facet.text for facet in memory.facets)
            print("cached" if memory.cached else "fresh", " ".join(said.split()), flush=True)


if __name__ == "__main__":
    {"write": write, "work": work, "tidy": tidy, "ask": ask}[sys.argv[1]](*sys.argv[2:])
