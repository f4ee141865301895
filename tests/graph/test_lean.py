"""A statement run by the driver itself answers as SQLAlchemy's own run does, and fails as it does."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, bindparam, event, insert, select, update

from collab_layer.errors import StoreConflictError, StoreUnavailableError
from collab_layer.graph.among import one_of
from collab_layer.graph.engine import Database
from collab_layer.graph.lean import Lean
from collab_layer.graph.tables import entities, metadata

_E = entities.c
ASKED = select(_E.name, _E.id, _E.since, _E.display).where(
    _E.tenant == bindparam("tenant"), one_of(_E.name, "names"), _E.since > 3
)
RAISED = update(entities).where(_E.tenant == bindparam("whose")).values(rev=_E.rev + bindparam("by"))
NEW = insert(entities)
ROW = {"tenant": "t", "kind": "user", "degree": 0, "named": 0, "rev": 0}


@pytest.fixture
def database(database_url):
    database = Database(database_url)
    metadata.create_all(database.engine)
    yield database
    database.dispose()


def row(id_, name="n", since=4, display="d"):
    return {**ROW, "id": id_, "name": name, "since": since, "display": display}


@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5), max_size=6),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=6, max_size=6),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_and_counts_are_those_of_sqlalchemy(database, names, sinces):
    lean, raised, new = Lean(ASKED), Lean(RAISED.returning(_E.id)), Lean(NEW.values(row(0)))
    with suppress(ZeroDivisionError), database.write() as connection:
        wanted = {"tenant": "t", "names": [*names, "'\"{},\\"]}
        for at, name in enumerate(dict.fromkeys(names)):
            assert new.run(connection, row(at, name, sinces[at], name + "%s$1?")) == 1
        kept = connection.execute(ASKED, wanted).all()
        assert sorted(lean.rows(connection, wanted)) == sorted(tuple(one) for one in kept)
        assert all(one.display == one.name + "%s$1?" for one in lean.rows(connection, wanted))
        touched = raised.rows(connection, {"whose": "t", "by": 2**40})
        assert sorted(one.id for one in touched) == list(range(len(dict.fromkeys(names))))
        assert Lean(RAISED).run(connection, {"whose": "t", "by": 1}) == len(touched)
        raise ZeroDivisionError


def test_an_error_is_one_of_our_own_and_undoes_the_transaction(database):
    new = Lean(NEW.values(row(0)))

    def twice():
        with database.write() as connection:
            new.run(connection, row(1))
            new.run(connection, row(1))

    with pytest.raises(StoreConflictError):
        twice()
    with database.read() as connection:
        assert Lean(ASKED).rows(connection, {"tenant": "t", "names": ["n"]}) == []


def test_a_broken_connection_is_not_used_again(postgres, postgres_url):
    database, lean = Database(postgres_url), Lean(ASKED)
    metadata.create_all(database.engine)

    def cut():
        with database.read() as connection:
            assert lean.rows(connection, {"tenant": "t", "names": []}) == []
            postgres.psql(f"SELECT pg_terminate_backend({process_of(connection)})")
            lean.rows(connection, {"tenant": "t", "names": []})

    with pytest.raises(StoreUnavailableError):
        cut()
    with database.read() as connection:
        assert lean.rows(connection, {"tenant": "t", "names": ["n"]}) == []
    database.dispose()


def process_of(connection: Connection) -> int:
    return connection.connection.driver_connection.info.backend_pid


def test_who_counts_statements_counts_it(database):
    said = list[str]()
    event.listen(database.engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    with database.read() as connection:
        Lean(ASKED).rows(connection, {"tenant": "t", "names": ["n"]})
    assert [line for line in said if line.startswith("SELECT entities")] == said[-1:]
