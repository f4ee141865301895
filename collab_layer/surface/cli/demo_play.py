"""Play one scene of the demo over a real store: alone first, then with neighbours.

In:   a scene as data (`demo_data/*.json`) and an empty folder.
Out:  a `Scene`: what the reader found before anybody shared, and after.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collab_layer.surface.cli.demo_store import open_memory
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction

if TYPE_CHECKING:
    from collab_layer import CollabLayer, Facet

SCENES = ("support", "agents", "books")
"""The shipped scenes, in the order they are played."""

Data = Mapping[str, Any]
Tick = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Told:
    """One line of an answer.

    Attributes:
        id: Of the memory or the facet.
        text: What it says.
        support: Of a facet, in [0, 1]; `None` for the reader's own memory.
        contributors: Distinct owners behind a facet.
        evidence: What it rests on, as the reader may see it.
    """

    id: str
    text: str
    support: float | None = None
    contributors: int = 1
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, answered twice."""

    query: str
    alone: tuple[Told, ...]
    together: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """What was played.

    Attributes:
        records: Memories and interactions of the others.
        ranked: Candidates in order, alone and together; empty without candidates.
        news: What somebody did later, and the updates that reached the reader.
        forgotten: Who was forgotten, rows removed, and the first answer afterwards.
    """

    name: str
    title: str
    about: str
    reader: str
    records: int
    owners: int
    asked: tuple[Asked, ...]
    ranked: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    news: tuple[str, tuple[Told, ...]] = ("", ())
    forgotten: tuple[str, int, tuple[Told, ...]] | None = None


def scene_data(name: str) -> Data:
    """A shipped scene."""
    source = files("collab_layer.surface.cli").joinpath("demo_data", f"{name}.json")
    return json.loads(source.read_text(encoding="utf-8"))


def size(data: Data) -> int:
    """Steps of a scene, for a progress bar."""
    return len(data["records"]) + len(data["reader_records"])


def play(name: str, data: Data, folder: Path, tick: Tick) -> Scene:
    """Fill a store, ask, let the owners share, ask again."""
    reader = data["reader"]
    with _stage(folder) as (memory, layer):
        for record in [*data["records"], *data["reader_records"]]:
            _remember(memory, layer, record)
            tick()
        layer.drain()
        alone = [_ask(memory, reader, query) for query in data["queries"]]
        ranked_alone = _rank(layer, data)
        owners = sorted({record["owner"] for record in data["records"]})
        for owner in owners:
            layer.grant(owner, reader, level=data["level"])
        together = [_ask(memory, reader, query) for query in data["queries"]]
        return Scene(
            name=name,
            title=data["title"],
            about=data["about"],
            reader=reader,
            records=len(data["records"]),
            owners=len(owners),
            asked=tuple(map(Asked, data["queries"], alone, together)),
            ranked=(ranked_alone, _rank(layer, data)),
            news=_hear(memory, layer, data),
            forgotten=_forget(memory, layer, data),
        )


@contextmanager
def _stage(folder: Path) -> Generator[tuple[Any, CollabLayer]]:
    from collab_layer.sync import CollabLayer

    memory = open_memory(folder)
    from collab_layer_mem0 import collaborative

    try:
        with CollabLayer.open(f"sqlite:///{folder / 'collab.db'}", tenant="demo") as layer:
            yield collaborative(memory, layer=layer, timeout_s=10), layer
    finally:
        memory.close()


def _remember(memory: Any, layer: CollabLayer, record: Data) -> None:
    """Words go into Mem0 as a user would add them; a bare "liked" goes to the layer."""
    owner = Entity.parse(record["owner"])
    if "text" not in record:
        layer.observe([Interaction(actor=owner, target=record["target"], verb=record["verb"], at=record["at"])])
        return
    fix = f" Fix: {record['outcome']}." if record.get("outcome") else ""
    memory.add(
        record["text"] + fix,
        **_scope(owner),
        metadata={"collab_links": ",".join(record["links"]), "created_at": record["at"]},
        infer=False,
    )


def _scope(owner: Entity) -> dict[str, str]:
    return {f"{owner.kind}_id": owner.id}


def _ask(memory: Any, reader: str, query: str) -> tuple[Told, ...]:
    found = memory.search(query, filters=_scope(Entity.parse(reader)), top_k=3, threshold=0.0)
    return tuple(_told(item) for item in found["results"])


def _told(item: Mapping[str, Any]) -> Told:
    about: Data = item.get("metadata") or {}
    if "collab_kind" not in about:
        return Told(item["id"], item["memory"])
    return Told(
        item["id"],
        item["memory"],
        about["collab_confidence"],
        about["collab_contributors"],
        tuple(_shown(one) for one in json.loads(about["collab_evidence"])),
    )


def _shown(evidence: Mapping[str, Any]) -> str:
    whose = evidence.get("owner", "a peer")
    return f"{whose}: {evidence['quote']}" if evidence.get("quote") else whose


def _rank(layer: CollabLayer, data: Data) -> tuple[str, ...]:
    if "candidates" not in data:
        return ()
    names = {one["entity"]: one["name"] for one in data["names"]}
    return tuple(names[str(entity)] for entity in layer.rank(data["reader"], data["candidates"]).entities)


def _hear(memory: Any, layer: CollabLayer, data: Data) -> tuple[str, tuple[Told, ...]]:
    """Somebody meets something new; what of it reaches the reader in the background."""
    if "later" not in data:
        return "", ()
    for record in data["later"]:
        _remember(memory, layer, record)
    layer.drain()
    updates = [facet for facet in layer.context(data["reader"]).facets if facet.kind == "update"]
    return data["news"], tuple(_of(facet) for facet in updates)


def _of(facet: Facet) -> Told:
    shown = [{"owner": one.owner and str(one.owner), "quote": one.quote} for one in facet.evidence]
    return Told(facet.id, facet.text, facet.confidence, facet.contributors, tuple(_shown(one) for one in shown))


def _forget(memory: Any, layer: CollabLayer, data: Data) -> tuple[str, int, tuple[Told, ...]] | None:
    if "forget" not in data:
        return None
    receipt = layer.forget(data["forget"])
    return data["forget"], sum(receipt.removed.values()), _ask(memory, data["reader"], data["queries"][0])
