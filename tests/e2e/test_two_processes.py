"""Several processes on one database: every write counts once, all work is done once."""

from __future__ import annotations

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings


@pytest.mark.parametrize(("engine", "each", "overlap"), [("sqlite", 150, 50), ("postgres", 80, 30)])
def test_two_writers_and_two_workers_share_a_database(request, program, rows, engine, each, overlap):
    url = request.getfixturevalue(f"{engine}_url")
    with CollabLayer.open(url, settings=Settings(worker=False)) as layer:
        workers = [program("work", url) for _ in range(2)]
        assert [worker.stdout.readline() for worker in workers] == ["working\n"] * 2
        writers = [program("write", url, str(number * (each - overlap)), str(each), "no-worker") for number in range(2)]
        told = [writer.communicate(timeout=100) for writer in writers]
        assert [writer.returncode for writer in writers] == [0, 0], told
        layer.drain()
        assert layer.health().counts["parked"] == 0
        assert [worker.poll() for worker in workers] == [None, None], "a worker ended by itself"
        assert layer.health().condition == "ok"

    ids = [dict(line.split() for line in out.splitlines()) for out, _ in told]
    both = set(ids[0]) & set(ids[1])
    assert len(both) == overlap
    assert {number: ids[0][number] for number in both} == {number: ids[1][number] for number in both}

    look = rows(url)
    everything = 2 * each - overlap
    assert look.one("SELECT count(*) FROM interactions") == everything
    assert look.one("SELECT count(*) FROM cards") == everything
    assert look.one("SELECT count(*) FROM outbox") == 0
    assert look.one("SELECT count(*) FROM derived") > 0
    assert look.repeated() == {}
