"""Evaluation sets as their publishers lay them out.

In:   a folder.
Out:  a `DataSet`: item texts, each user's items in order, a digest of the files.
Never: a guess. Anything unexpected is a `DataSetError` before any work begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collab_layer.bench.files import digest, folder_names, integer, past, read, require, short, table
from collab_layer.errors import DataSetError

LIKED = 4.0
"""Ratings from here on are likes."""
SPLITS = ("train.txt", "valid.txt", "test.txt")
DETAIL = "movie_detail.csv"
MOVIES = "movies.csv"
MIN_HISTORY = 5
"""Items a user must have before one of them can be asked for."""
MIN_USERS = 8

_ONE_MINUTE = timedelta(minutes=1)
_END = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Event:
    """A user came to hold an item."""

    item: int
    at: datetime


@dataclass(frozen=True, slots=True)
class DataSet:
    """One evaluation set.

    Attributes:
        name: Short, the first part of every row's name.
        timed: True if `at` is real; else only its order within one user means anything.
        texts: A description of each item, by its number.
        histories: Each user's events, oldest first, every item once.
        sha256: Over the names and bytes of the files that were read.
    """

    name: str
    timed: bool
    texts: Mapping[int, str]
    histories: Mapping[int, Sequence[Event]]
    sha256: str


def load(folder: Path) -> DataSet:
    """Read the set in `folder`, recognised by its file names.

    Known: the 1,000-user selection of MovieLens-1M published with Agent4Rec (`train.txt`,
    `valid.txt`, `test.txt`, `movie_detail.csv`), and MovieLens latest-small (`ratings.csv`,
    gzipped or not, and `movies.csv`; ratings of 4 and more are likes).

    Raises:
        DataSetError: No such folder, no known set in it, or a damaged file; one sentence says which.
    """
    names = folder_names(folder)
    ratings = next((name for name in ("ratings.csv", "ratings.csv.gz") if name in names), None)
    if DETAIL in names or names & set(SPLITS):
        return _checked(_sequences(folder, names))
    if ratings or MOVIES in names:
        return _checked(_ratings(folder, names, ratings))
    raise DataSetError(
        f"`{folder}` holds no set that is known here: expected {', '.join(SPLITS)} and {DETAIL}, "
        f"or ratings.csv and {MOVIES}"
    )


def _checked(data: DataSet) -> DataSet:
    enough = sum(len(events) > MIN_HISTORY for events in data.histories.values())
    if enough < MIN_USERS:
        raise DataSetError(
            f"only {enough} users have more than {MIN_HISTORY} items, at least {MIN_USERS} are needed to measure"
        )
    return data


# -- MovieLens-1M, 1,000 users, in order -------------------------------------------------


def _sequences(folder: Path, names: set[str]) -> DataSet:
    require(folder, names, (*SPLITS, DETAIL))
    files = {name: read(folder / name) for name in (*SPLITS, DETAIL)}
    texts: dict[int, str] = {}
    for line, row in table(DETAIL, files[DETAIL], ("movie_id", "title", "genres", "summary")):
        item = integer(DETAIL, line, row["movie_id"])
        if item in texts:
            raise DataSetError(f"`{DETAIL}` line {line}: movie {item} appears twice")
        texts[item] = _described(row["title"], row["genres"], row["summary"])
    items: dict[int, list[int]] = {}
    for place, name in enumerate(SPLITS):
        part = _lists(name, files[name])
        if place and part.keys() != items.keys():
            raise DataSetError(f"`{name}` and `{SPLITS[0]}` list different users; they are not of one download")
        for user, held in part.items():
            items.setdefault(user, []).extend(held)
    for user, held in items.items():
        _plausible(user, held, texts)
    histories = {user: _in_order(held) for user, held in items.items()}
    return DataSet("ml1m", False, texts, histories, digest(files))


def _lists(name: str, text: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for line, content in enumerate(text.splitlines(), start=1):
        numbers = [integer(name, line, word) for word in content.split()]
        if not numbers:
            continue
        if numbers[0] in found:
            raise DataSetError(f"`{name}` line {line}: user {numbers[0]} appears twice")
        found[numbers[0]] = numbers[1:]
    if not found:
        raise DataSetError(f"`{name}` is empty")
    return found


def _plausible(user: int, held: Sequence[int], texts: Mapping[int, str]) -> None:
    if not held:
        raise DataSetError(f"user {user} holds nothing in any of {', '.join(SPLITS)}")
    unknown = next((item for item in held if item not in texts), None)
    if unknown is not None:
        raise DataSetError(f"user {user} holds movie {unknown}, which `{DETAIL}` does not describe")
    if len(set(held)) < len(held):
        twice = next(item for at, item in enumerate(held) if item in held[:at])
        raise DataSetError(f"user {user} holds movie {twice} twice across {', '.join(SPLITS)}")


def _in_order(held: Sequence[int]) -> list[Event]:
    """The set has no clock: a minute between two events, everybody's last at the same moment."""
    return [Event(item, _END - (len(held) - 1 - at) * _ONE_MINUTE) for at, item in enumerate(held)]


