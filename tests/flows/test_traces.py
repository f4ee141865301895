"""What is left of a facet that was published says nothing of what it was about."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from collab_layer.config import Settings
from collab_layer.errors import UnknownIdError
from collab_layer.graph.tables import derived
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.scope import Sharing

NAME = "zanzibar-quokka"
"""A name that stands nowhere else."""
PEOPLE = [f"user:{letter}" for letter in "abcde"]


def _published(layer: CollabLayer) -> list[str]:
    return [facet.text for facet in layer.context("user:me", budget_tokens=2_000).facets if NAME in facet.text]


def _hold(layer: CollabLayer, people: list[str]) -> None:
    for who in (*people, "user:me"):
        for n in range(3):
            layer.observe(who, f"item:{n}", verb="liked")
        if who != "user:me":
            layer.observe(who, text="It was worth every evening.", links=[f"item:{NAME}"])
    layer.drain()


def _open(url: str, clock: FixedClock) -> CollabLayer:
    sharing = Sharing.within_tenant("facets", min_contributors=3)
    return CollabLayer.open(url, tenant="acme", sharing=sharing, settings=Settings(worker=False), clock=clock)


def test_the_name_of_a_forgotten_thing_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "g.db"
    with _open(str(path), FixedClock()) as layer:
        _hold(layer, PEOPLE)
        assert _published(layer)
        layer.forget(f"item:{NAME}")
        assert not _published(layer)
        with layer._layer._core.tools.store.database.read() as connection:
            traces = connection.execute(select(derived.c.key).where(derived.c.superseded == "erased")).scalars().all()
        assert traces
    left = [file.name for file in tmp_path.iterdir() if NAME.encode() in file.read_bytes()]
    assert left == []


def test_a_trace_without_the_name_still_keeps_one_owners_part_from_being_told(tmp_path: Path) -> None:
    """One of five is erased whole: the four left are not published as the difference."""
    clock = FixedClock()
    with _open(str(tmp_path / "g.db"), clock) as layer:
        _hold(layer, PEOPLE)
        assert _published(layer)
        layer.forget("user:e")
        clock.advance(days=30)
        assert not _published(layer)


@pytest.mark.parametrize("source", [False, True])
def test_who_was_only_named_by_others_is_forgotten_too(tmp_path: Path, source: bool) -> None:
    """Nobody ever saw it, but others granted to it and published for it."""
    never, others = f"user:{NAME}", InMemoryBackend()
    with _open(str(tmp_path / "g.db"), FixedClock()) as layer:
        layer.attach(others)
        layer.observe("user:a", "item:1", verb="liked")
        layer.grant("user:a", never, "records")
        layer.publish("user:a", "No deployments on Friday", never)
        with pytest.raises(UnknownIdError):
            layer.as_("user:a").forget(never)
        receipt = layer.forget(never, source=source)
        assert receipt.status == "complete"
        assert receipt.removed["grants"] == 1
        left = [file.name for file in tmp_path.iterdir() if NAME.encode() in file.read_bytes()]
        assert left == []
        assert all(one.to != never for one in layer.grants())
        with pytest.raises(UnknownIdError):
            layer.forget(never)


def test_who_was_only_named_by_others_may_have_its_name_forgotten(tmp_path: Path) -> None:
    never = f"user:{NAME}"
    with _open(str(tmp_path / "g.db"), FixedClock()) as layer:
        layer.observe("user:a", "item:1", verb="liked")
        layer.grant("user:a", never, "records")
        assert layer.as_(never).forget(never).removed["grants"] == 1
        assert all(one.to != never for one in layer.grants())
