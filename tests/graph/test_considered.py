"""Which records a model has read."""

from __future__ import annotations

from sqlalchemy import select

from collab_layer.graph import cards, considered
from collab_layer.graph.cards import CardDraft
from collab_layer.graph.tables import cards as card_table


def draft(version: str) -> CardDraft:
    return CardDraft(
        owner=1, interaction=5, backend="mem", native_id="m1", version=version, text="worms", hashed=[1], outcome=None,
        links=(), vector=None, embedder="test", at=0, thread=0, readable=True,
    )  # fmt: skip


def put(store, version: str, rev: int) -> int:
    with store.database.write() as connection:
        cards.put(connection, "acme", [draft(version)], rev, rev)
        return connection.execute(select(card_table.c.id).where(card_table.c.tenant == "acme")).scalar_one()


def read(store, numbers: list[int], tenant: str = "acme") -> set[int]:
    with store.database.read() as connection:
        return considered.of(connection, tenant, numbers)


def test_what_was_read_is_known_to_its_tenant_only(store):
    with store.database.write() as connection:
        considered.mark(connection, "acme", [1, 2], 10)
        considered.mark(connection, "acme", [2, 3], 20)
    assert read(store, [1, 2, 3, 4]) == {1, 2, 3}
    assert read(store, [1, 2, 3, 4], "other") == set()
    assert read(store, list(range(3, 2_000))) == {3}


def test_the_same_record_read_again_stays_read_and_a_new_wording_is_new(store):
    number = put(store, "1", 1)
    with store.database.write() as connection:
        considered.mark(connection, "acme", [number], 1)
    assert put(store, "1", 2) == number
    assert read(store, [number]) == {number}
    assert put(store, "2", 3) != number
    assert read(store, [number]) == set()


def test_a_record_that_is_gone_leaves_no_row(store):
    with store.database.write() as connection:
        considered.mark(connection, "acme", [7, 8], 1)
        considered.mark(connection, "other", [7], 1)
        cards.bury(connection, "acme", [7], 2)
    assert read(store, [7, 8]) == {8}
    assert read(store, [7], "other") == {7}
