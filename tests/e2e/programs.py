"""Programs that the tests run as processes of their own: `python programs.py NAME ARGUMENTS`.

Each prints one line per thing it has done, flushed at once, so that a test knows what was
acknowledged before it kills the process.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime, timedelta

from collab_layer import AsyncCollabLayer, CollabLayer, Interaction, Sharing
from collab_layer.config import Settings
from collab_layer.errors import StoreError

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


FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def compared(number: int) -> Interaction:
    """The interaction with that number, at its own time; its words name a thing beside its target."""
    return Interaction(
        actor=f"user:u{number % 12}",
        target=f"item:Product{number % 29}",
        verb="liked",
        text=f"Note {number}: lasts longer than Product{number * 7 % 29} and Продукт{number % 5}",
        at=FIRST + timedelta(minutes=number),
        key=f"k{number}",
    )


def tell(url: str, first: str, count: str) -> None:
    """Observe numbers, whatever the database says meanwhile; print each once it is acknowledged.

    One that was refused is told again until it is acknowledged: its key makes that safe.
    """
    numbers = iter(range(int(first), int(first) + int(count)))
    with CollabLayer.open(url, sharing=SHARED, settings=Settings(worker=False)) as layer:
        number = next(numbers, None)
        while number is not None:
            try:
                [id_] = layer.observe(compared(number))
            except StoreError as error:
                print("refused", type(error).__name__, str(error).replace("\n", " "), flush=True)
                time.sleep(0.2)
                continue
            print(number, id_, flush=True)
            number = next(numbers, None)
            time.sleep(0.005)


def work(url: str, hours_off: str = "0") -> None:
    """Be a worker until killed, with a clock that may be wrong."""
    off = timedelta(hours=float(hours_off))

    async def story() -> None:
        settings, clock = Settings(worker=False), lambda: datetime.now(UTC) + off
        async with await AsyncCollabLayer.open(url, settings=settings, clock=clock) as layer:
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
    {"write": write, "tell": tell, "work": work, "tidy": tidy, "ask": ask}[sys.argv[1]](*sys.argv[2:])
