"""A worker of many tenants looks only where there is work, and is called away from upkeep."""

from __future__ import annotations

import asyncio
from collections import Counter

from sqlalchemy import event

from collab_layer.config import Settings
from collab_layer.flows import work
from collab_layer.layer import AsyncCollabLayer
from collab_layer.types.interaction import Interaction

QUIET, TOLD = 40, 60


def told(count):
    return [
        Interaction(actor=f"user:u{n}", target=f"item:i{n % 7}", text=f"Note {n} on settings") for n in range(count)
    ]


async def story(url):
    asked: Counter[str] = Counter()

    def count(connection, cursor, statement, parameters, *rest):
        if "FROM work" in statement and "LIMIT" in statement:
            asked["claims"] += 1

    async with await AsyncCollabLayer.open(url, settings=Settings(worker=False, consolidate_hour_utc=None)) as layer:
        for n in range(QUIET):
            await layer.for_tenant(f"quiet{n}").observe("user:a", "item:x")
            await layer.for_tenant(f"quiet{n}").drain()
        busy = layer.for_tenant("busy")
        await busy.observe(told(TOLD))
        event.listen(layer._core.tools.store.database.engine, "before_cursor_execute", count)
        shift = work._Shift(layer._core.tools, None)
        passes = 0
        while await shift.work():
            passes += 1
        assert (await busy.health()).counts["waiting"] == 0
        claims = asked["claims"]

        await busy.observe(told(1))
        looked = await shift.upkeep()
        return passes, claims, looked, shift.begin


def test_tenants_without_work_are_not_asked_for_any(database_url):
    passes, claims, called_away, begin = asyncio.run(story(database_url))
    assert 0 < passes <= TOLD
    assert claims < 4 * passes, "each pass looked into every tenant"
    assert called_away
    assert 0 < begin < QUIET, "the next upkeep goes on behind the tenants that were looked after"
