"""Whatever the order of telling, one state; whatever the moment, what a replay up to it would answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from collab_layer.config import Settings
from collab_layer.sync import CollabLayer

from .timeline import OWNERS, QUERIES, START, Life, answers, changed, difference, lives, moment, told

EXAMPLES = int(os.environ.get("COLLAB_TIME_EXAMPLES", "12"))
ONE_AFTER_ANOTHER = settings(
    max_examples=EXAMPLES, deadline=None, derandomize="COLLAB_TIME_EXAMPLES" not in os.environ, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """An empty database of the present schema."""
    path = tmp_path_factory.mktemp("template") / "collab.db"
    CollabLayer.open(str(path), settings=Settings(worker=False)).close()
    return path


def replayed(life: Life, folder: Path, template: Path) -> tuple[dict, dict]:
    """Told as it happened: what is answered at each look, and at the end."""
    seen: dict = {}
    with told(life, folder, template) as replay:
        for number in range(len(life.events)):
            replay.clock.set(moment(number))
            replay.happen(number)
            replay.tell(number)
            replay.layer.drain()
            for look in life.looks:
                if look[0] == number:
                    seen[look] = answers(replay.layer, look[1], QUERIES[look[2]])
        replay.clock.set(moment(len(life.events) + 10))
        replay.layer.drain()
        return seen, final(life, replay.layer)


def late(life: Life, folder: Path, template: Path) -> tuple[dict, dict]:
    """Told afterwards in any order: the same looks, as of their times, and at the end."""
    with told(life, folder, template) as other:
        for number in range(len(life.events)):
            other.happen(number)
        other.clock.set(moment(len(life.events) + 10))
        for place, number in enumerate(life.order):
            other.tell(number)
            if place in life.pauses:
                other.layer.drain()
        other.layer.drain()
        seen = {look: answers(other.layer, look[1], QUERIES[look[2]], as_of=moment(look[0])) for look in life.looks}
        return seen, final(life, other.layer)


def final(life: Life, layer: CollabLayer) -> dict:
    whose = sorted({look[1] for look in life.looks})  # in an open life only those that some event named
    found = {name: answers(layer, name, QUERIES[len(name) % 3]) for name in whose}
    for name in OWNERS:
        found[f"changes {name}"] = changed(layer, name, START - (moment(1) - START))
        found[f"later {name}"] = changed(layer, name, moment(2), moment(6))
    return found


@ONE_AFTER_ANOTHER
@given(life=lives())
def test_told_late_and_in_any_order_a_life_is_answered_as_if_told_as_it_happened(tmp_path_factory, template, life):
    folder = tmp_path_factory.mktemp("life")
    seen, end = replayed(life, folder / "replay", template)
    seen_late, end_late = late(life, folder / "late", template)
    for look, answer in seen.items():
        assert difference(answer, seen_late[look], f"as of {look}") is None
    assert difference(end, end_late, "at the end") is None
