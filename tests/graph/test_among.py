"""Statements that are given many values at once find them by an index, on SQLite as it plans them."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.dialects import sqlite

from collab_layer.graph import adjacency, cards, derived
from collab_layer.graph.lean import Lean
from collab_layer.graph.store import GraphStore

STATEMENTS = {
    "versions": adjacency._VERSIONS,
    "packs": adjacency._PACKS,
    "present": adjacency._PRESENT,
    "past": adjacency._PAST,
    "stamps": adjacency._STAMPS,
    "open": adjacency._OPEN,
    "foldable": adjacency._FOLDABLE.statement,
    "cards": cards._TEXTS,
    "marks": derived._MARKS,
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_table_is_read_from_end_to_end(tmp_path, name):
    store = GraphStore.open(str(tmp_path / "plan.db"), embedder="test", dim=8)
    statement = STATEMENTS[name]
    kept = statement.statement if isinstance(statement, Lean) else statement
    compiled = kept.compile(dialect=sqlite.dialect(paramstyle="named"))
    given = {
        key: "[1, 2]" if key.startswith(("nodes", "ids", "always")) else value for key, value in compiled.params.items()
    }
    with store.database.read() as connection:
        plan = [str(row.detail) for row in connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"), given)]
    store.close()
    tables = ("edges", "adjacency", "cards", "derived")
    looked = [step for step in plan if any(table in step for table in tables)]
    assert looked
    by_values = ("node=?", "src=?", " id=?", "(id=?", "AND id=?")
    assert all(step.startswith("SEARCH") and any(key in step for key in by_values) for step in looked), plan
