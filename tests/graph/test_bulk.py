"""Many rows in one statement: the same rows, whatever they hold."""

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Text, select
from sqlalchemy.exc import IntegrityError

from collab_layer.errors import StoreConflictError
from collab_layer.graph.bulk import array
from collab_layer.graph.engine import change, insert, insert_all, upsert
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import adjacency, interactions, settings, work

WORDS = ['say "no"', "back\\slash", "{1,2}", "NULL", "", " ", "Дюна, 'её'", "line\nbreak\ttab", "a,b", "🙂", "%s %(x)s"]


@pytest.fixture
def store(database_url):
    store = GraphStore.open(database_url, embedder="test", dim=2)
    yield store
    store.close()


def read(store, table, *order):
    with store.database.read() as connection:
        return [tuple(row) for row in connection.execute(select(table).order_by(*order))]


def test_texts_come_back_as_they_were(store):
    rows = [{"tenant": "acme", "name": f"n{at:02}", "value": text} for at, text in enumerate(WORDS)]
    with store.database.write() as connection:
        insert(connection, settings, rows)
    assert [value for *_, value in read(store, settings, settings.c.name)] == WORDS


def test_bytes_numbers_and_nothing_come_back_as_they_were(store):
    blobs = [b"", b"\x00\xff", bytes(range(256)), b'"\\x']
    packs = [{"tenant": "acme", "node": at, "version": 2**62 + at, "packed": blob} for at, blob in enumerate(blobs)]
    told = [
        dict.fromkeys(column.name for column in interactions.columns) | {
            "tenant": "acme", "id": at, "actor": 1, "verb": "did", "links": "[]", "at": -at, "recorded_at": 0,
            "weight": weight, "key": None if at % 2 else f"k{at}",
        }
        for at, weight in enumerate((1.0, 0.1 + 0.2, 1e-300, -0.0, 1e22))
    ]  # fmt: skip
    with store.database.write() as connection:
        insert_all(connection, [(adjacency, packs), (interactions, told), (settings, [])])
    assert [(version, bytes(packed)) for _, _, version, packed in read(store, adjacency, adjacency.c.node)] == [
        (2**62 + at, blob) for at, blob in enumerate(blobs)
    ]
    assert read(store, interactions, interactions.c.id) == [tuple(row.values()) for row in told]


def test_of_rows_with_one_key_the_last_counts_and_others_are_left_alone(store):
    def rows(value, keys):
        return [{"tenant": "acme", "name": key, "value": f"{value}{at}"} for at, key in enumerate(keys)]

    with store.database.write() as connection:
        upsert(connection, settings, rows("a", "pqrs"))
        upsert(connection, settings, rows("b", "pqrpx"))
        upsert(connection, settings, rows("c", "xyxyz"), update=("value",))
    found = {name: value for _, name, value in read(store, settings, settings.c.name)}
    assert found == {"p": "a0", "q": "a1", "r": "a2", "s": "a3", "x": "c2", "y": "c3", "z": "c4"}


def test_each_row_gets_its_own_values_and_one_that_is_not_there_none(store):
    rows = [{"tenant": whose, "name": name, "value": "old"} for whose in ("acme", "other") for name in "pqrs"]
    new = [{"tenant": "acme", "name": name, "value": word} for name, word in zip("qxsp", WORDS, strict=False)]
    with store.database.write() as connection:
        insert(connection, settings, rows)
        change(connection, settings, [], key=("tenant", "name"))
        change(connection, settings, new, key=("tenant", "name"))
    found = {(tenant, name): value for tenant, name, value in read(store, settings, settings.c.name)}
    told = {("acme", name): word for name, word in zip("qxsp", WORDS, strict=False) if name != "x"}
    assert found == {(row["tenant"], row["name"]): "old" for row in rows} | told


@given(st.lists(st.none() | st.text(max_size=6) | st.sampled_from(['"', "\\", "a\0b", "NULL", ""])))
def test_texts_that_are_quoted_together_read_as_those_quoted_one_by_one(texts):
    def quoted(text):
        return "NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    assert array(Text(), texts) == "{" + ",".join(map(quoted, texts)) + "}"


def test_a_key_that_is_there_refuses_all(store):
    rows = [{"tenant": "acme", "name": name, "value": ""} for name in "pqrst"]
    with store.database.write() as connection:
        insert(connection, settings, rows[:1])
    with pytest.raises((StoreConflictError, IntegrityError)), store.database.write() as connection:
        insert(connection, settings, rows)
    assert len(read(store, settings, settings.c.name)) == 1


def test_a_text_that_is_too_long_is_never_cut(store):
    """PostgreSQL refuses it; SQLite, which knows no lengths, keeps it whole."""
    tenant = "t" * 200
    rows = [{"tenant": tenant, "entity": at, "pending": 1, "refresh": False, "due": 0, "lease_until": 0, "token": 0,
             "attempts": 0, "parked": False} for at in range(5)]  # fmt: skip
    refused = nullcontext() if store.database.sqlite else pytest.raises(Exception, match="too long")
    with refused, store.database.write() as connection:
        insert(connection, work, rows)
    kept = {whose for whose, *_ in read(store, work, work.c.entity)}
    assert kept == ({tenant} if store.database.sqlite else set())
