"""Small sets in the layouts of their publishers: two tastes, users hold films of one of them."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

WORDS = (("ship", "storm", "harbour", "sailor"), ("robot", "planet", "laser", "orbit"))


def histories(users: int, items: int, held: int, seed: int = 0) -> list[list[int]]:
    """Even users hold even items, with one in ten from the other half."""
    random = np.random.default_rng(seed)
    out: list[list[int]] = []
    for user in range(users):
        likely = np.where(np.arange(items) % 2 == user % 2, 9.0, 1.0)
        popular = 1.0 / (1.0 + np.arange(items) // 2)
        chance = likely * popular
        out.append(random.choice(items, held, replace=False, p=chance / chance.sum()).tolist())
    return out


def write_sequences(folder: Path, users: int = 40, items: int = 60, held: int = 12) -> Path:
    """train, valid, test and movie_detail."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"train.txt": slice(0, -4), "valid.txt": slice(-4, -2), "test.txt": slice(-2, None)}
    lists = histories(users, items, held)
    for name, part in parts.items():
        lines = [" ".join(map(str, [user, *items_[part]])) for user, items_ in enumerate(lists)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / "movie_detail.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["movie_id", "title", "genres", "rating", "summary"])
        for item in range(items):
            words = WORDS[item % 2]
            summary = f"A {words[item % 4]}, a {words[(item // 2) % 4]}."
            out.writerow([item, f"Film {item} (1999)", "Drama|War", 3.5, summary])
    return folder


def write_ratings(folder: Path, users: int = 60, items: int = 60, held: int = 12) -> Path:
    """ratings and movies; every fifth rating is a dislike."""
    folder.mkdir(parents=True, exist_ok=True)
    movies = ["movieId,title,genres"] + [f'{item},"Film {item}, The (1999)",Drama|War' for item in range(items)]
    (folder / "movies.csv").write_text("\n".join(movies) + "\n", encoding="utf-8")
    lines = ["userId,movieId,rating,timestamp"]
    random = np.random.default_rng(1)
    for user, items_ in enumerate(histories(users, items, held)):
        start = int(random.integers(0, 10_000))
        for at, item in enumerate(items_):
            lines.append(f"{user},{item},{2.0 if at % 5 == 4 else 4.5},{1_000_000_000 + 100 * start + 50_000 * at}")
    text = "\n".join(lines) + "\n"
    (folder / "ratings.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return folder


@pytest.fixture
def sequences(tmp_path: Path) -> Path:
    return write_sequences(tmp_path / "sequences")


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    return write_ratings(tmp_path / "ratings")
