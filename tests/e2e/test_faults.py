"""Full disks, restarts, cut connections: nothing acknowledged is lost, and nobody need lend a hand."""

from __future__ import annotations

import resource
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from collab_layer import CollabLayer, Sharing
from collab_layer.config import Settings
from collab_layer.errors import StoreFullError, StoreReadOnlyError, StoreUnavailableError
from collab_layer.testing.postgres import PostgresServer

from .cutting import Proxy
from .programs import compared

BY_HAND = Settings(worker=False)
MANY = [compared(number) for number in range(8_000)]
OPEN = Sharing.within_tenant("records")
pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def short_leases(monkeypatch):
    """What a worker held that is gone is another's after five seconds, not after a minute."""
    monkeypatch.setenv("COLLAB_LEASE_S", "5")


def acknowledged(out):
    """Numbers that were acknowledged, and what was said of those that were refused."""
    lines = [line.split(" ", 2) for line in out.splitlines()]
    numbers = [int(line[0]) for line in lines if line[0] != "refused"]
    return numbers, [(line[1], line[2]) for line in lines if line[0] == "refused"]


def next_lines(process, count):
    return [process.stdout.readline() for _ in range(count)]


def rest_of(process):
    """What it says until it ends; `communicate` would lose what was read ahead of the lines that were asked for."""
    out = process.stdout.read()
    assert process.wait(60) == 0, process.stderr.read()
    return out


def until_line(process, start, patience=2_000):
    for _ in range(patience):
        line = process.stdout.readline()
        if line.startswith(start):
            return line
    raise AssertionError(f"nothing was said that begins with {start}")


def finish(url, rows):
    with CollabLayer.open(url, settings=BY_HAND) as layer:
        layer.drain()
        assert layer.health().counts["parked"] == 0
        assert layer.health().counts["waiting"] == 0
    look = rows(url)
    assert look.repeated() == {}
    return look.graph()


def is_one_sentence(text):
    return len(text) < 400 and "\n" not in text and "Traceback" not in text


# -- disks -----------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 32 MB, room enough for the write-ahead log; skipped where nothing may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only who may mount can make a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(ballast):
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        for _ in range(10_000):
            file.write(bytes(4096))


def test_a_full_disk_refuses_and_all_goes_on_once_there_is_room(small_disk, program, rows, alone):
    url = str(small_disk / "collab.db")
    with CollabLayer.open(url, sharing=OPEN, settings=BY_HAND):
        worker = program("work", url)
        worker.stdout.readline()
        writer = program("tell", url, "0", "150")
        before = next_lines(writer, 30)
        ballast = small_disk / "ballast"
        fill(ballast)
        refused = until_line(writer, "refused")
        assert "StoreFullError" in refused
        assert "free some space" in refused
        assert is_one_sentence(refused.rstrip())
        ballast.unlink()
        out = rest_of(writer)
        assert worker.poll() is None, worker.stderr.read()
        assert acknowledged("".join(before) + out)[0][-1] == 149
        worker.terminate()
        worker.wait()
    assert finish(url, rows) == alone(150)


