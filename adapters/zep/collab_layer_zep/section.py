"""What neighbours know, as a delimited part of Zep's own answers.

In:   what the layer said; an answer's context, or its edges.
Out:  a context with a section behind it; edges that say what they are. The own part is untouched.
Pure: no SDK, no I/O, no clock.

The section is the block that the layer makes for prompts: quoted data between two marks that
follow from its content, so that nothing inside can end it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from collab_layer.types.facet import CollabMemory, Evidence, Facet, FacetKind

PREFIX: Final = "collab:"
"""How the ids of derived edges begin; no id of Zep's does."""
SIGNAL, UPDATE = "COLLAB_SIGNAL", "COLLAB_UPDATE"
SCOPE: Final = "collab"
CHARS_PER_TOKEN: Final = 4
"""The most that the layer's estimate allows a token."""
_GAP: Final = "\n\n"


def block(memory: CollabMemory | None, chars: int) -> tuple[str, tuple[Facet, ...]]:
    """The section, at most so many characters, and the facets in it; empty where nothing fits."""
    facets = () if memory is None else memory.facets
    while memory is not None and facets:
        text = str(memory.model_copy(update={"facets": facets}))
        if len(text) <= chars:
            return text, facets
        facets = facets[:-1]
    return "", ()


def joined(context: str | None, section: str) -> str:
    """A context with a section behind it."""
    return f"{context}{_GAP}{section}" if context else section


def room(context: str | None, chars: int, allowed: int | None) -> int:
    """Characters for a section, where the caller said how many the whole may have."""
    if allowed is None:
        return chars
    return max(0, min(chars, allowed - len(context or "") - len(_GAP)))


def unsaid(facts: Sequence[str | None], facets: Sequence[Facet], limit: int, chars: int) -> list[Facet]:
    """At most `limit` facets of at most `chars` characters together that the own facts do not say already."""
    said = {_plain(fact) for fact in facts}
    new: list[Facet] = []
    for facet in facets:
        words = _plain(facet.text)
        if len(new) < limit and words not in said and len(facet.text) <= chars:
            said.add(words)
            chars -= len(facet.text)
            new.append(facet)
    return new


def edge(facet: Facet, score: float | None) -> Mapping[str, Any]:
    """The fields of an edge that stands for a facet."""
    at = next((one.at.isoformat() for one in facet.evidence if one.at is not None), None)
    shown = [_shown(one) for one in facet.evidence]
    return {
        "uuid": f"{PREFIX}{facet.id}",
        "name": UPDATE if facet.kind is FacetKind.UPDATE else SIGNAL,
        "fact": facet.text,
        "scope": SCOPE,
        "score": score,
        "created_at": at,
        "attributes": {
            "collab_kind": facet.kind.value,
            "collab_confidence": round(facet.confidence, 4),
            "collab_contributors": facet.contributors,
            "collab_evidence": json.dumps(shown, ensure_ascii=False),
        },
    }


def scores(own: Sequence[float | None], facets: Sequence[Facet]) -> list[float]:
    """Scores that are not above the lowest of the own ones, and do not rise."""
    ceiling = min((score for score in own if score is not None), default=0.0)
    out: list[float] = []
    for facet in facets:
        ceiling = min(ceiling, ceiling * facet.confidence)
        out.append(ceiling)
    return out


def _shown(evidence: Evidence) -> dict[str, str]:
    owner = None if evidence.owner is None else str(evidence.owner)
    shown = {"source": evidence.source, "owner": owner, "quote": evidence.quote}
    return {key: value for key, value in shown.items() if value is not None}


def _plain(text: str | None) -> str:
    return " ".join((text or "").casefold().split())


__all__ = [
    "CHARS_PER_TOKEN",
    "PREFIX",
    "SCOPE",
    "SIGNAL",
    "UPDATE",
    "block",
    "edge",
    "joined",
    "room",
    "scores",
    "unsaid",
]
