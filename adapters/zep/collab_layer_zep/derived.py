"""A derived item as a fact of its own in the reserved graph of its owner.

In:   an `Update`, the time.
Out:  the edge to store, with where it came from; the types that let Zep take it.
Pure: no SDK, no I/O.

Zep refuses attributes that a graph's ontology does not define, so the reserved graph gets one
of ours. It has two nodes, the owner and `peers`: a node per link would outlive what it is about.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity, checked_text
from collab_layer.types.facet import FacetKind
from collab_layer.types.update import Update
from collab_layer_zep.facts import Edge
from collab_layer_zep.mapping import LINKS, RETRACTED

KEY: Final = "collab_key"
"""Attribute with the key that an item was written under."""
PEERS: Final = "peers"
SIGNAL, UPDATE = "COLLAB_SIGNAL", "COLLAB_UPDATE"
MAX_LISTED: Final = 20
"""At most so many ids in an attribute."""

_PROPERTIES: Final = {
    KEY: "text",
    "collab_kind": "text",
    "collab_for": "text",
    "collab_confidence": "float",
    "collab_hop": "int",
    "collab_sources": "text",
    "collab_principals": "text",
    LINKS: "text",
    RETRACTED: "text",
}


def description(owner: Entity) -> str:
    """What Zep's dashboard says of a reserved graph."""
    return f"Written by collab-layer: what others' memories say to {owner}. Taken back when a grant ends."


def edge_types() -> list[dict[str, Any]]:
    """The ontology of a reserved graph."""
    properties = [{"name": name, "type": kind, "description": "collab-layer"} for name, kind in _PROPERTIES.items()]
    about = {SIGNAL: "Known from others' memories", UPDATE: "Changed in others' memories"}
    return [{"name": name, "description": said, "properties": properties} for name, said in about.items()]


def edge(update: Update, now: datetime) -> Edge:
    """What to store of a derived item, between two nodes by name.

    Raises:
        InputError: The text cannot be stored, or the item had run out before it was written.
    """
    text = checked_text(update.text)
    if not text.strip():
        raise InputError(f"`{update.id}` has no text")
    if update.expires is not None and update.expires <= now:
        raise InputError(f"`{update.id}` ran out at {update.expires.isoformat()}, before it was written")
    stored: Edge = {
        "fact": text,
        "fact_name": UPDATE if update.kind is FacetKind.UPDATE else SIGNAL,
        "source_node": {"name": str(update.owner)},
        "target_node": {"name": PEERS},
        "valid_at": (update.at or now).isoformat(),
        "attributes": _attributes(update),
    }
    return stored if update.expires is None else {**stored, "invalid_at": update.expires.isoformat()}


def _attributes(update: Update) -> dict[str, Any]:
    principals = dict.fromkeys(str(source.principal) for source in update.sources)
    told: dict[str, Any] = {
        KEY: update.id,
        "collab_kind": update.kind.value,
        "collab_for": str(update.owner),
        "collab_confidence": update.confidence,
        "collab_hop": update.hop,
        "collab_sources": _listed(source.id for source in update.sources),
        "collab_principals": _listed(principals),
    }
    return {**told, LINKS: _listed(map(str, update.links))} if update.links else told


def _listed(ids: Any) -> str:
    return ",".join(list(ids)[:MAX_LISTED])


def blanked(now: datetime) -> dict[str, Any]:
    """The attributes that say an item was taken back, and nothing of where it came from."""
    return {**{name: None for name in _PROPERTIES if name != KEY}, RETRACTED: now.isoformat()}


def once(*parts: object) -> str:
    """An idempotency key that follows from what is written, and from nothing else."""
    return "collab-" + sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:40]


__all__ = [
    "KEY",
    "PEERS",
    "SIGNAL",
    "UPDATE",
    "blanked",
    "description",
    "edge",
    "edge_types",
    "once",
]
