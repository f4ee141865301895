"""Play one scene of the demo over a real store: alone first, then with neighbours.

In:   a scene as data (`demo_data/*.json`) and an empty folder.
Out:  a `Scene`: what the reader found before anybody shared, and after.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collab_layer.surface.cli.demo_scene import Asked, Forgotten, News, Placed, Ranks, Scene, Told
from collab_layer.surface.cli.demo_store import open_memory
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction

if TYPE_CHECKING:
    from collab_layer import CollabLayer, Facet

SCENES = ("support", "agents", "books")
"""The shipped scenes, in the order they are played."""

SHOWN = 3
"""Facets shown where no search limits them."""

Data = Mapping[str, Any]
Tick = Callable[[], None]


def scene_data(name: str) -> Data:
    """A shipped scene."""
    source = files("collab_layer.surface.cli").joinpath("demo_data", f"{name}.json")
    return json.loads(source.read_text(encoding="utf-8"))


def size(data: Data) -> int:
    """Steps of a scene, for a progress bar."""
    return len(data["records"]) + len(data["reader_records"])


def play(name: str, data: Data, folder: Path, tick: Tick) -> Scene:
    """Fill a store, ask, let the owners share, ask again."""
    with _stage(folder) as (memory, layer):
        for record in [*data["records"], *data["reader_records"]]:
            _remember(memory, layer, record)
            tick()
        layer.drain()
        alone, before = _answers(memory, layer, data), _rank(layer, data)
        owners = sorted({record["owner"] for record in data["records"] if "said" not in record})
        for owner in owners:
            layer.grant(owner, data["reader"], level=data["level"])
        layer.drain()
        together = _answers(memory, layer, data)
        layer.set_weights()  # so few choices open no gate
        after = _rank(layer, data)
        return Scene(
            name=name,
            title=data["title"],
            about=data["about"],
            reader=data["reader"],
            records=len(data["records"]),
            owners=len(owners),
            asked=tuple(Asked(query, alone[query], together[query]) for query in together),
            ranks=Ranks(before, after, _names(data)[data["next"]]) if after else None,
            news=_hear(memory, layer, data),
            forgotten=_forget(memory, layer, data),
        )


@contextmanager
def _stage(folder: Path) -> Generator[tuple[Any, CollabLayer]]:
    from collab_layer.config import Settings
    from collab_layer.sync import CollabLayer

    memory = open_memory(folder)
    from collab_layer_mem0 import collaborative

    try:
        # So that it plays the same every time each scene drains the work itself, and no ranking is drawn by lot.
        settings = Settings(worker=False, holdout=0)
        with CollabLayer.open(str(folder / "collab.db"), tenant="demo", settings=settings) as layer:
            yield collaborative(memory, layer=layer, timeout_s=10), layer
    finally:
        memory.close()


def _remember(memory: Any, layer: CollabLayer, record: Data) -> None:
    """Words go into Mem0 as a user would add them; what has no words of an owner goes to the layer."""
    owner = Entity.parse(record["owner"])
    if "text" in record:
        links = {"collab_links": ",".join(record["links"])} if record["links"] else {}
        memory.add(record["text"], **_scope(owner), metadata={**links, "created_at": record["at"]}, infer=False)
    else:
        target, said = record.get("target"), record.get("said")
        layer.observe([Interaction(actor=owner, target=target, verb=record["verb"], text=said, at=record["at"])])


def _scope(owner: Entity) -> dict[str, str]:
    return {f"{owner.kind}_id": owner.id}


def _answers(memory: Any, layer: CollabLayer, data: Data) -> dict[str, tuple[Told, ...]]:
    """An answer per question; a question about taste has no words to search for."""
    found = {query: _ask(memory, data["reader"], query) for query in data["queries"]}
    if "taste" in data:
        own = memory.get_all(filters=_scope(Entity.parse(data["reader"])), top_k=3)["results"]
        facets = layer.context(data["reader"]).facets[:SHOWN]
        found[data["taste"]] = (*map(_told, own), *map(_of, facets))
    return found


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
        _named(json.loads(about["collab_evidence"])),
    )


def _of(facet: Facet) -> Told:
    named = _named([one.model_dump(mode="json") for one in facet.evidence])
    return Told(facet.id, facet.text, facet.confidence, facet.contributors, named)


def _named(evidence: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Each piece of evidence whose owner may be named, with the owner's words if they may be quoted."""
    named = [one for one in evidence if one.get("owner")]
    said = (f"{one['owner']}: {one['quote']}" if one.get("quote") else str(one["owner"]) for one in named)
    return tuple(dict.fromkeys(said))


def _names(data: Data) -> dict[str, str]:
    return {one["entity"]: one["name"] for one in data.get("names", ())}


def _rank(layer: CollabLayer, data: Data) -> tuple[Placed, ...]:
    if "candidates" not in data:
        return ()
    names = _names(data)
    items = layer.rank(data["reader"], data["candidates"]).items
    return tuple(Placed(names[str(item.entity)], item.rationale) for item in items)


def _hear(memory: Any, layer: CollabLayer, data: Data) -> News | None:
    """Somebody meets something new; what of it reaches the reader in the background."""
    if "later" not in data:
        return None
    for record in data["later"]:
        _remember(memory, layer, record)
    layer.drain()
    updates = [facet for facet in layer.context(data["reader"]).facets if facet.kind == "update"]
    return News(data["news"], tuple(map(_of, updates)))


def _forget(memory: Any, layer: CollabLayer, data: Data) -> Forgotten | None:
    if "forget" not in data:
        return None
    receipt, query = layer.forget(data["forget"]), data["queries"][0]
    return Forgotten(data["forget"], sum(receipt.removed.values()), query, _ask(memory, data["reader"], query))
