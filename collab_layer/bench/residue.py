"""Erasures by the thousand, processes killed in their midst: is any forgotten word left anywhere?

In:   a seed, how many erasures, where memories lie: with us, in the in-memory store, in a real Mem0.
Out:  rows: erasures made, files and stores that held a forgotten word, lineage that names what is gone,
      receipts that do not hold.
Never: counts words that nobody asked to forget.

Every batch of operations runs in a process of its own; some are killed with SIGKILL at a random moment.
What the killed one had begun is asked again of the next. Then every file is read byte by byte, and the
store asked for all it has. After `WORLD` erasures a new world begins over an empty file: erasing writes
the file anew, which is quick as long as it is small.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import re
import sqlite3
import tempfile
import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collab_layer.bench import embedders
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report, Row
from collab_layer.bench.residue_stores import Kind, serve
from collab_layer.bench.residue_worker import READY, Op, work
from collab_layer.bench.residue_world import World
from collab_layer.errors import CollabError
from collab_layer.testing import InMemoryBackend
from collab_layer.types.erasure import ErasureReceipt

WORLD = 200
"""Erasures over one file."""
KILL_AFTER_S = (0.0, 1.5)
"""A process is killed this long after it said that it works."""
ERASURES = ("forget", "forget_influence", "revoke")
_WORD = re.compile(rb"zq[a-z]{18}")
_DANGLING = """
    SELECT item, source FROM lineage WHERE item IN (SELECT id FROM derived) AND (
        source LIKE 'c%' AND source NOT IN (SELECT printf('c%x', id) FROM cards)
        OR source LIKE 'i%' AND source NOT IN (SELECT printf('i%x', id) FROM interactions)
        OR source LIKE 'd%' AND source NOT IN (SELECT id FROM derived))
