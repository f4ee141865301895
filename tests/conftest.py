"""What every test may ask for: databases, fresh each time, on both engines."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Read by stores when they are first imported, which must not reach the user's home or the network.
os.environ["MEM0_TELEMETRY"] = "False"
os.environ["ANONYMIZED_TELEMETRY"] = "False"
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="collab-config-")
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="collab-mem0-")

from collab_layer.testing.postgres import PostgresServer

ENGINES = ("sqlite", "postgres")


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["MEM0_DIR"], ignore_errors=True)
    shutil.rmtree(os.environ["XDG_CONFIG_HOME"], ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server per test process, started when first asked for. Without its wheel this fails."""
    with PostgresServer(timeout_s=60) as server:
        yield server


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'collab.db'}"


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database, dropped afterwards."""
    dsn = postgres.create_database()
    yield dsn
    postgres.drop_database(dsn)


@pytest.fixture(params=ENGINES)
def database_url(request: pytest.FixtureRequest) -> str:
    """Runs a test twice: over a fresh SQLite file, and over a fresh PostgreSQL database."""
    return request.getfixturevalue(f"{request.param}_url")
