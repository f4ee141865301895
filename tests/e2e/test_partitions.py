"""PostgreSQL partitioned by tenant, by the script of docs/scaling.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from collab_layer import CollabLayer, Sharing
from collab_layer.config import Settings

from .programs import compared

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"
TENANTS = ("acme", "other", "третий")
INDEXES = "SELECT relname FROM pg_class WHERE relkind IN ('i', 'I') AND relname ~ '^(ix|ux)_' ORDER BY 1"
BY_HAND = Settings(worker=False)


def tell(url, tenant, first, count):
    with CollabLayer.open(url, tenant=tenant, sharing=Sharing.within_tenant("records"), settings=BY_HAND) as layer:
        layer.observe([compared(number) for number in range(first, first + count)])
        layer.drain()
        return [str(one.entity) for one in layer.neighbors("user:u1")]


@pytest.fixture
def partition(postgres, postgres_url):
    (script,) = re.findall(r"```sql\n(DO .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return lambda: postgres.psql(script, postgres_url.rpartition("/")[2])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_partitioned_database_holds_the_same_and_goes_on(postgres_url, rows, partition, tmp_path):
    for tenant in TENANTS:
        tell(postgres_url, tenant, 0, 20)
    look = rows(postgres_url)
    before = look(INDEXES)
    partition()
    assert look.one("SELECT count(*) FROM pg_partitioned_table") > 30
    assert look(INDEXES) == before, "indexes keep their names"
    alone = f"sqlite:///{tmp_path / 'alone.db'}"
    for tenant in TENANTS:
        tell(alone, tenant, 0, 20)
        assert tell(postgres_url, tenant, 20, 20) == tell(alone, tenant, 20, 20)
    counts = "SELECT tenant, count(*) FROM {} GROUP BY 1 ORDER BY 1"
    for table in ("interactions", "edges", "cards", "terms", "entities"):
        assert sorted(look(counts.format(table))) == sorted(rows(alone)(counts.format(table)))
    with CollabLayer.open(postgres_url, tenant="acme", settings=BY_HAND) as layer:
        assert layer.forget("user:u1").id
        assert layer.health().condition == "ok"


def test_a_query_of_one_tenant_looks_into_one_partition(postgres_url, rows, partition):
    tell(postgres_url, "acme", 0, 5)
    partition()
    plan = rows(postgres_url)("EXPLAIN SELECT * FROM edges WHERE tenant = 'acme' AND src = 1")
    used = {name for (line,) in plan for name in re.findall(r"on edges_\d+", line)}
    assert len(used) == 1
