"""The built-in linkers: names that are known, and topics that a text names itself.

In:   texts, and folded names with their entities.
Out:  entities per text; `stages.link` also gives the words that stood for them.
Pure: the same request gives the same links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collab_layer.plugins.specs import LinkRequest
from collab_layer.stages import link
from collab_layer.stages.tokens import fold
from collab_layer.types.entity import Entity


def link_names(requests: Sequence[LinkRequest], names: Mapping[str, Entity], /) -> list[list[Entity]]:
    """Known names in each text, in the order of the text; the owner itself is left out."""
    return [
        [entity for entity, _ in link.known(request.text, names) if entity != request.owner] for request in requests
    ]


def link_topics(requests: Sequence[LinkRequest], names: Mapping[str, Entity], /) -> list[list[Entity]]:
    """What each text names, best first, at most 12; a topic that is a known name becomes that entity."""
    found = (link.topics(one.text) if one.topics is None else one.topics for one in requests)
    return [list(dict.fromkeys(names.get(fold(surface), entity) for entity, surface in named)) for named in found]


__all__ = ["link_names", "link_topics"]
