"""A database that an older version filled answers the same after it was brought forward."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import MetaData, Table, inspect, select

from collab_layer.config import Settings
from collab_layer.graph import schema
from collab_layer.graph.engine import Database
from collab_layer.sync import CollabLayer
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.entity import Entity

BEFORE_TIME = "0004"
ASKED = "SSO login loop after the Okta certificate"


def tell(layer, store, clock) -> None:
    """A story without anything that only the newer version knows: tastes, notes, a store, a team, grants."""
    layer.observe("user:new", "item:dune", verb="liked")
    layer.observe("user:new", text="Looking after the SSO login", links=["topic:sso"])
    for n in range(5):
        for book in ("dune", "hyperion", f"own{n}"):
            layer.observe(f"user:u{n}", f"item:{book}", verb="liked")
        clock.advance(hours=1)
        layer.observe(
            f"user:u{n}",
            text=f"Ticket {n}: the SSO login loop came back after the Okta certificate was renewed",
            links=["topic:sso", "topic:okta"],
            outcome="cleared the session cookie",
        )
    for n, text in enumerate(("Okta certificate: renew it before midnight", "Pin the parser version")):
        store.add(f"user:u{n}", text, links=["topic:okta"])
    layer.index(store)
    layer.observe("user:new", "team:support", verb="joined")
    layer.grant("user:u0", "user:new", "records")
    layer.grant("user:u1", "team:support", "records")
    layer.grant("user:u2", "tenant", "facets")
    layer.drain()


def answers(layer, clock) -> dict[str, object]:
    """What a reader is told, of now and of the past; when it was made and by what id may differ."""

    def facets(**asked):
        found = layer.context("user:new", **asked).facets
        return [(one.text, one.confidence, [e.source for e in one.evidence]) for one in found]

    def near(**asked):
        return [(str(one.entity), round(one.score, 9)) for one in layer.neighbors("user:new", **asked)]

    then = clock() - timedelta(hours=2, minutes=30)
    ranked = layer.rank("user:new", ["item:hyperion", "item:own3", "item:nothing"]).items
    return {
        "now": facets(),
        "asked": facets(query=ASKED),
        "then": facets(query=ASKED, as_of=then),
        "near": near(),
        "near then": near(as_of=then),
        "ranked": [(str(one.entity), round(one.score, 9)) for one in ranked],
        "changes": [
            (one.kind, str(one.whose), one.old, one.new, one.at, one.recorded_at)
            for one in layer.changes("user:new", clock() - timedelta(days=9))
        ],
    }


def as_of_version(source: str, target: str, version: str) -> None:
    """Rows of a database in one of an older schema: all that it has tables and columns for."""
    old, new = Database(target), Database(source)
    with old.write() as connection:
        schema.migrate(connection, version)
        with new.read() as full:
            for name in inspect(connection).get_table_names():
                if name != "alembic_version":
                    _copy(full, connection, name)
    old.dispose()
    new.dispose()


def _copy(source, target, name: str) -> None:
    there, here = (Table(name, MetaData(), autoload_with=one) for one in (source, target))
    columns = [there.c[column.name] for column in here.columns if column.name in there.c]
    rows = [dict(row) for row in source.execute(select(*columns)).mappings()]
    if rows:
        target.execute(here.insert(), rows)


@pytest.fixture
def opened(clock):
    def open_(url):
        return CollabLayer.open(url, tenant="acme", settings=Settings(worker=False), clock=clock)

    return open_


def test_a_database_from_before_there_were_versions_answers_the_same(tmp_path, database_url, clock, opened):
    store, filled = InMemoryBackend("mem", clock=clock), f"sqlite:///{tmp_path / 'filled.db'}"
    with opened(filled) as layer:
        tell(layer, store, clock)
        before = answers(layer, clock)
    assert all(before.values()), "each answer has something in it"
    as_of_version(filled, database_url, BEFORE_TIME)
    with opened(database_url) as layer:
        assert answers(layer, clock) == before


def test_it_goes_on_from_there_with_versions(tmp_path, database_url, clock, opened):
    store, filled = InMemoryBackend("mem", clock=clock), f"sqlite:///{tmp_path / 'filled.db'}"
    with opened(filled) as layer:
        tell(layer, store, clock)
    as_of_version(filled, database_url, BEFORE_TIME)
    with opened(database_url) as layer:
        layer.attach(store)
        known, past = layer.reconcile(store), clock()
        [ref] = [record.ref for record in _records(layer, store) if "midnight" in record.text]
        clock.advance(days=1)
        store.edit(ref, "Okta certificate: it renews itself now")
        assert (known, layer.reconcile(store)) == (0, 1)
        layer.drain()

        def said(**asked):
            return " ".join(facet.text for facet in layer.context("user:new", "Okta certificate renew", **asked).facets)

        assert ("itself" in said(), "midnight" in said()) == (True, False)
        assert ("itself" in said(as_of=past), "midnight" in said(as_of=past)) == (False, True)


def _records(layer, store):
    return layer._loop.run(store.records(Entity.parse("user:u0"))).records
