"""A process killed at any point loses nothing it acknowledged, and applies nothing twice."""

from __future__ import annotations

import signal

import pytest

from collab_layer import CollabLayer
from collab_layer.config import Settings


@pytest.mark.parametrize(("engine", "total", "killed_at"), [("sqlite", 2000, 1300), ("postgres", 400, 250)])
def test_every_acknowledged_interaction_survives_kill_9_and_nothing_is_applied_twice(
    request, program, rows, monkeypatch, engine, total, killed_at
):
    monkeypatch.setenv("COLLAB_LEASE_S", "3")  # what the killed one held is taken over then
    url = request.getfixturevalue(f"{engine}_url")
    look = rows(url)
    writer = program("write", url, "0", str(total), "worker")
    acknowledged: dict[int, str] = {}
    for line in writer.stdout:
        number, id_ = line.split()
        acknowledged[int(number)] = id_
        if len(acknowledged) >= killed_at and settled(look) > 0:
            break
    writer.kill()
    writer.wait()
    assert writer.returncode == -signal.SIGKILL, writer.stderr.read()
    for line in writer.stdout:  # acknowledged before the kill, read after it
        number, _, id_ = line.strip().partition(" ")
        if line.endswith("\n"):
            acknowledged[int(number)] = id_
    assert killed_at <= len(acknowledged) < total

    left_over = look.one("SELECT count(*) FROM outbox")
    assert left_over > 0, "the kill came after propagation had ended; make it earlier"
    stored = dict(look("SELECT key, id FROM interactions"))
    assert {f"k{number}": f"i{stored.get(f'k{number}', 0):x}" for number in acknowledged} == {
        f"k{number}": id_ for number, id_ in acknowledged.items()
    }

    with CollabLayer.open(url, settings=Settings(worker=False)) as layer:
        assert layer.drain() >= left_over
        assert layer.drain() == 0
        assert layer.explain(acknowledged[0]).text is not None
        assert {part.condition for part in layer.health().parts} <= {"ok", "empty"}
        again = layer.observe(actor="user:u0", target="item:i0", verb="liked", key="k0")
        assert again == [acknowledged[0]]
    assert look.one("SELECT count(*) FROM outbox") == 0
    assert look.one("SELECT count(*) FROM work") == 0
    assert look.one("SELECT count(*) FROM cards") == len(stored)
    assert look.one("SELECT count(*) FROM derived") > 0
    assert look.repeated() == {}


def settled(look) -> int:
    """Interactions that propagation has already dealt with."""
    return look.one("SELECT count(*) FROM interactions") - look.one("SELECT count(*) FROM outbox")
