"""Stopped at any point and started again, upkeep ends where it would have ended; nothing slips in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select, text

from collab_layer.config import Settings
from collab_layer.graph.engine import parse_url
from collab_layer.graph.tables import derived
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.types.interaction import Interaction

from .tidied import around, database, end_state, say, told

BY_HAND = Settings(worker=False)
READERS = [f"user:r{n}" for n in range(4)]


class Stopped(Exception):
    """What a kill looks like from inside."""


class StopClock(FixedClock):
    """Does something at its n-th look, once; looks are counted from `arm` on."""

    def __init__(self, start: datetime) -> None:
        super().__init__(start)
        self.looks, self.at, self.then = 0, -1, None

    def arm(self, at: int, then: Callable[[], None]) -> None:
        self.looks, self.at, self.then = 0, at, then

    def __call__(self) -> datetime:
        self.looks += 1
        if self.looks == self.at and self.then is not None:
            then, self.then = self.then, None
            then()
        return super().__call__()


def stop() -> None:
    raise Stopped


def fill(layer) -> None:
    """Four readers, each with something to merge, to supersede, to end, to delete and to relate; wrong counts."""
    around(layer, readers=READERS)
    say(layer, "user:a", text="Old news about Dune")
    layer._layer._core.tools.clock.advance(days=62)
    say(layer, "user:a", "user:c", "user:a")
    say(layer, "user:a", text="Dune has worms")
    layer.observe([Interaction(actor="user:a", target="item:9", verb=verb) for verb in ("loved", "hated")])
    layer.drain()
    with database(layer).write() as connection:
        connection.execute(text("UPDATE entities SET degree = degree + 3 WHERE kind = 'user'"))


def opened(url: str, clock: FixedClock) -> CollabLayer:
    return CollabLayer.open(url, tenant="acme", settings=BY_HAND, clock=clock)


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> tuple[Path, datetime, dict[str, list[tuple[object, ...]]], int]:
    """A filled file, the moment, the state that an undisturbed run leaves, and how often it looks at the clock."""
    folder = tmp_path_factory.mktemp("scene")
    clock = FixedClock()
    with opened(str(folder / "scene.db"), clock) as layer:
        fill(layer)
    shutil.copy(folder / "scene.db", folder / "done.db")
    watch = StopClock(clock())
    with opened(str(folder / "done.db"), watch) as layer:
        watch.arm(-1, stop)
        report = layer.consolidate()
        looks = watch.looks
        assert report.changes.keys() >= {"merged", "parts", "superseded", "expired", "related", "degrees"}
        return folder / "scene.db", clock(), end_state(layer), looks


def test_stopped_at_every_look_at_the_clock_it_goes_on_and_ends_in_the_same_state(scene, tmp_path):
    file, moment, expected, looks = scene
    assert looks >= 8
    for at in range(1, looks + 1):
        copy = tmp_path / f"{at}.db"
        shutil.copy(file, copy)
        clock = StopClock(moment)
        with opened(str(copy), clock) as layer:
            clock.arm(at, stop)
            with pytest.raises(Stopped):
                layer.consolidate()
        with opened(str(copy), FixedClock(moment)) as layer:
            layer.consolidate()
            assert end_state(layer) == expected, at
            assert layer.consolidate().changes == {}, at


def test_stopped_at_every_page_it_says_so_and_counts_both_halves(scene, tmp_path):
    file, moment, expected, _ = scene
    for at in range(1, 4):
        copy = tmp_path / f"{at}.db"
        shutil.copy(file, copy)
        left = at

        def progress(done: int, total: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Stopped

        with opened(str(copy), FixedClock(moment)) as layer:
            with pytest.raises(Stopped):
                layer.consolidate(progress=progress)
            report = layer.consolidate()
            assert end_state(layer) == expected
            if at < 3:
                assert report.resumed
                assert (report.owners, report.merged, report.superseded) == (4, 4, 4)


def test_stopped_again_and_again_it_still_ends_in_the_same_state(scene, tmp_path):
    file, moment, expected, _ = scene
    shutil.copy(file, tmp_path / "again.db")
    for _ in range(40):
        clock = StopClock(moment)
        with opened(str(tmp_path / "again.db"), clock) as layer:
            clock.arm(4, stop)
            try:
                layer.consolidate()
            except Stopped:
                continue
            assert end_state(layer) == expected
            return
    pytest.fail("it never came to its end")


def test_a_database_that_refuses_in_the_middle_leaves_nothing_half_written(scene, tmp_path):
    file, moment, expected, _ = scene
    copy = tmp_path / "busy.db"
    shutil.copy(file, copy)
    engine = create_engine(parse_url(str(copy)))
    with engine.begin() as connection:  # a store error of its own making, at the second reader's page
        connection.execute(
            text(
                "CREATE TRIGGER refuse BEFORE INSERT ON derived WHEN NEW.id LIKE 'dm%' AND "
                "(SELECT count(*) FROM derived WHERE id LIKE 'dm%') > 0 BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
            )
        )
    with opened(str(copy), FixedClock(moment)) as layer:
        with pytest.raises(Exception, match="disk is full"):
            layer.consolidate()
        with database(layer).read() as connection:
            made = connection.execute(select(derived.c.id).where(derived.c.id.like("dm%"))).scalars().all()
        assert len(made) == 1
    with engine.begin() as connection:
        connection.execute(text("DROP TRIGGER refuse"))
    engine.dispose()
    with opened(str(copy), FixedClock(moment)) as layer:
        assert layer.consolidate().resumed
        assert end_state(layer) == expected


def test_an_erasure_between_reading_and_writing_makes_that_reader_planned_anew(scene, tmp_path):
    file, moment, _, looks = scene
    for at in range(1, looks + 1):
        copy = tmp_path / f"{at}.db"
        shutil.copy(file, copy)
        clock = StopClock(moment)
        with opened(str(copy), clock) as layer, opened(str(copy), FixedClock(moment)) as other:
            clock.arm(at, lambda other=other: other.forget("user:c"))
            layer.consolidate()
            layer.consolidate()
            assert layer.consolidate().changes == {}, at
            for reader in READERS:
                for update in told(layer, reader):
                    sources = layer.explain(update.id).sources
                    assert {source.principal for source in sources} == {"user:a"}, at
            with database(layer).read() as connection:
                stored = {row.id: row.superseded for row in connection.execute(select(derived))}
            assert all(mark in stored for mark in stored.values() if mark is not None and mark.startswith("dm")), at


def test_a_revoked_grant_between_reading_and_writing_makes_that_reader_planned_anew(database_url):
    clock = StopClock(FixedClock()())
    with opened(database_url, clock) as layer, opened(database_url, FixedClock(clock())) as other:
        grants = around(layer)
        for at in range(1, 5):
            say(layer, "user:a", "user:c", text=f"Dune is fine, said at {at}")
            clock.arm(at, lambda: other.revoke(grants["user:c", "user:b"].id))
            layer.consolidate()
            left = told(layer, word=f"at {at}")
            assert [str(update.evidence[0].owner) for update in left] == ["user:a"], at
            grants["user:c", "user:b"] = layer.grant("user:c", "user:b", "records")
            layer.drain()


def test_items_that_come_in_between_reading_and_writing_are_taken_in_or_left_for_the_next_night(database_url):
    clock = StopClock(FixedClock()())
    with opened(database_url, clock) as layer, opened(database_url, FixedClock(clock())) as other:
        around(layer)
        for at in range(1, 5):
            words = f"Dune is fine, said at {at}"
            say(layer, "user:a", "user:c", text=words)
            clock.arm(at, lambda words=words: say(other, "user:a", text=words))
            layer.consolidate()
            layer.consolidate()
            assert layer.consolidate().changes == {}
            (update,) = told(layer, word=f"at {at}")
            parts = [source for source in layer.explain(update.id).sources if source.id.startswith("d")]
            assert len(parts) == 3, at


def test_on_postgres_a_stopped_run_goes_on_as_well(postgres_url):
    clock = StopClock(FixedClock()())
    with opened(postgres_url, clock) as layer:
        fill(layer)
        dry = layer.consolidate(dry_run=True)
        for at in (2, 4, 3):
            clock.arm(at, stop)
            with pytest.raises(Stopped):
                layer.consolidate()
        report = layer.consolidate()
        assert report.resumed
        assert report.changes == dry.changes
        assert layer.consolidate().changes == {}
