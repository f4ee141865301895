"""The worker tidies each tenant once a night, by itself, and only one worker does."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from collab_layer.config import Settings
from collab_layer.flows.nightly import Nightly
from collab_layer.graph import nights as leases
from collab_layer.graph.tables import audit
from collab_layer.layer import AsyncCollabLayer
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock

from .tidied import around, database, say, told

EVENING = datetime(2026, 1, 1, 20, tzinfo=UTC)


def nights(layer) -> int:
    """Finished runs, by the audit."""
    with database(layer).read() as connection:
        return len(connection.execute(select(audit.c.id).where(audit.c.action == "consolidate")).all())


def until(layer, count: int, *, seconds: float = 30) -> int:
    """Wait until so many nights were done; how many were."""
    end = time.monotonic() + seconds
    while nights(layer) < count and time.monotonic() < end:
        time.sleep(0.05)
    return nights(layer)


def open_with_worker(url, clock, hour=3):
    settings = Settings(worker=True, consolidate_hour_utc=hour)
    return CollabLayer.open(url, tenant="acme", settings=settings, clock=clock)


def awake(layer) -> None:
    """Have the embedded worker run, and let it find that there is nothing else to do."""
    layer.observe("user:awake", "item:0", key="awake")
    layer.drain()


def test_it_is_done_by_itself_once_after_the_hour_and_not_again_after_a_restart(database_url):
    clock = FixedClock(EVENING)
    with open_with_worker(database_url, clock) as layer:
        around(layer)
        say(layer, "user:a", "user:c")
        time.sleep(0.7)  # more than one idle look
        assert nights(layer) == 0, "the first hour has not come"
        clock.advance(hours=8)
        assert until(layer, 1) == 1
        assert told(layer)[0].contributors == 2
    with open_with_worker(database_url, clock) as layer:
        awake(layer)
        time.sleep(0.7)
        assert nights(layer) == 1
        clock.advance(days=1)
        assert until(layer, 2) == 2


def test_a_night_that_was_missed_is_made_up_for_once(sqlite_url):
    clock = FixedClock(EVENING)
    with CollabLayer.open(sqlite_url, tenant="acme", settings=Settings(worker=False), clock=clock) as layer:
        around(layer)
    clock.advance(days=5)
    with open_with_worker(sqlite_url, clock) as layer:
        awake(layer)
        assert until(layer, 1) == 1
        time.sleep(0.7)
        assert nights(layer) == 1


def test_it_never_begins_by_itself_where_no_hour_is_set(sqlite_url):
    clock = FixedClock(EVENING)
    with open_with_worker(sqlite_url, clock, hour=None) as layer:
        around(layer)
        clock.advance(days=5)
        awake(layer)
        time.sleep(0.7)
        assert nights(layer) == 0


def test_a_run_by_hand_is_the_nights_run(sqlite_url):
    clock = FixedClock(EVENING)
    with CollabLayer.open(sqlite_url, tenant="acme", settings=Settings(worker=False), clock=clock) as layer:
        around(layer)
        clock.advance(hours=8)
        layer.consolidate()
    with open_with_worker(sqlite_url, clock) as layer:
        awake(layer)
        time.sleep(0.7)
        assert nights(layer) == 1


def test_every_tenant_has_its_night(sqlite_url):
    clock = FixedClock(EVENING)
    with open_with_worker(sqlite_url, clock) as layer:
        for one in (layer, layer.for_tenant("other")):
            around(one)
        clock.advance(hours=8)
        assert until(layer, 2) == 2


def test_several_workers_do_it_once(database_url):
    clock = FixedClock(EVENING)

    async def turns() -> list[int]:
        settings = Settings(worker=False, consolidate_hour_utc=3)
        layers = [
            await AsyncCollabLayer.open(database_url, tenant="acme", settings=settings, clock=clock) for _ in range(2)
        ]
        done = []
        for layer, worker in zip(layers, (Nightly(), Nightly()), strict=True):
            pages = 0
            while await worker.turn(layer._core.tools, "acme"):
                pages += 1
            done.append(pages)
            await layer.aclose()
        return done

    with CollabLayer.open(database_url, tenant="acme", settings=Settings(worker=False), clock=clock) as layer:
        around(layer)
        clock.advance(hours=8)
        first, second = asyncio.run(turns())
        assert first > 0
        assert second == 0
        assert nights(layer) == 1


def test_another_worker_goes_on_for_one_that_died(sqlite_url):
    clock = FixedClock(EVENING)

    async def turns() -> tuple[int, int, int]:
        settings = Settings(worker=False, consolidate_hour_utc=3)
        async with await AsyncCollabLayer.open(sqlite_url, tenant="acme", settings=settings, clock=clock) as layer:
            tools, dead, heir = layer._core.tools, Nightly(), Nightly()
            assert await dead.turn(tools, "acme")
            held = await heir.turn(tools, "acme")
            clock.advance(minutes=2)
            with tools.store.database.write() as connection:  # two minutes pass for the database too
                leases._save(connection, "acme", replace(leases.load(connection, "acme"), until=1))
            pages = 0
            while await heir.turn(tools, "acme"):
                pages += 1
            late = await dead.turn(tools, "acme")
            return int(held), pages, int(late)

    with CollabLayer.open(sqlite_url, tenant="acme", settings=Settings(worker=False), clock=clock) as layer:
        around(layer)
        say(layer, "user:a", "user:c")
        clock.advance(hours=8)
        held, pages, late = asyncio.run(turns())
        assert held == 0, "somebody was at it"
        assert pages > 0
        assert late == 0, "the dead one woke up, and changed nothing"
        assert nights(layer) == 1
        assert told(layer)[0].contributors == 2


@pytest.mark.parametrize(("value", "hour"), [("5", 5), ("never", None), ("", None), ("None", None)])
def test_the_hour_comes_from_the_environment(monkeypatch, value, hour):
    monkeypatch.setenv("COLLAB_CONSOLIDATE_HOUR_UTC", value)
    assert Settings().consolidate_hour_utc == hour


def test_the_hour_is_an_hour():
    assert Settings().consolidate_hour_utc == 3
    for bad in (24, -1):
        with pytest.raises(ValidationError):
            Settings(consolidate_hour_utc=bad)