"""


@dataclass(slots=True)
class Found:
    """Counts of one run."""

    erasures: dict[str, int] = field(default_factory=dict[str, int])
    operations: int = 0
    killed: int = 0
    words: int = 0
    early: int = 0
    """Receipts that said `complete` while a word was still in our files."""
    residue: int = 0
    """Words left in our files after a batch, once all was drained."""
    stored: int = 0
    """Words that the store would still give then."""
    dangling: int = 0
    unproved: int = 0

    @property
    def erased(self) -> int:
        """Calls of `forget`, `forget_influence` and `revoke` that were answered."""
        return sum(self.erasures.values())


class Process:
    """A process over the files of a folder, asked one operation at a time; `EOFError` when it is killed."""

    def __init__(self, folder: Path, kind: Kind, store: InMemoryBackend) -> None:
        self._asked, asked = multiprocessing.Pipe()
        kept, there = multiprocessing.Pipe()
        self._process = _fast().Process(target=work, args=(folder, kind, asked, there), daemon=True)
        self._process.start()
        for end in (asked, there):
            end.close()
        threading.Thread(target=serve, args=(store, kept), daemon=True).start()
        if self._asked.recv() != READY:
            raise CollabError("a process of the run did not start")

    def ask(self, op: Op | None) -> Any:
        """One operation; None ends it."""
        try:
            self._asked.send(op)
            return self._asked.recv()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise EOFError from error

    def kill_after(self, seconds: float) -> threading.Timer:
        """Kill it then, unless the timer is cancelled before."""
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        return timer

    def join(self) -> None:
        """Wait for its end."""
        self._process.join()
        self._asked.close()


def measure(
    operations: int = 1_000,
    *,
    seed: int = 0,
    kills: float = 0.2,
    store: Kind = "none",
    progress: Progress | None = None,
) -> Report:
    """Run until so many erasures were answered.

    Args:
        operations: Calls of `forget`, `forget_influence` and `revoke`.
        seed: Of every choice; when a process is killed, the clock decides too.
        kills: Share of the batches whose process is killed.
        store: Where half of the memories lie, and are erased too.
        progress: Called with a word, erasures done, and of how many.
    """
    found, draw = Found(), random.Random(seed)
    while found.erased < operations:
        with tempfile.TemporaryDirectory(prefix="collab-residue-") as folder:
            _live(Path(folder), store, World(draw), found, operations, kills, progress)
    command = f"collab bench erase --operations {operations} --kills {kills:g} --store {store} --seed {seed}"
    return Report(command, hashlib.sha256().hexdigest(), seed, embedders.opened().id, _rows(found))


def _rows(found: Found) -> list[Row]:
    rows = [Row(f"erase.{verb}", count, unit="calls") for verb, count in sorted(found.erasures.items())]
    return [
        Row("erase.operations", found.operations, unit="calls"),
        Row("erase.erasures", found.erased, unit="calls"),
        *rows,
        Row("erase.killed", found.killed, unit="processes"),
        Row("erase.words_forgotten", found.words, unit="words"),
        Row("erase.residue", found.residue, unit="words").against("<=", 0),
        Row("erase.residue_in_store", found.stored, unit="words").against("<=", 0),
        Row("erase.complete_too_early", found.early, unit="receipts").against("<=", 0),
        Row("erase.lineage_dangling", found.dangling, unit="sources").against("<=", 0),
        Row("erase.receipts_not_verified", found.unproved, unit="receipts").against("<=", 0),
    ]


def _live(
    folder: Path, kind: Kind, world: World, found: Found, operations: int, kills: float, progress: Progress | None
) -> None:
    store, until = InMemoryBackend(), min(operations, found.erased + WORLD)
    while found.erased < until:
        process = Process(folder, kind, store)
        doomed = world.draw.random() < kills
        timer = process.kill_after(world.draw.uniform(*KILL_AFTER_S)) if doomed else None
        ops = world.batch()
        while ops:
            try:
                _note(folder, world, found, ops[0], process.ask(ops[0]))
                del ops[0]
            except EOFError:
                found.killed += 1
                process.join()
                process = Process(folder, kind, store)
                ops[0]["again"] = True
                if ops[0]["verb"] == "publish":  # asked twice, it would be there twice
                    del ops[0]
        if timer is not None:
            timer.cancel()
            timer.join()
        process = _check(folder, kind, store, process, world, found)
        process.join()
        if progress is not None:
            progress("erasures", min(found.erased, operations), operations)
    found.words += len(world.gone)


def _note(folder: Path, world: World, found: Found, op: Op, answer: Any) -> None:
    found.operations += 1
    world.note(op, answer)
    if answer is not None and op["verb"] in ERASURES:
        found.erasures[op["verb"]] = found.erasures.get(op["verb"], 0) + 1
        receipt = ErasureReceipt.model_validate_json(answer)
        world.receipts.append(receipt.id)
        if receipt.status == "complete":
            found.early += bool(left(folder, world.gone))


def _check(folder: Path, kind: Kind, store: InMemoryBackend, process: Process, world: World, found: Found) -> Process:
    """Look everywhere; by which process: one that was killed late has another take its place."""
    try:
        process.ask({"verb": "drain"})
    except EOFError:
        found.killed += 1
        process.join()
        process = Process(folder, kind, store)
        process.ask({"verb": "drain"})
    said = str(process.ask({"verb": "left"})).lower().encode()
    found.stored += len(world.gone.intersection(_WORD.findall(said)))
    found.unproved += process.ask({"verb": "unproved", "receipts": world.receipts})
    found.residue += len(left(folder, world.gone))
    found.dangling += len(dangling(folder / "collab.db"))
    world.receipts.clear()
    process.ask(None)
    return process


def _fast() -> Any:
    """Processes that begin with everything imported; plain ones where the system has no such thing."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["collab_layer.bench.residue_worker"])
    return context


def left(folder: Path, words: Iterable[bytes]) -> set[bytes]:
    """Which of the words are in the bytes of our files in the folder."""
    said: set[bytes] = set()
    for path in folder.glob("collab.db*"):
        said.update(_WORD.findall(path.read_bytes().lower()))
    return said.intersection(words)


def dangling(path: Path) -> list[tuple[str, str]]:
    """Derived items, each with a source that is not there."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(_DANGLING).fetchall()


__all__ = ["dangling", "left", "measure"]
