"""Four writers and four workers on one database: what comes out is what one process makes of the same."""

from __future__ import annotations

import random
import signal
import time

import pytest

from collab_layer import CollabLayer, Sharing
from collab_layer.config import Settings

from .programs import compared

LEASE_S = 2
WRITERS = WORKERS = 4
BY_HAND = Settings(worker=False)


@pytest.fixture(autouse=True)
def short_leases(monkeypatch):
    monkeypatch.setenv("COLLAB_LEASE_S", str(LEASE_S))


def told(writers):
    """Number -> id of all that was acknowledged to any writer."""
    found: dict[int, str] = {}
    for writer in writers:
        out, err = writer.communicate(timeout=300)
        assert writer.returncode == 0, err
        for line in out.splitlines():
            number, id_, *_ = line.split()
            if number != "refused":
                assert found.setdefault(int(number), id_) == id_
    return found


def start(program, url, each, overlap, clocks):
    # One after another, so that the first makes the schema; the writers' numbers overlap.
    with CollabLayer.open(url, sharing=Sharing.within_tenant("records"), settings=BY_HAND):
        workers = [program("work", url, hours) for hours in clocks]
        assert [worker.stdout.readline() for worker in workers] == ["working\n"] * len(workers)
        return [program("tell", url, str(n * (each - overlap)), str(each)) for n in range(WRITERS)], workers


def finished(url, look):
    with CollabLayer.open(url) as layer:
        layer.drain()
        assert layer.health().counts["parked"] == 0
    assert look.one("SELECT count(*) FROM outbox") == 0
    assert look.one("SELECT count(*) FROM work") == 0
    assert look.repeated() == {}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("engine", "each", "overlap"), [("sqlite", 60, 15), ("postgres", 60, 15)])
def test_what_many_processes_make_is_what_one_makes(request, program, rows, alone, engine, each, overlap):
    url = request.getfixturevalue(f"{engine}_url")
    writers, workers = start(program, url, each, overlap, ["0", "0", "1", "-1"])  # two clocks are an hour off
    acknowledged = told(writers)
    look = rows(url)
    finished(url, look)
    assert [worker.poll() for worker in workers] == [None] * WORKERS, "a worker ended by itself"
    everything = each + (WRITERS - 1) * (each - overlap)
    assert sorted(acknowledged) == list(range(everything))
    assert look.graph() == alone(everything)
    assert look.one("SELECT count(*) FROM derived") > 0


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_workers_killed_at_random_points_are_taken_over(request, program, rows, alone, engine):
    url = request.getfixturevalue(f"{engine}_url")
    draw = random.Random(7)
    writers, workers = start(program, url, 45, 0, ["0"] * WORKERS)
    for at in range(8):
        time.sleep(draw.uniform(0.1, 0.9))
        victim = workers[at % WORKERS]
        victim.kill()
        victim.wait()
        assert victim.returncode == -signal.SIGKILL, victim.stderr.read()
        workers[at % WORKERS] = program("work", url)
    acknowledged = told(writers)
    look = rows(url)
    finished(url, look)
    assert sorted(acknowledged) == list(range(4 * 45))
    assert look.graph() == alone(4 * 45)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_what_a_worker_with_a_clock_an_hour_ahead_held_is_taken_over_after_its_lease(request, program, rows, engine):
    url = request.getfixturevalue(f"{engine}_url")
    look = rows(url)
    with CollabLayer.open(url, settings=BY_HAND) as layer:
        layer.observe([compared(number) for number in range(400)])
        worker = program("work", url, "1")
        worker.stdout.readline()
        patience = time.monotonic() + 30
        while not look.one("SELECT count(*) FROM work WHERE lease_until > 0"):
            assert time.monotonic() < patience
        worker.send_signal(signal.SIGSTOP)  # it may be between two steps: then nothing is to be waited for
        held = look("SELECT entity FROM work WHERE lease_until > 0")
        begun = time.monotonic()
        layer.drain()
        if held:
            assert time.monotonic() - begun > LEASE_S / 4, "a lease was not respected"
        worker.kill()
    assert look.one("SELECT count(*) FROM outbox") == 0
    assert look.repeated() == {}