# -- MovieLens latest-small ---------------------------------------------------------------


def _ratings(folder: Path, names: set[str], ratings: str | None) -> DataSet:
    if ratings is None:
        raise DataSetError(f"`{folder}` lacks ratings.csv (or ratings.csv.gz)")
    require(folder, names, (MOVIES,))
    files = {name: read(folder / name) for name in (MOVIES, ratings)}
    texts: dict[int, str] = {}
    for line, row in table(MOVIES, files[MOVIES], ("movieId", "title", "genres")):
        item = integer(MOVIES, line, row["movieId"])
        if item in texts:
            raise DataSetError(f"`{MOVIES}` line {line}: movie {item} appears twice")
        texts[item] = _described(row["title"], row["genres"], "")
    seen: set[tuple[int, int]] = set()
    likes: dict[int, list[Event]] = {}
    for line, row in table(ratings, files[ratings], ("userId", "movieId", "rating", "timestamp")):
        user, item = integer(ratings, line, row["userId"]), integer(ratings, line, row["movieId"])
        if (user, item) in seen:
            raise DataSetError(f"`{ratings}` line {line}: user {user} rated movie {item} twice")
        if item not in texts:
            raise DataSetError(f"`{ratings}` line {line}: movie {item} is not in `{MOVIES}`")
        seen.add((user, item))
        at = _moment(ratings, line, row["timestamp"])
        if _stars(ratings, line, row["rating"]) >= LIKED:
            likes.setdefault(user, []).append(Event(item, at))
    histories = {user: sorted(events, key=lambda event: (event.at, event.item)) for user, events in likes.items()}
    return DataSet("mls", True, texts, histories, digest(files))


def _stars(name: str, line: int, word: str) -> float:
    try:
        stars = float(word)
    except ValueError:
        stars = -1.0
    if not 0.5 <= stars <= 5.0:
        raise DataSetError(f"`{name}` line {line}: {short(word)} is no rating from 0.5 to 5")
    return stars


def _moment(name: str, line: int, word: str) -> datetime:
    seconds = integer(name, line, word)
    if not 0 < seconds < 4_102_444_800:  # until 2100
        raise DataSetError(f"`{name}` line {line}: {short(word)} is no time in seconds since 1970")
    return past(f"`{name}` line {line}", datetime.fromtimestamp(seconds, UTC))


def _described(title: str, genres: str, summary: str) -> str:
    parts = [f"{title.strip()}."]
    named = [genre for genre in genres.split("|") if genre and genre != "(no genres listed)"]
    if named:
        parts.append(f"Genres: {', '.join(named)}.")
    if summary.strip():
        parts.append(summary.strip())
    return " ".join(parts)


__all__ = ["LIKED", "MIN_HISTORY", "DataSet", "Event", "load"]
