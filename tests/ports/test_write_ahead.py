"""A file that several processes open at the same moment has a write-ahead log, and nobody is turned away."""

import multiprocessing
import sqlite3
import time
from contextlib import closing
from threading import Thread

import pytest

from collab_layer.ports.write_ahead import write_ahead

FILES = 60
PROCESSES = 6


def connect(path):
    return sqlite3.connect(path, timeout=5, isolation_level=None)


def opens_each(folder, start, answers):
    """In a process of its own: open every file at the same moment as the others do."""
    modes = []
    for number in range(FILES):
        start.wait(30)
        with closing(connect(folder / f"{number}.db")) as connection:
            try:
                modes.append(write_ahead(connection, wait_s=5))
            except sqlite3.Error as error:
                modes.append(str(error))
    answers.put(set(modes))


def test_all_who_open_a_new_file_at_once_have_it(tmp_path):
    """SQLite turns some of them away at once, whatever their timeout: one in thirty, measured with six."""
    context = multiprocessing.get_context("spawn")
    start, answers = context.Barrier(PROCESSES), context.Queue()
    crowd = [context.Process(target=opens_each, args=(tmp_path, start, answers)) for _ in range(PROCESSES)]
    for one in crowd:
        one.start()
    try:
        assert [answers.get(timeout=60) for _ in crowd] == [{"wal"}] * PROCESSES
    finally:
        for one in crowd:
            one.join(10)


def test_whoever_holds_the_file_is_waited_for(tmp_path):
    modes = []

    def opens():
        with closing(sqlite3.connect(tmp_path / "held.db", timeout=0)) as connection:
            modes.append(write_ahead(connection, wait_s=30))

    with closing(connect(tmp_path / "held.db")) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        opening = Thread(target=opens)
        opening.start()
        time.sleep(0.1)
        assert not modes
        holder.execute("COMMIT")
        opening.join(30)
    assert modes == ["wal"]


def test_not_for_ever(tmp_path):
    with closing(connect(tmp_path / "held.db")) as holder, closing(connect(tmp_path / "held.db")) as other:
        other.execute("PRAGMA busy_timeout = 0")
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            write_ahead(other, wait_s=0.05)


def test_what_is_no_database_is_said_at_once(tmp_path):
    (tmp_path / "words.db").write_text("these are words and no database " * 40)
    with closing(connect(tmp_path / "words.db")) as connection, pytest.raises(sqlite3.DatabaseError, match="not a"):
        write_ahead(connection, wait_s=60)


def test_memory_keeps_no_log():
    with closing(connect(":memory:")) as connection:
        assert write_ahead(connection, wait_s=1) == "memory"
