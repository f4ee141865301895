"""Which items went into which answer: kept for a while, told to whom it may be told, erased; on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.errors import InputError, NotPermittedError
from collab_layer.graph.tables import entities, injected, injections
from collab_layer.testing.memory import InMemoryBackend

FIX = "Fixed the Go modules conflict by pinning golang.org/x/net to v0.23"
ASK = "go modules conflict"


@pytest.fixture
def shared(layer):
    layer.observe("agent:a", text=FIX, links=["topic:go-modules"], outcome="pinned the version")
    layer.grant("agent:a", "tenant", "records")
    layer.drain()
    return layer


def _rows(layer):
    layer.injections()
    with layer._layer._core.tools.store.database.read() as connection:
        tables = (injections, injected)
        return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]


def test_every_answer_with_something_of_others_is_a_row_cached_ones_too(shared, clock):
    reader = shared.as_("agent:b", purpose="support")
    ids = tuple(facet.id for facet in reader.context("agent:b", ASK).facets)
    clock.advance(hours=1)
    while not (again := reader.context("agent:b", ASK)).cached:
        clock.advance(hours=1)
    found = shared.injections()
    assert len(found) >= 2
    assert all(set(one.items) == set(ids) for one in found)
    assert all((str(one.entity), str(one.principal)) == ("agent:b", "agent:b") for one in found)
    assert {(one.purpose, one.use) for one in found} == {("support", "context")}
    assert found[0].at == clock()
    assert again.cached


def test_an_answer_with_nothing_of_others_is_no_row(layer):
    layer.observe("agent:b", text="go modules conflict in the build")
    layer.drain()
    layer.context("agent:b", ASK)
    layer.rank("agent:b", ["item:1"])
    layer.answer("agent:b", "Why does go build fail?")
    assert layer.injections() == []


def test_who_is_known_by_an_answer_alone_is_forgotten_before_its_name_is_written(shared):
    def known():
        shared.injections()
        with shared._layer._core.tools.store.database.read() as connection:
            return set(connection.execute(select(entities.c.name)).scalars())

    assert shared.context("agent:lurker", ASK).facets
    assert shared.forget("agent:lurker").removed["entities"] == 1
    assert "agent:lurker" not in known()
    assert shared.context("agent:lurker", ASK).facets
    assert "agent:lurker" in known(), "who asks again is known again"


def test_rankings_and_answers_are_one_row_each(layer):
    for who in ("user:a", "user:b"):
        for n in range(6):
            layer.observe(who, f"item:{n}", verb="liked", text=f"Number {n} is about desert planets")
    layer.observe("user:a", "item:dune", verb="loved", text="Dune is the best book about desert planets")
    layer.grant("user:a", "user:b", "records")
    layer.drain()
    ranking = layer.rank("user:b", ["item:dune", "item:never"])
    answer = layer.answer("user:b", "Which book about desert planets?")
    assert answer.facets
    found = {one.use: one for one in layer.injections()}
    assert len(layer.injections()) == 2
    assert set(found["answer"].items) == {facet.id for facet in answer.facets}
    assert set(found["rank"].items) == {one.source for item in ranking.items for one in item.evidence}


def test_what_is_written_into_a_store_is_a_row(layer):
    store = InMemoryBackend()
    layer.attach(store, deliver=True)
    for who in ("user:a", "user:b"):
        for n in range(6):
            layer.observe(who, f"item:{n}", verb="liked")
    layer.grant("user:a", "user:b", "records")
    layer.drain()
    layer.observe("user:a", "item:dune", verb="loved", text="Dune is the best desert book I have read")
    layer.drain()
    sent = {update.id for update in store.derived("user:b")}
    assert sent
    found = layer.injections("user:b")
    assert {one.use for one in found} == {"delivery"}
    assert {item for one in found for item in one.items} == sent
    layer.deliver("user:b")
    assert {one.use for one in layer.injections("user:b")} == {"delivery"}, "what is sent is not told twice"


def test_explain_names_readers_to_the_operator_and_counts_them_for_others(shared):
    lesson = shared.context("agent:b", ASK).facets[0]
    shared.context("agent:b", ASK)
    shared.context("agent:c", ASK)
    [one] = shared.explain(lesson.id).received
    assert (str(one.entity), one.answers, one.use) == ("agent:b", 2, "context")
    assert one.first <= one.last
    [source] = shared.explain(lesson.id).sources
    me = shared.as_("agent:b").explain(lesson.id)
    assert [(two.entity, two.readers, two.answers, two.first) for two in me.received] == [(None, 1, 2, None)]
    assert source.principal == "agent:a"


def test_an_owner_learns_how_many_got_something_of_its_record_and_not_who(layer):
    [id_] = layer.observe("agent:a", text=FIX, links=["topic:go-modules"])
    layer.grant("agent:a", "tenant", "records")
    layer.drain()
    for who in ("agent:b", "agent:c"):
        layer.context(who, ASK)
    card = layer.explain(layer.context("agent:b", ASK).facets[0].id).sources[0].id
    assert card.startswith("c")
    said = layer.as_("agent:a").explain(id_)
    assert "agent:b" not in said.model_dump_json()
    assert sum(one.readers for one in said.received) == 2
    assert {str(one.entity) for one in layer.explain(id_).received} == {"agent:b", "agent:c"}


def test_a_principal_sees_what_it_was_told_and_nobody_elses(shared):
    for who in ("agent:b", "agent:c"):
        shared.as_(who).context(who, ASK)
    me = shared.as_("agent:b")
    assert {str(one.entity) for one in me.injections()} == {"agent:b"}
    assert me.injections("agent:b") == me.injections()
    with pytest.raises(NotPermittedError):
        me.injections("agent:c")
    assert shared.injections("agent:nobody") == []
    assert shared.for_tenant("other").injections() == []


def test_since_and_limit_cut_the_list(shared, clock):
    for _ in range(4):
        shared.context("agent:b", ASK)
        clock.advance(hours=24)
    assert len(shared.injections()) == 4
    assert len(shared.injections(since=clock() - timedelta(hours=49))) == 2
    assert [one.at for one in shared.injections(limit=1)] == [clock() - timedelta(hours=24)]
    for limit in (0, 100_001):
        with pytest.raises(InputError):
            shared.injections(limit=limit)


def test_rows_end_after_their_days_and_are_removed(shared, clock):
    shared.context("agent:b", ASK)
    assert len(shared.injections()) == 1
    clock.advance(hours=24 * 90 + 1)
    assert shared.injections() == [], "not told any more"
    shared.drain()
    assert _rows(shared) == [0, 0]


def test_a_tenant_can_keep_none(database_url):
    with CollabLayer.open(database_url, settings=Settings(worker=False, injection_days=0)) as layer:
        layer.observe("agent:a", text=FIX)
        layer.grant("agent:a", "tenant", "records")
        layer.drain()
        assert layer.context("agent:b", ASK).facets
        assert _rows(layer) == [0, 0]


def test_no_row_is_lost_on_closing(database_url):
    with CollabLayer.open(database_url, settings=Settings(worker=False)) as layer:
        layer.observe("agent:a", text=FIX)
        layer.grant("agent:a", "tenant", "records")
        layer.drain()
        for n in range(50):
            assert layer.context(f"agent:b{n % 5}", ASK).facets
    with CollabLayer.open(database_url, settings=Settings(worker=False)) as layer:
        assert len(layer.injections()) == 50


@pytest.mark.parametrize("what", ["reader", "owner", "record", "item"])
def test_the_log_goes_with_the_reader_and_with_the_items_also_what_was_not_written_yet(layer, what):
    [record] = layer.observe("agent:a", text=FIX)
    layer.grant("agent:a", "tenant", "records")
    layer.drain()
    [lesson] = layer.context("agent:b", ASK).facets
    layer.injections()
    layer.context("agent:b", ASK)
    layer.forget({"reader": "agent:b", "owner": "agent:a", "record": record, "item": lesson.id}[what])
    assert layer.injections() == []
    assert _rows(layer) == [0, 0]
    with layer._layer._core.tools.store.database.read() as connection:
        names = set(connection.execute(select(entities.c.name)).scalars())
    assert ("agent:b" in names) == (what != "reader"), "writing the log brings nobody back"


def test_who_asked_is_forgotten_with_its_questions(shared):
    shared.grant("agent:b", "agent:c", "records")
    shared.observe("agent:b", text="go modules again")
    shared.drain()
    shared.as_("agent:c").context("agent:b", ASK)
    assert [str(one.principal) for one in shared.injections("agent:b")] == ["agent:c"]
    shared.forget("agent:c")
    assert shared.injections() == []


def test_a_cached_read_waits_for_no_write(shared):
    log = shared._layer._core.tools.log
    shared.context("agent:b", ASK)
    shared.injections()
    with log._writing:  # somebody is writing for long
        for _ in range(20):
            assert shared.context("agent:b", ASK).facets
    assert len(shared.injections()) == 21
