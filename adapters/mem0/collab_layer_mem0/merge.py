"""Add what neighbours know to what the owner's own search found.

In:   Mem0's answer, and facets, strongest first.
Out:  a new answer whose own part is untouched.
Pure: no SDK, no I/O, no clock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from collab_layer.types.facet import Evidence, Facet

PREFIX: Final = "collab:"
"""How the ids of derived items begin."""


def derived_id(memory_id: object) -> str | None:
    """The facet id inside one of our own ids; None for Mem0's ids."""
    return memory_id.removeprefix(PREFIX) if isinstance(memory_id, str) and memory_id.startswith(PREFIX) else None


def results_of(answer: object) -> list[Any] | None:
    """The list of items in an answer of either form; None if there is none."""
    found = cast("Mapping[str, Any]", answer).get("results") if isinstance(answer, Mapping) else answer
    return cast("list[Any]", found) if isinstance(found, list) else None


def merged(answer: Any, facets: Iterable[Facet], limit: int) -> Any:
    """Own items first and as they were, then at most `limit` derived ones.

    Their scores are at most the lowest own one, and 0 if there is none. What an own item
    already says is not said again. Without a facet to add, the answer itself is returned.
    """
    own = results_of(answer)
    if own is None:
        return answer
    new = _unsaid(own, facets, limit)
    if not new:
        return answer
    ceiling, items = _lowest(own), list[dict[str, Any]]()
    for facet in new:
        ceiling = min(ceiling, ceiling * facet.confidence)
        items.append(item(facet, ceiling))
    if isinstance(answer, Mapping):
        return {**cast("Mapping[str, Any]", answer), "results": [*own, *items]}
    return [*own, *items]


def annotated(answer: Any, facets: Sequence[Facet], degraded: Sequence[str], limit: int) -> Any:
    """The answer with one more key, `collab`; as it was if there is nothing to tell.

    An answer that is a bare list has no place for the key and is returned as it was.
    """
    own = results_of(answer)
    if own is None or not isinstance(answer, Mapping):
        return answer
    new = _unsaid(own, facets, limit)
    if not new and not degraded:
        return cast("Any", answer)
    told = {"facets": [facet.model_dump(mode="json") for facet in new], "degraded": list(degraded)}
    return {**cast("Mapping[str, Any]", answer), "collab": told}


def item(facet: Facet, score: float | None) -> dict[str, Any]:
    """A facet in the shape of Mem0's items; its metadata is flat."""
    at = next((one.at.isoformat() for one in facet.evidence if one.at is not None), None)
    return {
        "id": f"{PREFIX}{facet.id}",
        "memory": facet.text,
        "hash": hashlib.md5(facet.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": {
            "collab_kind": facet.kind.value,
            "collab_confidence": round(facet.confidence, 4),
            "collab_contributors": facet.contributors,
            "collab_evidence": json.dumps([_shown(one) for one in facet.evidence], ensure_ascii=False),
        },
        "score": score,
        "created_at": at,
        "updated_at": at,
    }


def _shown(evidence: Evidence) -> dict[str, Any]:
    shown = {
        "source": evidence.source,
        "owner": None if evidence.owner is None else str(evidence.owner),
        "quote": evidence.quote,
    }
    return {key: value for key, value in shown.items() if value is not None}


def _unsaid(own: Sequence[Any], facets: Iterable[Facet], limit: int) -> list[Facet]:
    """Facets that say something new: neither in the owner's words, nor resting only on what was said."""
    said = {_plain(cast("Mapping[str, Any]", one).get("memory")) for one in own if isinstance(one, Mapping)}
    covered: set[str] = set()
    new: list[Facet] = []
    for facet in facets:
        sources = {one.source for one in facet.evidence if one.quote is not None or one.owner is not None}
        quotes = [one.quote for one in facet.evidence if one.quote is not None]
        repeats = _plain(facet.text) in said or (bool(quotes) and all(_plain(quote) in said for quote in quotes))
        if repeats or (sources and sources <= covered):
            covered |= sources
        elif len(new) < limit:
            new.append(facet)
            covered |= sources
            said.add(_plain(facet.text))
    return new


def _plain(text: object) -> str:
    return " ".join(str(text or "").casefold().split())


def _lowest(own: Sequence[Any]) -> float:
    scores = [cast("Mapping[str, Any]", one).get("score") for one in own if isinstance(one, Mapping)]
    return min((float(score) for score in scores if isinstance(score, (int, float))), default=0.0)


__all__ = ["PREFIX", "annotated", "derived_id", "item", "merged", "results_of"]
