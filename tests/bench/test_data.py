from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from collab_layer.bench.data import load
from collab_layer.errors import DataSetError


def edit(path: Path, change: Callable[[str], str]) -> None:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))
    else:
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(DataSetError) as caught:
        load(folder)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text


def test_a_history_is_train_then_valid_then_test(sequences):
    data = load(sequences)
    lines = [(sequences / name).read_text().splitlines()[7] for name in ("train.txt", "valid.txt", "test.txt")]
    expected = [int(word) for line in lines for word in line.split()[1:]]
    held = data.histories[7]
    assert [event.item for event in held] == expected
    assert [event.at for event in held] == sorted(event.at for event in held)
    assert not data.timed


def test_a_description_has_title_genres_and_summary(sequences):
    assert load(sequences).texts[0].startswith("Film 0 (1999). Genres: Drama, War. A ship")


def test_only_ratings_of_four_and_more_are_likes(ratings):
    data = load(ratings)
    assert data.timed
    assert {len(held) for held in data.histories.values()} == {10}  # twelve, two of them dislikes
    assert data.texts[3] == "Film 3, The (1999). Genres: Drama, War."


def test_a_plain_ratings_file_is_the_same_set_as_the_gzipped_one(ratings):
    zipped = load(ratings)
    packed = ratings / "ratings.csv.gz"
    (ratings / "ratings.csv").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    assert load(ratings) == zipped


def test_any_change_of_content_changes_the_digest(sequences):
    before = load(sequences).sha256
    edit(sequences / "movie_detail.csv", lambda text: text.replace("ship", "boat", 1))
    assert load(sequences).sha256 != before


def test_a_folder_that_is_not_there(tmp_path):
    refused(tmp_path / "nowhere", "nowhere", "not a folder")


def test_a_file_instead_of_a_folder(sequences):
    refused(sequences / "train.txt", "not a folder")


def test_another_folder(tmp_path):
    (tmp_path / "notes.md").write_text("hello")
    refused(tmp_path, "no set", "ratings.csv", "train.txt")


@pytest.mark.parametrize("name", ["train.txt", "valid.txt", "test.txt", "movie_detail.csv"])
def test_a_missing_file_of_the_sequences_is_named(sequences, name):
    (sequences / name).unlink()
    refused(sequences, "lacks", name)


@pytest.mark.parametrize("name", ["movies.csv", "ratings.csv.gz"])
def test_a_missing_file_of_the_ratings_is_named(ratings, name):
    (ratings / name).unlink()
    refused(ratings, "lacks", name.removesuffix(".gz"))


@pytest.mark.parametrize("name", ["train.txt", "movie_detail.csv"])
def test_an_empty_file(sequences, name):
    (sequences / name).write_text("  \n")
    refused(sequences, name, "empty")


def test_a_table_with_a_header_only(ratings):
    edit(ratings / "ratings.csv.gz", lambda text: text.splitlines()[0] + "\n")
    refused(ratings, "ratings.csv.gz", "no rows")


def test_a_renamed_column(ratings):
    edit(ratings / "ratings.csv.gz", lambda text: text.replace("movieId", "item_id", 1))
    refused(ratings, "no column movieId", "item_id")


def test_a_renamed_column_of_the_details(sequences):
    edit(sequences / "movie_detail.csv", lambda text: text.replace("summary", "plot", 1))
    refused(sequences, "movie_detail.csv", "no column summary")


def test_a_column_too_few_and_a_field_too_many(ratings):
    path = ratings / "ratings.csv.gz"
    original = gzip.decompress(path.read_bytes()).decode()
    edit(path, lambda text: text + "1,2,4.5\n")
    refused(ratings, "number of fields")
    edit(path, lambda _: original + "1,2,4.5,1000000000,\n")
    refused(ratings, "number of fields")


def test_a_film_listed_twice(sequences, ratings):
    edit(sequences / "movie_detail.csv", lambda text: text + text.splitlines()[1] + "\n")
    refused(sequences, "movie 0 appears twice")
    edit(ratings / "movies.csv", lambda text: text + "0,Again,Drama\n")
    refused(ratings, "movie 0 appears twice")


def test_a_user_listed_twice(sequences):
    edit(sequences / "valid.txt", lambda text: text + "0 1 2\n")
    refused(sequences, "valid.txt", "user 0 appears twice")


def test_a_film_held_twice_across_the_splits(sequences):
    first = (sequences / "train.txt").read_text().split()[1]
    edit(sequences / "test.txt", lambda text: text.replace("0 ", f"0 {first} ", 1))
    refused(sequences, f"holds movie {first} twice")


def test_a_rating_given_twice(ratings):
    edit(ratings / "ratings.csv.gz", lambda text: text + text.splitlines()[1] + "\n")
    refused(ratings, "twice")


def test_splits_of_different_downloads(sequences):
    edit(sequences / "test.txt", lambda text: "\n".join(text.splitlines()[1:]) + "\n")
    refused(sequences, "test.txt", "different users")


def test_an_item_that_nothing_describes(sequences, ratings):
    edit(sequences / "train.txt", lambda text: text.replace("\n", " 9999\n", 1))
    refused(sequences, "9999", "does not describe")
    edit(ratings / "ratings.csv.gz", lambda text: text + "1,9999,4.5,1000000000\n")
    refused(ratings, "9999", "movies.csv")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("999,2,11,1000000000", "rating"),
        ("999,2,nan,1000000000", "rating"),
        ("999,2,good,1000000000", "rating"),
        ("one,2,4.5,1000000000", "whole number"),
        ("999,-2,4.5,1000000000", "whole number"),
        ("999,2,4.5,99999999999", "seconds"),
        ("999,2,4.5,yesterday", "whole number"),
    ],
)
def test_a_value_that_makes_no_sense(ratings, line, word):
    edit(ratings / "ratings.csv.gz", lambda text: text + line + "\n")
    with pytest.raises(DataSetError, match=word):
        load(ratings)


def test_a_truncated_gzip(ratings):
    path = ratings / "ratings.csv.gz"
    path.write_bytes(path.read_bytes()[:-200])
    refused(ratings, "no complete gzip")


def test_a_gzip_that_is_none(ratings):
    (ratings / "ratings.csv.gz").write_text("userId,movieId,rating,timestamp\n")
    refused(ratings, "no complete gzip")


def test_a_damaged_gzip(ratings):
    path = ratings / "ratings.csv.gz"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(bytes(raw))
    refused(ratings, "no complete gzip")


def test_another_encoding(ratings):
    (ratings / "movies.csv").write_bytes("movieId,title,genres\n0,Amélie,Drama\n".encode("latin-1"))
    refused(ratings, "movies.csv", "not UTF-8")


def test_an_unclosed_quote(ratings):
    edit(ratings / "movies.csv", lambda text: text + '99,"Unclosed,Drama\n')
    refused(ratings, "movies.csv")


def test_too_few_users_to_measure(sequences):
    for name in ("train.txt", "valid.txt", "test.txt"):
        edit(sequences / name, lambda text: "\n".join(text.splitlines()[:3]) + "\n")
    refused(sequences, "only 3 users")


SHARED = Path(os.environ.get("SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the evaluation sets are not here; set SHARED_DATA")
@pytest.mark.parametrize(
    ("folder", "users", "items", "events"),
    [("movielens-1m-1k", 1_000, 3_292, 185_249), ("movielens-latest-small", 671, 9_125, 51_568)],
)
def test_the_published_sets_are_read_whole(folder, users, items, events):
    data = load(SHARED / folder)
    assert len(data.histories) == users
    assert len(data.texts) == items
    assert sum(len(held) for held in data.histories.values()) == events
