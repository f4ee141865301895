"""Upkeep over ten thousand items takes seconds, and grows with their number."""

from __future__ import annotations

import time

import pytest

from collab_layer.config import Settings
from collab_layer.graph import derived, names
from collab_layer.graph.derived import Item, item_id
from collab_layer.sync import CollabLayer
from collab_layer.types.entity import Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Level, Sharing
from collab_layer.types.time import FOREVER

from .tidied import database

READER = Entity.parse("user:reader")


def fill(layer, count: int) -> None:
    """One reader that was told `count` things in pairs that say the same, by two tellers."""
    batch = [
        Interaction(
            actor=f"user:t{n % 2}",
            target=f"item:{n // 2 % 300}",
            verb="noted",
            text=f"Fact{n // 2}x about thing{n // 2 % 300}y holds for case{n // 2 % 7}z",
            key=str(n),
        )
        for n in range(count)
    ]
    ids = layer.observe(batch)
    with database(layer).write() as connection:
        known = names.resolve(connection, "acme", [READER, *{one for n in batch[:600] for one in (n.actor, n.target)}])
        derived.store(
            connection,
            "acme",
            [
                Item(
                    id=item_id("salt", str(READER), FacetKind.UPDATE, f"update:{id_}", one.text, [id_]),
                    owner=known[READER], kind=FacetKind.UPDATE, key=f"update:{id_}", text=one.text, confidence=0.2,
                    level=Level.RECORDS, links=(known[one.target],), sources=((id_, known[one.actor], 1.0),),
                    made_by="test", at=n + 1, expires=FOREVER,
                )
                for n, (id_, one) in enumerate(zip(ids, batch, strict=True))
            ],
        )  # fmt: skip


def seconds(folder, count: int) -> tuple[float, object]:
    settings, sharing = Settings(worker=False), Sharing.within_tenant("records")
    with CollabLayer.open(str(folder / f"{count}.db"), tenant="acme", settings=settings, sharing=sharing) as layer:
        fill(layer, count)
        begun = time.process_time()
        report = layer.consolidate()
        took = time.process_time() - begun
        assert layer.consolidate().changes == {}
        return took, report


@pytest.mark.slow
def test_ten_thousand_items_of_one_reader_are_tidied_in_seconds(tmp_path, record_property):
    small, _ = seconds(tmp_path, 1_000)
    large, report = seconds(tmp_path, 10_000)
    record_property("cpu_seconds", round(large, 2))
    print(f"10,000 items: {large:.2f} s of CPU, {report.changes}")
    assert (report.items, report.merged, report.parts) == (10_000, 5_000, 10_000)
    assert large < 40 * small, "it grows much faster than the number of items"
