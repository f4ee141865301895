"""Processes, and a look into the database past the layer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from collab_layer import CollabLayer, Sharing
from collab_layer.config import Settings
from collab_layer.graph.engine import parse_url

from .programs import compared

PROGRAMS = Path(__file__).with_name("programs.py")

GRAPH = {
    "entities": "SELECT name, kind, display, since, named, degree FROM entities",
    "interactions": "SELECT i.key, a.name, t.name, i.verb, i.at, i.text, i.weight FROM interactions i"
    " JOIN entities a ON a.id = i.actor JOIN entities t ON t.id = i.target",
    "edges": "SELECT i.key, s.name, d.name, e.kind, e.weight, e.at, e.valid_to FROM edges e"
    " JOIN entities s ON s.id = e.src JOIN entities d ON d.id = e.dst JOIN interactions i ON i.id = e.interaction",
    "cards": "SELECT i.key, o.name, c.text, c.at, c.valid_to, c.length, t.name FROM cards c"
    " JOIN interactions i ON i.id = c.interaction JOIN entities o ON o.id = c.owner"
    " JOIN entities t ON t.id = c.thread",
    "terms": "SELECT i.key, t.term, t.tf FROM terms t JOIN cards c ON c.id = t.card"
    " JOIN interactions i ON i.id = c.interaction",
}
"""Of one tenant, without what is made of it in some order: ids, times of recording, derived items."""


class Rows:
    """What the tables hold, read past the layer."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(parse_url(url))

    def __call__(self, query: str) -> list[tuple[Any, ...]]:
        with self._engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def one(self, query: str) -> Any:
        ((value,),) = self(query)
        return value

    def repeated(self) -> dict[str, list[tuple[Any, ...]]]:
        """Whatever stands in the tables more often than it happened; empty if all is well."""
        looks = {
            "interactions with one key": "SELECT tenant, actor, key, count(*) FROM interactions"
            " WHERE key IS NOT NULL GROUP BY 1, 2, 3 HAVING count(*) > 1",
            "edges of one interaction": "SELECT tenant, interaction, src, dst, kind, count(*) FROM edges"
            " WHERE interaction <> 0 GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1",
            "cards of one interaction": "SELECT tenant, interaction, count(*) FROM cards"
            " WHERE interaction <> 0 GROUP BY 1, 2 HAVING count(*) > 1",
            "derived items that say the same": "SELECT tenant, owner, kind, key, text, count(*) FROM derived"
            " WHERE superseded IS NULL GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1",
        }
        found = {what: self(query) for what, query in looks.items()}
        return {what: rows for what, rows in found.items() if rows}

    def graph(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that is told and linked, by names and keys: the same whoever wrote it, and in which order."""
        return {what: sorted(self(query), key=repr) for what, query in GRAPH.items()}

    def close(self) -> None:
        self._engine.dispose()


@pytest.fixture
def rows() -> Iterator[Callable[[str], Rows]]:
    """Opens a database for looking past the layer."""
    opened: list[Rows] = []

    def look(url: str) -> Rows:
        opened.append(Rows(url))
        return opened[-1]

    yield look
    for one in opened:
        one.close()


@pytest.fixture
def program() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts one of `programs.py`; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, str(PROGRAMS), *arguments], subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def alone(rows: Callable[[str], Rows], tmp_path: Path) -> Callable[[int], Any]:
    """What one process makes of the first so many interactions where nothing goes wrong."""

    def make(count: int) -> Any:
        url = f"sqlite:///{tmp_path / 'alone.db'}"
        sharing, settings = Sharing.within_tenant("records"), Settings(worker=False)
        with CollabLayer.open(url, sharing=sharing, settings=settings) as layer:
            layer.observe([compared(number) for number in range(count)])
            layer.drain()
        return rows(url).graph()

    return make
