"""Erasures by the thousand, processes killed in their midst: is any forgotten word left in our files?

In:   a seed, how many erasures, an empty folder for the SQLite file.
Out:  rows: erasures made, files that held a forgotten word, lineage that names what is gone, receipts that do not hold.
Never: counts words that nobody asked to forget. After `revoke` of a grant, updates are hidden and taken
back, and the memories stay with their owner: their words are looked for only once they are forgotten.

A batch of operations runs in this process, or in one that is killed with SIGKILL at a random moment. What
the killed one had begun is asked again, then every file is read byte by byte. Every text holds a word of its own.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sqlite3
import string
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collab_layer.bench.report import Report, Row
from collab_layer.config import Settings
from collab_layer.errors import ReceiptError, UnknownIdError
from collab_layer.receipts import verify_receipt
from collab_layer.sync import CollabLayer
from collab_layer.types.erasure import ErasureReceipt

HASHING = "hashing-512-v1"
OWNERS = 24
ITEMS = tuple(f"item:i{number}" for number in range(12))
WORDS = ("worms", "dunes", "pins", "builds", "caches", "tests", "flags", "paths", "plans", "notes", "lamps", "bells")
BATCH = 40
KILL_AFTER_S = (0.0, 2.5)
"""A child is killed this long after it said that it works."""
ERASURES = ("forget", "forget_influence", "revoke")
_WORD = re.compile(rb"zq[a-z]{18}")
_DANGLING = """
    SELECT item, source FROM lineage WHERE item IN (SELECT id FROM derived) AND (
        source LIKE 'c%' AND source NOT IN (SELECT printf('c%x', id) FROM cards)
        OR source LIKE 'i%' AND source NOT IN (SELECT printf('i%x', id) FROM interactions)
        OR source LIKE 'd%' AND source NOT IN (SELECT id FROM derived))
"""
_BY_HAND = Settings(worker=False)
Op = dict[str, Any]
Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class World:
    """What was said, and what is forgotten; kept outside of the database."""

    draw: random.Random
    owners: list[str] = field(default_factory=list[str])
    notes: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Id of an interaction or a notice, to its owner and its word."""
    grants: list[str] = field(default_factory=list[str])
    gone: set[bytes] = field(default_factory=set[bytes])
    receipts: list[str] = field(default_factory=list[str])

    def word(self) -> str:
        """A word that was never said."""
        return "zq" + "".join(self.draw.choices(string.ascii_lowercase, k=18))

    def forget(self, what: str, *, known: bool) -> None:
        """Nothing of it may be left; nor of its name, unless it was unknown: an answer may be noted later."""
        if what in self.notes:
            self.gone.add(self.notes.pop(what)[1].encode())
            return
        if known:
            self.gone.add(what.partition(":")[2].encode())
        for id_ in [id_ for id_, (owner, _) in self.notes.items() if owner == what]:
            self.forget(id_, known=known)
        if what in self.owners:
            self.owners.remove(what)

    def speaks(self, owner: str) -> None:
        """One that was forgotten, and named again, is there again."""
        self.gone.discard(owner.partition(":")[2].encode())


@dataclass(slots=True)
class Found:
    """Counts of one run."""

    erasures: dict[str, int] = field(default_factory=dict[str, int])
    operations: int = 0
    batches: int = 0
    killed: int = 0
    words: int = 0
    early: int = 0
    """Receipts that said `complete` while a word was still there."""
    residue: int = 0
    """Words left after a batch, once all was drained."""
    dangling: int = 0
    unverified: int = 0

    @property
    def erased(self) -> int:
        """Calls of `forget`, `forget_influence` and `revoke` that were answered."""
        return sum(self.erasures.values())


