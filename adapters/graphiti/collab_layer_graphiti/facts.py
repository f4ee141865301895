"""A fact that an owner states itself, with its time, stored without a language model.

In:   words, times, attributes.
Out:  the two nodes and the fact to store.
Pure: no SDK, no I/O, no clock.

Everything is checked before anything is stored: Graphiti takes a time without a zone for
UTC, drops attributes that bear its own names or overwrites itself with them, and fails in
the store over attributes that nest.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from collab_layer.ports.stated_fact import StatedFact
from collab_layer.types.entity import Entity
from collab_layer_graphiti.derived import name_of, node, stable_id
from collab_layer_graphiti.mapping import LINKS, group_of

_OWN: Final = frozenset(
    {"uuid", "group_id", "name", "fact", "fact_embedding", "episodes", "created_at", "expired_at", "valid_at"}
    | {"invalid_at", "reference_time", "source_uuid", "target_uuid", "source_node_uuid", "target_node_uuid"}
)


class Fact(StatedFact):
    """What an owner holds true, and when; attributes may be lists."""

    RESERVED = _OWN
    UNFIT = "`"
    LISTS = True


def row(owner: Entity, fact: Fact, now: datetime, vector: list[float] | None) -> dict[str, Any]:
    """What to store of an owner's fact.

    Raises:
        InputError: It would end before it begins.
    """
    group = group_of(owner)
    stored: dict[str, Any] = {
        "uuid": stable_id(group, fact.content_key),
        "group_id": group,
        "name": fact.name,
        "fact": fact.text,
        "episodes": list[str](),
        "created_at": now,
        "valid_at": fact.begin(now),
        "invalid_at": fact.invalid_at,
        LINKS: [str(link) for link in fact.links],
        **fact.attributes,
    }
    source, target = node(group, name_of(owner), now), node(group, fact.about or name_of(owner), now)
    return {"source": source, "target": target, "fact": stored, "vector": vector}


__all__ = ["Fact", "row"]
