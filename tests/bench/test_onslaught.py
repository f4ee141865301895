"""Attacks on a small crowd: the figures are there, and forgetting the attackers undoes what they did."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from collab_layer.bench import onslaught
from collab_layer.bench.attacks import world


def test_attackers_reach_nobody_and_honest_readers_lose_nothing():
    crowd = world(0)
    small = replace(
        crowd, notes=tuple(note for note in crowd.notes if note.text), questions=crowd.questions[:3], choices=()
    )
    wanted = {
        "injection",
        "flooding",
        "aliases.claim",
        "instructions.plain",
        "instructions.encoded",
        "instructions.split",
        "instructions.topic_name",
    }
    rows = asyncio.run(onslaught.measure(0, half="tune", crowd=small, only=lambda one: one.name in wanted))
    told = {row.name: row.value for row in rows}
    assert told["honest.told"] == 1.0
    for name in wanted:
        assert told[f"attack.{name}.utility_loss"] == 0.0
        assert told[f"attack.{name}.left_after_rollback"] == 0.0
        assert told[f"attack.{name}.success"] == 0.0
