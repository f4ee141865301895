"""Upkeep in processes of its own: killed on its way, and two at once."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from dataclasses import replace

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.graph import nights

GROUPS, READERS = 4, 8
BY_HAND = Settings(worker=False)


def end_lease(layer: CollabLayer) -> None:
    """As if the lease of the process that was killed had run out."""
    with layer._layer._core.tools.store.database.write() as connection:
        nights._save(connection, "default", replace(nights.load(connection, "default"), until=1))


def fill(url: str) -> None:
    """In each group eight readers are told the same thing by two others, in the same words."""
    with CollabLayer.open(url, settings=BY_HAND) as layer:
        for group in range(GROUPS):
            who = [f"user:g{group}r{n}" for n in range(READERS)] + [f"user:g{group}t{n}" for n in range(2)]
            for one in who:
                for n in range(3):
                    layer.observe(one, f"item:g{group}i{n}", verb="held")
            for teller in who[-2:]:
                layer.grant(teller, "tenant", "records")
        layer.drain()
        for group in range(GROUPS):
            for teller in range(2):
                layer.observe(f"user:g{group}t{teller}", text=f"Dune is long, says group {group}", links=["topic:dune"])
        layer.drain()


def merged(look) -> int:
    return look.one("SELECT count(*) FROM derived WHERE id LIKE 'dm%' AND superseded IS NULL")


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_killed_on_its_way_it_goes_on_and_changes_everything_once(request, program, rows, engine):
    url = request.getfixturevalue(f"{engine}_url")
    fill(url)
    look = rows(url)
    with CollabLayer.open(url, settings=BY_HAND) as layer:
        expected = layer.consolidate(dry_run=True).changes
    assert expected["merged"] >= GROUPS * READERS // 2
    killed = program("tidy", url)
    assert killed.stdout.readline() == "tidying\n"
    end = time.monotonic() + 60
    while merged(look) < 4 and time.monotonic() < end:
        time.sleep(0.005)
    killed.kill()
    killed.wait()
    assert killed.returncode == -signal.SIGKILL, killed.stderr.read()
    assert 4 <= merged(look) < expected["merged"], "the kill came too late; make it earlier"

    with CollabLayer.open(url, settings=BY_HAND) as layer:
        end_lease(layer)
        report = layer.consolidate()
        assert report.resumed
        assert report.changes == expected, "every change is counted, and made, once"
        assert layer.consolidate().changes == {}
    assert merged(look) == expected["merged"]
    assert look.one("SELECT count(*) FROM audit WHERE action = 'consolidate'") == 2
    assert look.repeated() == {}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_two_processes_at_once_change_everything_once(request, program, rows, engine):
    url = request.getfixturevalue(f"{engine}_url")
    fill(url)
    with CollabLayer.open(url, settings=BY_HAND) as layer:
        expected = layer.consolidate(dry_run=True).changes
        both = [program("tidy", url) for _ in range(2)]
        told = [process.communicate(timeout=100) for process in both]
        assert [process.returncode for process in both] == [0, 0], told
        changes = [Counter(json.loads(out.splitlines()[-1])) for out, _ in told]
        assert dict(changes[0] + changes[1]) == expected
        assert layer.consolidate().changes == {}
    assert rows(url).repeated() == {}
