"""Every loader, every kind of bad data: one clear sentence that names the place, before any work."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from collab_layer.bench import data, gatemem
from collab_layer.bench.threads_data import load_threads
from collab_layer.bench.tickets_data import load_tickets
from collab_layer.errors import DataSetError
from collab_layer.surface.cli.main import main

from .conftest import write_ratings, write_sequences
from .govern_sets import CHECKPOINTS, episode, write_gatemem
from .test_threads import dump
from .test_tickets import a_row, custom, pack, trajectories

Change = Callable[[Path], object]


class Loader(NamedTuple):
    """How a good set is written and read, and what `collab` command reads it."""

    write: Change
    load: Callable[[Path], object]
    command: tuple[str, ...]


def _posts(folder: Path) -> None:
    rows: list[dict[str, Any]] = []
    for n in range(25):
        at = f"2024-05-{1 + n:02}T12:00:00Z"
        asks: dict[str, Any] = {"id": f"q{n}", "thread": f"t{n}", "author": "a", "at": at, "text": f"How {n}?"}
        rows.append({**asks, "asks": True, "earlier": ["t0"] if n else []})
    _write(folder / "threads.jsonl", "\n".join(map(json.dumps, rows)))


LIFT, TICKETS, THREADS = ("bench", "lift"), ("bench", "tasks", "tickets"), ("bench", "tasks", "threads")
LOADERS = {
    "sequences": Loader(write_sequences, data.load, LIFT),
    "ratings": Loader(write_ratings, data.load, LIFT),
    "tickets": Loader(lambda folder: pack(folder, trajectories()), load_tickets, TICKETS),
    "own tickets": Loader(lambda folder: custom(folder, [a_row(n) for n in range(60)]), load_tickets, TICKETS),
    "threads": Loader(dump, load_threads, THREADS),
    "own threads": Loader(_posts, load_threads, THREADS),
    "gatemem": Loader(write_gatemem, gatemem.load, ("bench", "govern")),
}


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def text_of(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def put(path: Path, raw: bytes) -> None:
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def swap(name: str, old: str, new: str, count: int = -1) -> Change:
    """Replace words of one file."""

    def change(folder: Path) -> None:
        text = text_of(folder / name)
        assert old in text
        put(folder / name, text.replace(old, new, count).encode())

    return change


def double(name: str, line: int) -> Change:
    """A line twice."""

    def change(folder: Path) -> None:
        lines = text_of(folder / name).splitlines()
        put(folder / name, "\n".join([*lines[: line + 1], *lines[line:]]).encode())

    return change


def recode(name: str, encoding: str) -> Change:
    """The same words in another encoding, with a Russian one among them."""

    def change(folder: Path) -> None:
        put(folder / name, (text_of(folder / name) + "\nзапись").encode(encoding))

    return change


def cut(name: str) -> Change:
    """A gzip that ends too soon."""

    def change(folder: Path) -> None:
        path = folder / name
        raw = path.read_bytes() if path.suffix == ".gz" else gzip.compress(path.read_bytes())
        (folder / name.removesuffix(".gz")).unlink(missing_ok=True)
        (folder / f"{name.removesuffix('.gz')}.gz").write_bytes(raw[: len(raw) // 2])

    return change


def packed(change: Callable[[dict[str, Any]], object]) -> Change:
    def changed(held: dict[str, Any]) -> dict[str, Any]:
        change(held)
        return held

    return lambda folder: pack(folder, trajectories(), changed)


def twice(folder: Path) -> None:
    held = trajectories()
    name = next(iter(held))
    pack(folder, {**held, name.replace("train_task_trajectories", "copy/train_task_trajectories"): held[name]})


def recoded(folder: Path) -> None:
    with tarfile.open(folder / "state_bench_train_trajectories.tar.gz", "w:gz") as archive:
        raw = json.dumps({"conversation": [{"role": "user", "content": "мой заказ"}]}, ensure_ascii=False).encode(
            "cp1251"
        )
        member = tarfile.TarInfo("datasets/train_task_trajectories/support/1.json")
        member.size = len(raw)
        archive.addfile(member, io.BytesIO(raw))


def told(change: Callable[[dict[str, Any]], object]) -> Change:
    """An episode that is not as it should be."""

    def write(folder: Path) -> None:
        one = episode()
        change(one)
        _write(folder / "office_episodes.jsonl", json.dumps(one))

    return write


POSTS, RATED, PAST = "Posts.xml.gz", "ratings.csv.gz", "2999-01-01T00:00:00Z"
ARCHIVE, OWN_TICKETS, OWN_THREADS = "state_bench_train_trajectories.tar.gz", "tickets.jsonl", "threads.jsonl"
EPISODES, CHECKED = "office_episodes.jsonl", "office_checkpoints.jsonl"

BAD: dict[str, dict[str, tuple[Change, str]]] = {
    "a missing column": {
        "sequences": (swap("movie_detail.csv", ",summary", "", 1), "summary"),
        "ratings": (swap(RATED, ",timestamp", "", 1), "timestamp"),
        "tickets": (packed(lambda held: held.pop("conversation")), "conversation"),
        "own tickets": (swap(OWN_TICKETS, '"did"', '"x"', 1), "did"),
        "threads": (swap(POSTS, "CreationDate", "X", 1), "CreationDate"),
        "own threads": (swap(OWN_THREADS, '"author"', '"x"', 1), "author"),
        "gatemem": (told(lambda one: one.pop("turns")), "turns"),
    },
    "a renamed column": {
        "sequences": (swap("movie_detail.csv", "movie_id", "movieId", 1), "movie_id"),
        "ratings": (swap(RATED, "userId", "user_id", 1), "userId"),
        "tickets": (packed(lambda held: held.update(turns=held.pop("conversation"))), "conversation"),
        "own tickets": (swap(OWN_TICKETS, '"text"', '"words"'), "text"),
        "threads": (swap(POSTS, " PostTypeId=", " Type="), "PostTypeId"),
        "own threads": (swap(OWN_THREADS, '"thread"', '"topic"'), "thread"),
        "gatemem": (told(lambda one: one.update(dialogue=one.pop("turns"))), "turns"),
    },
    "a column twice": {
        "sequences": (swap("movie_detail.csv", "rating", "title", 1), "twice"),
        "ratings": (swap(RATED, "rating", "userId", 1), "twice"),
    },
    "a duplicate row": {
        "sequences": (double("train.txt", 3), "twice"),
        "ratings": (double(RATED, 3), "twice"),
        "tickets": (twice, "same name"),
        "own tickets": (double(OWN_TICKETS, 3), "twice"),
        "threads": (double(POSTS, 4), "twice"),
        "own threads": (double(OWN_THREADS, 3), "twice"),
        "gatemem": (double(EPISODES, 0), "twice"),
    },
    "an empty user": {
        "sequences": (
            lambda folder: [put(folder / n, (text_of(folder / n) + "999\n").encode()) for n in data.SPLITS],
            "user 999 holds nothing",
        ),
        "ratings": (swap(RATED, "\n0,", "\n,", 1), "whole number"),
        "tickets": (packed(lambda held: held.update(conversation=[])), "conversation"),
        "own tickets": (swap(OWN_TICKETS, '"id": "t3"', '"id": ""', 1), "id"),
        "threads": (swap(POSTS, ' Id="1" ', ' Id="" ', 1), "Id"),
        "own threads": (swap(OWN_THREADS, '"author": "a"', '"author": ""', 1), "author"),
        "gatemem": (told(lambda one: one["turns"][0]["speaker"].update(principal_id="")), "principal_id"),
    },
    "a time in the future": {
        "ratings": (swap(RATED, ",4.5,1", ",4.5,4000000000\n#", 1), "future"),
        "threads": (swap(POSTS, "2020-01-03", "2999-01-03", 1), "future"),
        "own threads": (swap(OWN_THREADS, "2024-05-03T12:00:00Z", PAST, 1), "future"),
        "gatemem": (told(lambda one: one["turns"][0].update(timestamp=PAST)), "future"),
    },
    "another encoding": {
        "sequences": (recode("movie_detail.csv", "cp1251"), "UTF-8"),
        "ratings": (recode("movies.csv", "utf-16"), "UTF-8"),
        "tickets": (recoded, "UTF-8"),
        "own tickets": (recode(OWN_TICKETS, "cp1251"), "UTF-8"),
        "threads": (recode(POSTS, "utf-16"), "UTF-8"),
        "own threads": (recode(OWN_THREADS, "koi8-r"), "UTF-8"),
        "gatemem": (recode(CHECKED, "cp1251"), "UTF-8"),
    },
    "a truncated gzip": {
        "ratings": (cut(RATED), "gzip"),
        "tickets": (
            lambda folder: (folder / ARCHIVE).write_bytes((folder / ARCHIVE).read_bytes()[:-200]),
            "no complete tar archive",
        ),
        "threads": (cut(POSTS), "gzip"),
        "gatemem": (cut(EPISODES), "gzip"),
    },
}
CASES = [
    pytest.param(name, change, word, id=f"{kind}: {name}")
    for kind, of in BAD.items()
    for name, (change, word) in of.items()
]


def refused(name: str, folder: Path, word: str) -> None:
    with pytest.raises(DataSetError) as caught:
        LOADERS[name].load(folder)
    said = str(caught.value)
    assert word in said
    assert "\n" not in said
    assert "Traceback" not in said
    assert len(said) < 400
    assert "`" in said or "user 999" in said, "it names the place"


@pytest.mark.parametrize(("name", "change", "word"), CASES)
def test_bad_data_is_refused_in_one_sentence(tmp_path: Path, name: str, change: Change, word: str) -> None:
    LOADERS[name].write(tmp_path)
    LOADERS[name].load(tmp_path)
    change(tmp_path)
    refused(name, tmp_path, word)


WRONG = [(name, other) for name in LOADERS for other in LOADERS if LOADERS[name].load != LOADERS[other].load]


@pytest.mark.parametrize(("name", "other"), WRONG)
def test_a_folder_of_the_wrong_set_says_what_was_expected(tmp_path: Path, name: str, other: str) -> None:
    LOADERS[other].write(tmp_path)
    refused(name, tmp_path, "expected")


@pytest.mark.parametrize("name", LOADERS)
def test_a_command_ends_with_that_sentence_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    change, word = BAD["another encoding"][name]
    LOADERS[name].write(tmp_path)
    change(tmp_path)
    assert main([*LOADERS[name].command, "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert word in said
    assert len(said.strip().splitlines()) <= 6, "no trace"


def test_the_checks_can_pass(tmp_path: Path) -> None:
    assert {kind for kind in BAD} >= {"a duplicate row", "a time in the future"}
    assert len(CHECKPOINTS) > 1
    for at, loader in enumerate(LOADERS.values()):
        folder = tmp_path / str(at)
        folder.mkdir()
        loader.write(folder)
        assert loader.load(folder)
