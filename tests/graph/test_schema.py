from uuid import uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from collab_layer.errors import NewerSchemaError, StoreError
from collab_layer.graph import schema
from collab_layer.graph.engine import Database
from collab_layer.graph.tables import metadata
from collab_layer.types.time import FOREVER


def made(database):
    schema.ensure(database)


def migrated(database):
    with database.write() as connection:
        schema.migrate(connection)
        if database.sqlite:
            schema.teach_planner(connection)


def clusters_and_indexes(database):
    """What alembic does not compare: how rows lie, which rows an index holds, what the planner was taught."""
    with database.read() as connection:
        asked = [
            "SELECT name, wr FROM pragma_table_list WHERE name NOT LIKE 'sqlite%'",
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index'",
            "SELECT tbl, idx, stat FROM sqlite_stat1",
        ]
        if not database.sqlite:
            asked = ["SELECT replace(indexdef, '(NOT folded)', '(folded = false)') FROM pg_indexes"]
        return [sorted(map(str, connection.execute(text(one)))) for one in asked]


@pytest.mark.parametrize("way", [made, migrated])
def test_a_new_database_and_one_that_was_migrated_have_the_tables_of_the_code(database_url, way):
    database = Database(database_url)
    way(database)
    assert schema.version(database) == schema.HEAD
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def fresh(request, tmp_path):
    """As many databases as are asked for."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path / uuid4().hex}.db"
    return request.getfixturevalue("postgres").create_database


def test_both_ways_lead_to_the_same_rows_indexes_and_plans(fresh):
    found = []
    for url, way in ((fresh(), made), (fresh(), migrated)):
        database = Database(url)
        way(database)
        found.append(clusters_and_indexes(database))
        database.dispose()
    assert found[0] == found[1]
    assert all(found[0])


def test_opening_again_changes_nothing(database_url):
    database = Database(database_url)
    schema.ensure(database)
    schema.ensure(database)
    assert schema.version(database) == schema.HEAD
    database.dispose()


def test_a_database_of_an_older_version_is_brought_forward_with_its_rows(database_url):
    database = Database(database_url)
    with database.write() as connection:
        schema.migrate(connection, "0001")
        connection.execute(text("INSERT INTO settings (tenant, name, value) VALUES ('acme', 'salt', 'kept')"))
    schema.ensure(database)
    with database.read() as connection:
        assert connection.execute(text("SELECT value FROM settings")).scalar() == "kept"
        assert connection.execute(text("SELECT count(*) FROM spending")).scalar() == 0
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.dispose()


def test_what_was_stored_before_there_were_versions_has_its_times(database_url):
    database = Database(database_url)
    with database.write() as connection:
        schema.migrate(connection, "0004")
        for row in (
            "entities (tenant, id, name, kind, display, degree, rev) VALUES ('t', 1, 'user:a', 'user', 'a', 1, 1)",
            "entities (tenant, id, name, kind, display, degree, rev) VALUES ('t', 2, 'item:x', 'item', 'x', 0, 1)",
            "entities (tenant, id, name, kind, display, degree, rev) VALUES ('t', 3, 'user:b', 'user', 'b', 0, 1)",
            "entities (tenant, id, name, kind, display, degree, rev) VALUES ('t', 4, 'user:c', 'user', 'c', 0, 1)",
            "interactions (tenant, id, actor, verb, links, at, recorded_at, weight) "
            "VALUES ('t', 9, 1, 'noted', '[]', 50, 90, 1.0)",
            "edges (tenant, id, src, dst, kind, weight, at, valid_to, recorded_at, interaction, folded) "
            "VALUES ('t', 5, 2, 1, 2, 1.0, 70, 4611686018427387904, 90, 9, false)",
            "grants (tenant, id, owner, audience, level, until, denied, created) "
            "VALUES ('t', 'g', 3, 'tenant', 2, 99, false, 80)",
            "cards (tenant, id, owner, interaction, backend, native_id, version, links, length, at, valid_to, "
            "recorded_at, thread, rev) VALUES ('t', 7, 1, 9, 'mem', 'm', '1', '[]', 0, 50, 60, 90, 0, 1)",
        ):
            connection.execute(text(f"INSERT INTO {row}"))
    schema.ensure(database)
    with database.read() as connection:
        known = dict(connection.execute(text("SELECT name, since FROM entities")).all())
        assert known == {"user:a": 50, "item:x": 70, "user:b": 0, "user:c": FOREVER}
        assert connection.execute(text("SELECT ends, superseded FROM cards")).all() == [(60, None)]
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.dispose()


def test_a_database_of_a_newer_version_is_refused(database_url):
    database = Database(database_url)
    schema.ensure(database)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(NewerSchemaError, match="upgrade collab-layer"):
        schema.ensure(database)
    database.dispose()


def test_somebody_elses_tables_are_left_alone(database_url):
    database = Database(database_url)
    with database.write() as connection:
        connection.execute(text("CREATE TABLE interactions (id INTEGER)"))
    with pytest.raises(StoreError, match="something else"):
        schema.ensure(database)
    database.dispose()


def test_a_file_of_another_program_is_refused_and_holds_what_it_held(sqlite_url):
    database = Database(sqlite_url)
    with database.write() as connection:
        connection.execute(text("CREATE TABLE history (id INTEGER)"))
        connection.execute(text("CREATE INDEX ix_history ON history (id)"))
        connection.execute(text("INSERT INTO history VALUES (7)"))
        connection.execute(text("ANALYZE"))
    held = "SELECT name FROM sqlite_schema UNION ALL SELECT stat FROM sqlite_stat1 UNION ALL SELECT id FROM history"
    with database.read() as connection:
        before = connection.execute(text(held)).all()
    with pytest.raises(StoreError, match="something else"):
        schema.ensure(database)
    with database.read() as connection:
        assert connection.execute(text(held)).all() == before
    database.dispose()


def test_tenant_is_the_first_column_of_every_key_and_index():
    for table in metadata.tables.values():
        assert next(iter(table.primary_key.columns)).name == "tenant", table.name
        for index in table.indexes:
            assert next(iter(index.columns)).name == "tenant", index.name


def test_secure_delete_is_on_from_the_first_connection(sqlite_url):
    database = Database(sqlite_url)
    with database.read() as connection:
        assert connection.execute(text("PRAGMA secure_delete")).scalar() == 1
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
    database.dispose()


def test_the_planner_reads_one_nodes_deltas_and_not_the_whole_table(sqlite_url):
    database = Database(sqlite_url)
    schema.ensure(database)
    with database.read() as connection:
        plan = " ".join(
            row[3]
            for row in connection.execute(
                text("EXPLAIN QUERY PLAN SELECT dst FROM edges WHERE tenant = 't' AND src IN (1, 2) AND folded = 0")
            )
        )
        postings = " ".join(
            row[3]
            for row in connection.execute(
                text("EXPLAIN QUERY PLAN SELECT card FROM terms WHERE tenant = 't' AND term = 1")
            )
        )
    database.dispose()
    assert "ix_edges_delta (tenant=? AND src=?)" in plan
    assert "term=?" in postings


def test_every_key_and_every_index_begins_with_the_tenant():
    """What a database distributed by tenant asks for; see docs/scaling.md."""
    for table in metadata.tables.values():
        assert next(iter(table.primary_key.columns)).name == "tenant", table.name
        for index in table.indexes:
            assert next(iter(index.columns)).name == "tenant", index.name
        assert not table.foreign_keys