def test_a_file_that_may_grow_no_more_says_so(tmp_path, sqlite_url):
    """Without a small disk: the limit of the process. It is raised again in the same process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with CollabLayer.open(sqlite_url, settings=BY_HAND) as layer:
        layer.observe(compared(0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        try:
            with pytest.raises((StoreFullError, StoreUnavailableError), match="space") as caught:
                layer.observe(MANY)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert is_one_sentence(str(caught.value))
        assert layer.health().counts["interactions"] == 1
        layer.observe(MANY)
        assert layer.health().counts["interactions"] == len(MANY)


def test_a_database_that_becomes_read_only_is_read_and_written_again_later(postgres, postgres_url, rows):
    name = postgres_url.rpartition("/")[2]
    with CollabLayer.open(postgres_url, settings=BY_HAND) as layer:
        layer.observe([compared(number) for number in range(20)])
        layer.drain()
        postgres.psql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        terminate(postgres, name)
        with pytest.raises(StoreReadOnlyError, match="read-only") as caught:
            layer.observe(compared(20))
        assert is_one_sentence(str(caught.value))
        assert layer.neighbors("user:u0") is not None
        postgres.psql(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
        terminate(postgres, name)
        layer.observe(compared(20))
        layer.drain()
        assert layer.health().counts["cards"] == 21


def terminate(server, name):
    """End all connections to a database, and wait until the server's processes behind them are gone."""
    server.psql(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'")


# -- servers ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("short_leases")
def test_a_server_that_is_restarted_under_load_costs_nothing_that_was_acknowledged(program, rows, alone):
    each = 120
    with PostgresServer() as server:
        url = server.create_database()
        with CollabLayer.open(url, sharing=OPEN, settings=BY_HAND):
            pass
        workers = [program("work", url) for _ in range(2)]
        assert [worker.stdout.readline() for worker in workers] == ["working\n"] * 2
        writers = [program("tell", url, str(n * each), str(each)) for n in range(2)]
        seen = [next_lines(writer, 20) for writer in writers]
        for _ in range(2):
            server.stop()
            time.sleep(1)
            server.start()
            time.sleep(1)
        numbers = set()
        for lines, writer in zip(seen, writers, strict=True):
            found, refused = acknowledged("".join(lines) + rest_of(writer))
            assert refused, "the restart was not noticed"
            assert all(is_one_sentence(text) for _, text in refused)
            assert {kind for kind, _ in refused} <= {"StoreUnavailableError", "StoreConflictError"}
            numbers |= set(found)
        assert numbers == set(range(2 * each))
        assert [worker.poll() for worker in workers] == [None, None], workers[0].stderr.read()
        graph = finish(url, rows)
        for worker in workers:
            worker.kill()
            worker.wait()
    assert graph == alone(2 * each)


@pytest.mark.slow
@pytest.mark.parametrize("idle_s", [0.0, 1.5])
def test_a_server_that_is_restarted_while_nobody_asks_is_not_noticed(idle_s):
    with PostgresServer() as server, CollabLayer.open(server.create_database(), settings=BY_HAND) as layer:
        for number in range(3):
            layer.observe(compared(3 * number))
            with ThreadPoolExecutor(4) as pool:  # so that several connections wait in the pool
                list(pool.map(layer.neighbors, ["user:u0"] * 4))
            server.stop()
            time.sleep(idle_s)
            server.start()
            layer.observe(compared(3 * number + 1))
            assert layer.neighbors("user:u0") is not None
            terminate(server, "test_1")
            layer.observe(compared(3 * number + 2))
        layer.drain()
        assert layer.health().counts["interactions"] == 9


@pytest.mark.parametrize("way", ["before", "after"])
def test_a_commit_that_nobody_heard_of_is_safe_to_repeat_with_a_key(postgres_url, rows, way):
    with CollabLayer.open(postgres_url, settings=BY_HAND):
        pass
    armed = []
    with (
        Proxy(postgres_url, lambda commit: armed.pop() if armed else None) as proxy,
        CollabLayer.open(proxy.url, settings=BY_HAND) as layer,
    ):
        layer.observe(compared(0))
        armed.append(way)
        with pytest.raises(StoreUnavailableError) as caught:
            layer.observe(compared(1))
        assert is_one_sentence(str(caught.value))
        assert proxy.cut[way] == 1
        look = rows(postgres_url)
        assert look.one("SELECT count(*) FROM interactions") == (2 if way == "after" else 1)
        [again] = layer.observe(compared(1))
        assert layer.observe(compared(1)) == [again]
        assert look.one("SELECT count(*) FROM interactions") == 2
        assert look.one("SELECT count(*) FROM outbox") == 2


@pytest.mark.slow
@pytest.mark.usefixtures("short_leases")
def test_a_worker_whose_commits_are_cut_applies_nothing_twice(postgres_url, program, rows, alone):
    count = 70
    with CollabLayer.open(postgres_url, sharing=OPEN, settings=BY_HAND):
        pass

    def every_seventh(commit):
        return ("before", "after")[commit // 7 % 2] if commit % 7 == 0 else None

    with Proxy(postgres_url, every_seventh) as proxy:
        workers = [program("work", proxy.url) for _ in range(2)]
        assert [worker.stdout.readline() for worker in workers] == ["working\n"] * 2
        writer = program("tell", proxy.url, "0", str(count))
        out, err = writer.communicate(timeout=200)
        assert writer.returncode == 0, err
        numbers, refused = acknowledged(out)
        assert sorted(numbers) == list(range(count))
        assert refused
        look = rows(postgres_url)
        patience = time.monotonic() + 120
        while look.one("SELECT count(*) FROM outbox"):
            assert time.monotonic() < patience, "the workers did not go on by themselves"
            assert [worker.poll() for worker in workers] == [None, None], workers[0].stderr.read()
            time.sleep(0.2)
        assert min(proxy.cut.values()) > 2
        for worker in workers:
            worker.kill()
            worker.wait()
    assert finish(postgres_url, rows) == alone(count)


# -- clocks ----------------------------------------------------------------------------------


def test_a_clock_set_back_in_the_middle_loses_nothing(database_url, rows, alone, clock_of_a_day):
    with CollabLayer.open(database_url, sharing=OPEN, settings=BY_HAND, clock=clock_of_a_day) as layer:
        layer.observe([compared(number) for number in range(20)])
        layer.drain()
        layer.observe([compared(number) for number in range(20, 40)])
        clock_of_a_day.advance(hours=-1)
        layer.observe([compared(number) for number in range(40, 60)])
        assert layer.drain() == 40
        assert layer.health().condition == "ok"
    assert finish(database_url, rows) == alone(60)


@pytest.fixture
def clock_of_a_day():
    from datetime import UTC, datetime

    from collab_layer.testing.clock import FixedClock

    return FixedClock(datetime(2026, 5, 1, tzinfo=UTC))
