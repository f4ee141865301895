"""A derived item as a fact of its own in the reserved group of its owner.

In:   an `Update`, the time.
Out:  the two nodes and the fact to store, with where it came from.
Pure: no SDK, no I/O.

The fact's name says what it is, `COLLAB_SIGNAL` or `COLLAB_UPDATE`, and its uuid follows
from its key: the same key is one fact, whoever writes it and however often.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Final

from collab_layer.errors import InputError
from collab_layer.types.entity import Entity, checked_text
from collab_layer.types.facet import FacetKind
from collab_layer.types.update import Update
from collab_layer_graphiti.mapping import LINKS, derived_group

NAMESPACE: Final = uuid.UUID("4f0d9c1e-7c1c-5b4e-9b43-2f6a5f4d8e10")
SCHEMA: Final = 1
PEERS: Final = "peers"
"""Name of the node that an item without links points to."""


def native_id(key: str) -> str:
    """The uuid of the fact that is written under a key."""
    return str(uuid.uuid5(NAMESPACE, f"derived|{key}"))


def row(update: Update, now: datetime, vector: list[float] | None) -> dict[str, Any]:
    """What to store of a derived item.

    Raises:
        InputError: The text cannot be stored, or the item had run out before it was written.
    """
    text = checked_text(update.text)
    if not text.strip():
        raise InputError(f"`{update.id}` has no text")
    if update.expires is not None and update.expires <= now:
        raise InputError(f"`{update.id}` ran out at {update.expires.isoformat()}, before it was written")
    group = derived_group(update.owner)
    about = str(update.links[0]) if update.links else PEERS
    source, target = node(group, str(update.owner), now), node(group, about, now)
    return {"source": source, "target": target, "fact": _fact(update, text, group, now), "vector": vector}


def node(group: str, name: str, now: datetime) -> dict[str, Any]:
    """A node of ours, the same for the same name in a group."""
    return {
        "uuid": str(uuid.uuid5(NAMESPACE, f"node|{group}|{name}")),
        "name": name,
        "group_id": group,
        "summary": "",
        "created_at": now,
    }


def _fact(update: Update, text: str, group: str, now: datetime) -> dict[str, Any]:
    principals = dict.fromkeys(str(source.principal) for source in update.sources)
    return {
        "uuid": native_id(update.id),
        "group_id": group,
        "name": "COLLAB_UPDATE" if update.kind is FacetKind.UPDATE else "COLLAB_SIGNAL",
        "fact": text,
        "episodes": list[str](),
        "created_at": now,
        "valid_at": update.at or now,
        "invalid_at": update.expires,
        LINKS: [str(link) for link in update.links],
        "collab_derived": True,
        "collab_schema": SCHEMA,
        "collab_key": update.id,
        "collab_kind": update.kind.value,
        "collab_for": str(update.owner),
        "collab_confidence": update.confidence,
        "collab_hop": update.hop,
        "collab_origin_ids": [source.id for source in update.sources],
        "collab_principals": list(principals),
    }


def stable_id(group: str, key: str) -> str:
    """The uuid of an owner's fact that was stored under a key."""
    return str(uuid.uuid5(NAMESPACE, f"fact|{group}|{key}"))


def name_of(owner: Entity) -> str:
    """What the owner's node in its own group is called."""
    return owner.id


__all__ = ["NAMESPACE", "PEERS", "SCHEMA", "name_of", "native_id", "node", "row", "stable_id"]
