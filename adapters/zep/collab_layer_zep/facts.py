"""A fact that an owner states itself, with its time, stored without a language model.

In:   words, times, attributes.
Out:  the edge to store.
Pure: no SDK, no I/O, no clock.

Everything is checked before anything is sent: Zep's own types take any text for a time, and
what is wrong comes back when a part of a batch may be stored.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any, cast

from collab_layer.ports.stated_fact import StatedFact
from collab_layer.types.entity import Entity
from collab_layer_zep.mapping import LINKS

Edge = dict[str, Any]
"""An edge as the API takes it."""


class Fact(StatedFact):
    """What an owner holds true, and when.

    Zep takes only those attributes that the ontology of the graph defines for `name`; `links` are kept as
    one, `collab_links`, so that holds for them too.
    """


def key_of(owner: Entity, fact: Fact) -> str:
    """What a fact is known by in the ledger; nothing of its text can be read from it."""
    return f"fact:{sha256(f'{owner}|{fact.content_key}'.encode()).hexdigest()[:32]}"


def edge(owner: Entity, fact: Fact, now: datetime) -> Edge:
    """What to store of an owner's fact.

    Raises:
        InputError: It would end before it begins.
    """
    attributes = dict(fact.attributes)
    if fact.links:
        attributes[LINKS] = ",".join(map(str, fact.links))
    stored: Edge = {
        "fact": fact.text,
        "fact_name": fact.name,
        "source_node": {"name": owner.id},
        "target_node": {"name": fact.about or owner.id},
        "valid_at": fact.begin(now).isoformat(),
    }
    if fact.invalid_at is not None:
        stored["invalid_at"] = fact.invalid_at.isoformat()
    return {**stored, "attributes": attributes} if attributes else stored


def nodes_of(edges: list[Edge]) -> list[str]:
    """The names of the nodes that edges hang between, each once."""
    ends = (cast("dict[str, str]", one[end]) for one in edges for end in ("source_node", "target_node"))
    return list(dict.fromkeys(end["name"] for end in ends if "name" in end))


__all__ = ["Edge", "Fact", "edge", "key_of", "nodes_of"]