def measure(operations: int = 1_000, *, seed: int = 0, kills: float = 0.2, progress: Progress | None = None) -> Report:
    """Run until so many erasures were answered.

    Args:
        operations: Calls of `forget`, `forget_influence` and `revoke`.
        seed: Of every choice; when a process is killed, the clock decides too.
        kills: Share of the batches whose process is killed.
        progress: Called with a word, erasures done, and of how many.
    """
    found = Found()
    with tempfile.TemporaryDirectory(prefix="collab-residue-") as folder:
        _run(Path(folder) / "collab.db", World(random.Random(seed)), found, operations, kills, progress)
    command = f"collab bench erase --operations {operations} --kills {kills:g} --seed {seed}"
    return Report(command, hashlib.sha256().hexdigest(), seed, HASHING, _rows(found))


def _rows(found: Found) -> list[Row]:
    rows = [Row(f"erase.{verb}", count, unit="calls") for verb, count in sorted(found.erasures.items())]
    return [
        Row("erase.operations", found.operations, unit="calls"),
        Row("erase.erasures", found.erased, unit="calls"),
        *rows,
        Row("erase.killed", found.killed, unit="processes"),
        Row("erase.words_forgotten", found.words, unit="words"),
        Row("erase.residue", found.residue, unit="words").against("<=", 0),
        Row("erase.complete_too_early", found.early, unit="receipts").against("<=", 0),
        Row("erase.lineage_dangling", found.dangling, unit="sources").against("<=", 0),
        Row("erase.receipts_not_verified", found.unverified, unit="receipts").against("<=", 0),
    ]


def _run(path: Path, world: World, found: Found, operations: int, kills: float, progress: Progress | None) -> None:
    while found.erased < operations:
        ops = _batch(world)
        found.batches += 1
        if world.draw.random() < kills:
            _in_child(path, world, found, ops)
            if ops and ops[0]["verb"] == "publish":  # asked twice, it would be there twice
                del ops[0]
        with CollabLayer.open(str(path), settings=_BY_HAND) as layer:
            for op in ops:  # of a killed child: what it did not answer
                _note(path, world, found, op, perform(layer, op))
            layer.drain()
            _check(path, layer, world, found)
        if progress is not None:
            progress("erasures", min(found.erased, operations), operations)
    found.words = len(world.gone)


def _batch(world: World) -> list[Op]:
    """Operations over what is there now; whatever one of them erases, later ones may still name."""
    while len(world.owners) < OWNERS:
        world.owners.append(f"user:{world.word()}")
    return [_op(world) for _ in range(BATCH)]


def _op(world: World) -> Op:
    draw = world.draw
    (verb,) = draw.choices(
        ("observe", "grant", "context", "publish", "drain", "note", "entity", "influence", "revoke"),
        (30, 6, 8, 6, 4, 26, 2, 2, 6),
    )
    owner, other = draw.sample(world.owners, 2)
    if verb in ("observe", "publish"):
        word = world.word()
        said = draw.choices(WORDS, k=draw.choice((4, 12, 40, 150)))
        text = f"{word} {' '.join(said)} {word}"
        if verb == "publish":
            return {"verb": verb, "owner": owner, "text": text[:1900], "to": "tenant", "word": word}
        target = draw.choice(ITEMS)
        return {"verb": verb, "owner": owner, "text": text, "target": target, "word": word, "key": word}
    if verb == "note" and world.notes:
        return {"verb": "forget", "what": draw.choice(list(world.notes))}
    if verb == "entity":
        return {"verb": "forget", "what": owner}
    if verb == "influence":
        return {"verb": "forget_influence", "what": owner}
    if verb == "revoke" and world.grants:
        return {"verb": verb, "what": draw.choice(world.grants)}
    if verb == "grant":
        return {"verb": verb, "owner": owner, "to": draw.choice((other, "tenant"))}
    if verb == "drain":
        return {"verb": verb}
    return {"verb": "context", "owner": owner, "about": " ".join(draw.choices(WORDS, k=4))}


