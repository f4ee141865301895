"""What is kept in memory answers like what is read anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from collab_layer import CollabLayer, Sharing
from collab_layer.config import Settings
from collab_layer.governance.grants import Audience
from collab_layer.graph.engine import insert
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.postings import Postings
from collab_layer.graph.reader import _distinct
from collab_layer.graph.tables import terms
from collab_layer.testing.clock import FixedClock
from collab_layer.types.scope import Level

NOTES = [
    "the worker lost its lease while the database was restarted",
    "renew the certificate before the login loop begins",
    "the worker needs a new certificate",
    "a database index on the lease column made the worker fast",
    "login with the old certificate works until the restart",
]
QUERIES = ["worker lease database", "certificate login", "restart the worker", "index column"]


def _answers(layer):
    found = [layer.context("agent:reader", query) for query in QUERIES]
    return [[(facet.text, round(facet.confidence, 9)) for facet in memory.facets] for memory in found]


def test_a_layer_that_saw_every_change_answers_like_one_opened_now(database_url):
    def open_(clock):
        return CollabLayer.open(database_url, tenant="acme", settings=Settings(worker=False), clock=clock)

    clock = FixedClock()
    with open_(clock) as layer:
        layer.grant("agent:a0", "tenant", "records")
        told = []
        for step, note in enumerate([*NOTES, *NOTES]):
            owner = f"agent:a{step % 3}"
            if step % 3:
                layer.grant(owner, "tenant", "records")
            told += layer.observe(owner, text=f"{note}, case {step}", links=[f"topic:t{step % 4}"])
            layer.drain()
            if step == 4:
                layer.forget(told[0])
            if step == 7:
                denied = layer.grant("agent:a1", "tenant", "records")
                layer.revoke(denied.id)
            with open_(clock) as fresh:
                assert _answers(layer) == _answers(fresh)
        assert any(_answers(layer))


def test_a_record_told_after_a_word_was_looked_for_is_found_by_it(sqlite_url):
    with CollabLayer.open(
        sqlite_url, tenant="acme", settings=Settings(worker=False), sharing=Sharing.within_tenant("records")
    ) as layer:
        layer.observe("agent:a", text="the printer jams on thick paper")
        layer.drain()
        layer.context("agent:reader", "printer")
        layer.observe("agent:b", text="the printer prints blank pages after a firmware update")
        layer.drain()
        said = [facet.text for facet in layer.context("agent:reader", "printer blank pages").facets]
    assert any("firmware" in text for text in said)


@pytest.mark.parametrize("most", [3, 1_000])
def test_terms_read_at_once_are_as_each_read_by_itself(store, most):
    held = {term: range(100 - 7 * term, 100) for term in range(1, 6)}
    rows = [
        {"tenant": tenant, "term": term, "card": card, "tf": 1 + card % 3}
        for tenant in ("acme", "other")
        for term, cards in held.items()
        for card in cards
    ]
    none, wanted = np.zeros(0, np.int64), [2, 9, 1, 2, 5]
    with store.database.write() as connection:
        insert(connection, terms, rows)

        def read(*asked):
            postings = Postings("acme", lambda cards: np.where(cards % 5, 200 - cards, -1), most)
            return [(found.tolist(), tf.tolist()) for found, tf in postings.of(connection, asked, none)]

        said = list[str]()
        event.listen(connection, "before_cursor_execute", lambda *given: said.append(given[2]))
        at_once = read(*wanted)
        each = 4  # words, one of them asked for twice
        assert len(said) == (each if store.database.sqlite else 1 if most == 1_000 else 1 + each)
        assert at_once == [read(term)[0] for term in wanted]
    newest = [card for card in held[2] if card >= 100 - most]
    there = sorted((200 - card, 1 + card % 3) for card in newest if card % 5)
    assert at_once[0] == ([row for row, _ in there], [tf for _, tf in there])
    assert at_once[1] == ([], [])
    assert at_once[0] == at_once[3]
    assert len(at_once[4][0]) == (3 if most == 3 else 28)


@given(st.lists(st.integers(0, 2**31 - 1), max_size=200))
def test_distinct_is_what_numpy_calls_unique(values):
    ids = np.array(values, np.int64)
    expected, inverse = np.unique(ids, return_inverse=True)
    found, rows = _distinct(ids)
    assert np.array_equal(found, expected)
    assert np.array_equal(rows, inverse)


LEVELS = st.sampled_from(list(Level))


@given(
    owners=st.lists(st.booleans(), min_size=1, max_size=30),
    default=LEVELS,
    named=st.dictionaries(st.integers(0, 40), LEVELS, max_size=8),
    reader=st.integers(-1, 40),
)
def test_levels_of_all_are_the_levels_of_each(owners, default, named, reader):
    index = TenantIndex("acme", "test", 8)
    index._is_owner.extend(np.array(owners))
    audience = Audience(reader, default, named)
    ids = np.arange(len(owners))
    assert np.array_equal(index.levels(audience), audience.levels(ids, np.array(owners)))
