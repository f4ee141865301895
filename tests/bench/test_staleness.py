"""A value that changed is told no more; each kind of memory goes its own way."""

from __future__ import annotations

import asyncio

import pytest

from collab_layer.bench import shapes, staleness
from collab_layer.bench.tasks import Options, named, tasks
from collab_layer.errors import InputError


def silent(*_: object) -> None:
    return None


@pytest.mark.parametrize("part", ["facts", "likes", "store"])
def test_the_old_value_was_told_and_is_told_no_more(part: str) -> None:
    report = asyncio.run(staleness.measure(Options(only=(part,)), silent))
    value = {row.name: row.value for row in report.rows}
    assert value[f"staleness.{part}.told"] > 0.5
    assert value[f"staleness.{part}.after1"] == 0
    assert value[f"staleness.{part}.after100"] == 0


def test_taste_and_text_are_told_apart_by_what_is_there() -> None:
    report = asyncio.run(shapes.measure(Options(), silent))
    assert report.ok
    assert {row.name.split(".")[1] for row in report.rows if row.name.startswith("shapes")} == set(shapes.PARTS)


def test_the_same_seed_makes_the_same_values() -> None:
    one = staleness._subjects(3)
    assert one == staleness._subjects(3)
    assert one != staleness._subjects(4)


def test_every_task_is_found_by_its_name() -> None:
    assert {"tickets", "threads", "staleness", "shapes"} <= set(tasks())
    with pytest.raises(InputError, match="tickets"):
        named("nothing")


def test_a_task_that_needs_a_set_says_so() -> None:
    with pytest.raises(InputError, match="--data"):
        asyncio.run(named("tickets").measure(Options(), silent))
