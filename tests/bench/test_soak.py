"""The soak, short: what was acknowledged is there, once, and what was forgotten is not."""

import json

import pytest

from collab_layer.surface.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
WRONG = ("lost", "doubled", "not_propagated", "forgotten_and_there", "left_waiting")


def soaked(capsys, *options):
    status = main(["bench", "soak", "--json", *options])
    told = json.loads(capsys.readouterr().out)
    return status, {row["name"].removeprefix("perf.soak."): row for row in told["rows"]}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_nothing_is_lost_or_doubled_though_workers_are_killed(capsys, request, engine):
    url = request.getfixturevalue(f"{engine}_url")
    status, rows = soaked(capsys, "--duration", "25", "--url", url)
    assert {name: rows[name]["value"] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert status == 0
    assert rows["observed"]["value"] > 0
    assert rows["killed_workers"]["value"] > 3


def test_it_looks_past_the_layer_and_sees_what_is_missing(sqlite_url):
    from sqlalchemy import create_engine, text

    from collab_layer import CollabLayer
    from collab_layer.bench.perf import soak
    from collab_layer.config import Settings

    with CollabLayer.open(sqlite_url, tenant=soak.TENANT, settings=Settings(worker=False)) as layer:
        for at in range(3):
            layer.observe("user:s0", f"item:i{at}", text=f"Note {at} about settings", key=f"user:s0/{at}")
        layer.drain()
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        columns = "src, dst, kind, weight, at, valid_to, recorded_at, interaction, folded"
        one = f"SELECT tenant, id + 1000000, {columns} FROM edges WHERE interaction > 0 LIMIT 1"
        connection.execute(text(f"INSERT INTO edges (tenant, id, {columns}) {one}"))
        connection.execute(text("DELETE FROM interactions WHERE key = 'user:s0/2'"))
    engine.dispose()
    load = soak.Load(kept={"user:s0": {f"user:s0/{at}" for at in (1, 2)}}, gone={"user:s0"})
    found = {row.name: row for row in soak._rows(sqlite_url, load, 0, steady=False)}
    assert found["perf.soak.lost"].value == 1
    assert found["perf.soak.doubled"].value == 1
    assert found["perf.soak.forgotten_and_there"].value == 2
    assert found["perf.soak.lost"].ok is False


def test_too_short_a_run_is_refused(capsys):
    assert main(["bench", "soak", "--duration", "1"]) == 2
    assert "too short" in capsys.readouterr().err
