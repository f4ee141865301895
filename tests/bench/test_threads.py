"""Threads: a replay in time without a link in any text; bad dumps refused in a sentence."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any

import pytest

from collab_layer.bench import threads
from collab_layer.bench.options import Options
from collab_layer.bench.stores import Item
from collab_layer.bench.threads_data import load_threads
from collab_layer.errors import DataSetError

START = datetime(2020, 1, 1)
TOPICS = ("tagging old maps", "closing duplicate posts", "citing wikipedia", "dating coins", "naming rivers")


def dump(folder: Path, count: int = 30, change: Callable[[str], str] = str) -> Path:
    """Questions of five topics; later ones link to the first of their topic; each has an answer."""
    rows: list[str] = []
    for n in range(count):
        topic, first = TOPICS[n % 5], n % 5
        at = START + timedelta(days=n)
        link = f'<p>see <a href="https://maps.meta.stackexchange.com/questions/{10 * first + 1}/x">that</a></p>'
        body = f"<p>How about {topic}, case {n}?</p>{link if n >= 5 else ''}"
        rows.append(
            f'<row Id="{10 * n + 1}" PostTypeId="1" CreationDate="{at.isoformat()}" OwnerUserId="{n % 4}" '
            f'AcceptedAnswerId="{10 * n + 2}" Title="About {topic}" Body="{escape(body)}" />'
        )
        rows.append(
            f'<row Id="{10 * n + 2}" PostTypeId="2" ParentId="{10 * n + 1}" OwnerUserId="{10 + n % 5}" '
            f'CreationDate="{at.isoformat()}" Body="{escape(f"<p>Look at {topic} first</p>")}" />'
        )
    text = change('<?xml version="1.0"?>\n<posts>\n' + "\n".join(rows) + "\n</posts>")
    (folder / "Posts.xml.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(DataSetError) as caught:
        load_threads(folder)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text


def test_links_are_labels_and_in_no_text(tmp_path: Path) -> None:
    data = load_threads(dump(tmp_path))
    assert data.earlier["t51"] == {"t1"}
    assert data.accepted["t51"] == "u10"
    assert not any("stackexchange" in post.text or "that" in post.text for post in data.posts)
    assert [post.at for post in data.posts] == sorted(post.at for post in data.posts)


def test_links_to_later_threads_and_to_other_sites_do_not_count(tmp_path: Path) -> None:
    text = "https://other.example.com/questions/11 and https://maps.meta.stackexchange.com/questions/291"
    comments = f'<comments><row Id="1" PostId="51" Text="{text}" /></comments>'
    (dump(tmp_path) / "Comments.xml").write_text(comments, encoding="utf-8")
    assert load_threads(tmp_path).earlier["t51"] == {"t1"}


def test_a_note_that_a_question_is_a_duplicate_is_cut_out(tmp_path: Path) -> None:
    note = escape("<blockquote><p>Possible Duplicate: Of Something</p></blockquote>")
    data = load_threads(dump(tmp_path, change=lambda text: text.replace("&lt;p&gt;How", f"{note}&lt;p&gt;How", 1)))
    assert not any("Something" in post.text for post in data.posts)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for n in range(24):
        at = (START + timedelta(days=n)).isoformat() + "Z"
        earlier = [f"t{n - 5}"] if n >= 5 else []
        rows.append({"id": f"q{n}", "thread": f"t{n}", "author": f"a{n % 3}", "at": at, "text": TOPICS[n % 5],
                     "asks": True, "earlier": earlier})  # fmt: skip
    (tmp_path / "threads.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert load_threads(tmp_path).earlier["t7"] == {"t2"}
    rows[3]["at"] = "2999-01-01T00:00:00Z"
    (tmp_path / "threads.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    refused(tmp_path, "line 4", "future")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[:-400], ("no complete XML",)),
        (lambda text: text.replace(' Id="1" ', ' Number="1" ', 1), ("row 1", "Id", "required")),
        (lambda text: text.replace('Id="11"', 'Id="1"', 1), ("post 1 appears twice",)),
        (lambda text: text.replace('ParentId="1"', 'ParentId="999"', 1), ("question 999", "not there")),
        (lambda text: text.replace("2020-01-01", "2999-01-01", 1), ("future",)),
        (lambda text: text.replace("2020-01-01", "soon", 1), ("CreationDate",)),
        (lambda text: "<users></users>", ("no `row`",)),
        (lambda text: text.replace("<posts>", '<!DOCTYPE x [<!ENTITY a "b">]><posts>'), ("entities",)),
        (lambda text: text.replace("stackexchange.com/questions", "nowhere"), ("earlier",)),
    ],
)
def test_a_damaged_dump_is_named(tmp_path: Path, change: Callable[[str], str], words: tuple[str, ...]) -> None:
    refused(dump(tmp_path, change=change), *words)


def test_a_truncated_gzip_and_another_folder(tmp_path: Path) -> None:
    refused(tmp_path, "no threads", "Posts.xml")
    path = dump(tmp_path) / "Posts.xml.gz"
    path.write_bytes(path.read_bytes()[:-60])
    refused(tmp_path, "Posts.xml.gz", "gzip")


def test_threads_count_once_at_their_first_place(tmp_path: Path) -> None:
    posts = {f"r{at}": post for at, post in enumerate(load_threads(dump(tmp_path)).posts)}
    items = [Item("a", ("r2", "r0"), 1), Item("b", ("r1",), 1), Item("facet", (), 1)]
    assert threads.threads_of(items, posts) == ["t11", "t1"]


def test_the_archive_is_replayed_through_the_layer(tmp_path: Path) -> None:
    report = asyncio.run(threads.measure(Options(dump(tmp_path), only=("earlier",)), lambda *_: None))
    value = {row.name: row.value for row in report.rows}
    assert value["threads.earlier.ours.r5"] > value["threads.earlier.own.r5"]
    assert value["threads.earlier.ours.r5"] > 0.8