def perform(layer: CollabLayer, op: Op) -> Any:
    """One operation; the id that it gave, or the receipt as JSON; None where what it names is gone by now."""
    verb = op["verb"]
    try:
        if verb == "observe":
            return layer.observe(op["owner"], op["target"], verb="liked", text=op["text"], key=op["key"])[0]
        if verb == "publish":
            return layer.publish(op["owner"], op["text"], op["to"]).id
        if verb == "grant":
            return layer.grant(op["owner"], op["to"], "records").id
        if verb == "context":
            layer.context(op["owner"], op["about"])
        elif verb == "drain":
            layer.drain()
        elif verb == "forget_influence":
            return layer.forget_influence(op["what"], block=False).model_dump_json()
        else:
            return getattr(layer, verb)(op["what"]).model_dump_json()
    except UnknownIdError:
        return None
    return ""


def _note(path: Path | None, world: World, found: Found, op: Op, answer: Any) -> None:
    """Write down what an answered operation means for what may be left; without a path the files moved on since."""
    found.operations += 1
    verb = op["verb"]
    if verb == "forget":
        world.forget(op["what"], known=answer is not None)
    for name in (op.get("owner"), op.get("to")):
        if name is not None:
            world.speaks(name)
    if answer is None:
        return
    if verb in ("observe", "publish"):
        world.notes[answer] = (op["owner"], op["word"])
    elif verb == "grant":
        world.grants.append(answer)
    elif verb in ERASURES:
        found.erasures[verb] = found.erasures.get(verb, 0) + 1
        receipt = ErasureReceipt.model_validate_json(answer)
        world.receipts.append(receipt.id)
        if receipt.status == "complete" and path is not None:
            found.early += bool(left(path.parent, world.gone))


def _in_child(path: Path, world: World, found: Found, ops: list[Op]) -> None:
    """Have another process begin the batch, kill it, and leave in `ops` what it did not answer."""
    child = subprocess.Popen(
        [sys.executable, "-c", "from collab_layer.bench.residue import child; child()", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    answers = _until_killed(child, ops, world.draw.uniform(*KILL_AFTER_S))
    found.killed += child.returncode != 0
    for line in answers:
        op, answer = ops.pop(0), json.loads(line)
        _note(None, world, found, op, answer)


def _until_killed(child: subprocess.Popen[str], ops: Sequence[Op], after_s: float) -> list[str]:
    """What a process answered until it was done, or was killed so long after it said that it works."""
    feed, told = child.stdin, child.stdout
    if feed is None or told is None:
        raise AssertionError("the process was opened with pipes")
    with told:
        with feed:
            feed.write("".join(json.dumps(op) + "\n" for op in ops))
        told.readline()
        timer = threading.Timer(after_s, child.kill)
        timer.start()
        answers = [line for line in told if line.endswith("\n")]
        child.wait()
        timer.cancel()
    return answers


def child() -> None:
    """Perform the operations of standard input, and answer each with a line."""
    with CollabLayer.open(sys.argv[1], settings=_BY_HAND) as layer:
        print("works", flush=True)
        for line in sys.stdin:
            print(json.dumps(perform(layer, json.loads(line))), flush=True)


def _check(path: Path, layer: CollabLayer, world: World, found: Found) -> None:
    found.residue += len(left(path.parent, world.gone))
    found.dangling += len(dangling(path))
    key = layer.receipt_key()
    for id_ in world.receipts:
        receipt = layer.receipt(id_)
        try:
            verify_receipt(receipt.model_dump_json(), key)
        except ReceiptError:
            found.unverified += 1
        found.unverified += receipt.status != "complete"
    world.receipts.clear()


def left(folder: Path, words: Iterable[bytes]) -> set[bytes]:
    """Which of the words are in the bytes of any file of the folder."""
    said: set[bytes] = set()
    for path in folder.iterdir():
        said.update(_WORD.findall(path.read_bytes().lower()))
    return said.intersection(words)


def dangling(path: Path) -> list[tuple[str, str]]:
    """Derived items, each with a source that is not there."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(_DANGLING).fetchall()


__all__ = ["child", "dangling", "left", "measure", "perform"]
