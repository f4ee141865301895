"""A value that changed is told no more; each kind of memory goes its own way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from collab_layer.bench import shapes, staleness
from collab_layer.bench.options import Options
from collab_layer.bench.tasks import named, tasks
from collab_layer.errors import InputError, UnknownIdError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.types.facet import CollabMemory

from .test_tickets import pack, trajectories


def silent(*_: object) -> None:
    return None


@pytest.mark.parametrize("part", ["facts", "likes", "store"])
def test_the_old_value_was_told_and_is_told_no_more(part: str) -> None:
    report = asyncio.run(staleness.measure(Options(only=(part,)), silent))
    value = {row.name: row.value for row in report.rows}
    assert value[f"staleness.{part}.told"] > 0.5
    assert value[f"staleness.{part}.after1"] == 0
    assert value[f"staleness.{part}.after100"] == 0
    assert value[f"run.read_{part}.p95"] >= value[f"run.read_{part}.p50"] > 0
    assert value["run.model_calls"] == value["run.model_tokens"] == 0


def test_a_layer_that_answers_from_memory_misses_every_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first answers are right and never change again."""

    class Stale(AsyncCollabLayer):
        first: ClassVar[dict[tuple[str, str], CollabMemory]] = {}

        async def context(self, entity: Any, query: Any = None, *more: Any, **rest: Any) -> CollabMemory:
            key = (str(entity), str(query))
            if key not in self.first:
                self.first[key] = await super().context(entity, query, *more, **rest)
            return self.first[key]

    monkeypatch.setattr(staleness, "AsyncCollabLayer", Stale)
    for part in ("facts", "store"):
        Stale.first.clear()
        report = asyncio.run(staleness.measure(Options(only=(part,)), silent))
        bars = {row.name: row for row in report.rows if row.bar}
        assert [bars[f"staleness.{part}.after{n}"].value for n in staleness.AFTER] == [1, 1, 1]
        assert not any(row.ok for row in bars.values())


def test_taste_and_text_are_told_apart_by_what_is_there() -> None:
    report = asyncio.run(shapes.measure(Options(), silent))
    assert report.ok
    assert {row.name.split(".")[1] for row in report.rows if row.name.startswith("shapes")} == set(shapes.PARTS)


def test_who_takes_the_wrong_way_misses_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that never looks at the words of a question, and one that ranks by them alone."""

    class Wordless(AsyncCollabLayer):
        async def context(self, entity: Any, query: Any = None, *more: Any, **rest: Any) -> CollabMemory:
            try:
                return await super().context(entity, None, *more, **rest)
            except UnknownIdError:
                return CollabMemory(entity=entity, query=query, shape="taste", budget_tokens=400)

    monkeypatch.setattr(shapes, "AsyncCollabLayer", Wordless)
    report = asyncio.run(shapes.measure(Options(), silent))
    missed = {row.name for row in report.rows if row.ok is False}
    assert {"shapes.text.shape_of_text", "shapes.text.remedy_first", "shapes.mixed.remedy_first"} <= missed
    assert not any("shape_of_taste" in name for name in missed)


def test_real_sets_of_both_kinds_go_their_own_way(sequences: Path, tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    for folder, kind in ((sequences, "taste"), (pack(tmp_path / "text", trajectories()), "text")):
        report = asyncio.run(shapes.measure(Options(data=folder), silent))
        rows = {row.name.rpartition(".")[2]: row for row in report.rows}
        assert rows[f"shape_of_{kind}"].ok
        assert rows["finds_something"].value > 0.5
        assert len(report.data_sha256) == 64
        assert ("gate_stays_shut" in rows) == (kind == "text")
        assert report.ok


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
