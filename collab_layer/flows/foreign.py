"""What other organisations said, beside a context: marked, last, and never above what is known here.

In:   a context as it was made of the tenant's own graph.
Out:  the same with a few foreign candidates behind it, as far as the budget goes.
Read when a context is handed out, and at no other time: no stage, no model's question, no ranking, no
delivery and no upkeep ever sees them.
"""

from __future__ import annotations

from collections.abc import Sequence

from collab_layer.errors import UnknownIdError
from collab_layer.flows.received import received_by
from collab_layer.flows.tools import Tools
from collab_layer.graph import foreign
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.foreign import Taken
from collab_layer.graph.policy import NOBODY
from collab_layer.graph.reader import OWN_CAP
from collab_layer.graph.store import Opened
from collab_layer.plugins.specs import LinkRequest
from collab_layer.types.entity import Entity
from collab_layer.types.facet import CollabMemory, Facet, FacetKind
from collab_layer.types.lineage import Lineage, SourceView
from collab_layer.types.prompt import OVERHEAD_TOKENS, line
from collab_layer.types.scope import Scope
from collab_layer.types.time import moment
from collab_layer.types.tokens import estimate_tokens

SHOWN = 3


def added(tools: Tools, scope: Scope, query: str | None, links: Sequence[Entity], memory: CollabMemory) -> CollabMemory:
    """The context with foreign candidates about what the entity has, or asks about."""
    if scope.as_of is not None:
        return memory
    with tools.store.reading(scope, memory.entity, tools.now()) as opened:
        asked = {str(link) for link in links}
        if query:
            [named] = tools.link([LinkRequest(memory.entity, query)], opened.reading.index.known)
            asked |= {str(thing) for thing in named}
        own = _own(opened)
        found = foreign.about(opened.reading.connection, opened.reading.tenant, sorted(asked | own), opened.now)
    said = [one for one in found if asked & set(one.things) or len(set(one.things) - own) == 1]
    return _behind(memory, said)


def explain(tools: Tools, scope: Scope, opened: Opened, id_: str) -> Lineage:
    """Whose word a foreign candidate is, how far it is trusted, and until when it holds.

    Raises:
        UnknownIdError: There is none, or it was forgotten.
    """
    connection, tenant = opened.reading.connection, opened.reading.tenant
    one = foreign.get(connection, tenant, [id_]).get(id_)
    if one is None or not one.bundle:
        raise UnknownIdError(id_)
    at, state = moment(one.at), "live" if one.expires > opened.now else "expired"
    source = SourceView.model_validate(
        {
            "id": one.bundle,
            "principal": f"issuer {one.issuer}",
            "weight": 1.0,
            "number": 1,
            "kind": "bundle",
            "trust": one.trust,
            "at": at,
            "state": state,
        }
    )
    return Lineage.model_validate(
        {
            "id": id_,
            "kind": FacetKind.FOREIGN.value,
            "text": _text(one),
            "confidence": one.support * one.trust,
            "trust": one.trust,
            "sources": (source,),
            "nodes": 1,
            "depth": 1,
            "made_by": f"bundle {one.bundle}",
            "at": at,
            "expires": moment(one.expires),
            "state": state,
            "received": received_by(tools, connection, scope, id_),
        }
    )


def _own(opened: Opened) -> set[str]:
    if opened.focus == NOBODY:
        return set()
    reading = opened.reading
    around = reading.edges([opened.focus])[opened.focus]
    held = around.pick(Kind.INTERACTED, Kind.MENTIONS).take(slice(OWN_CAP))
    return {reading.index.names[id_] for id_ in held.ids.tolist() if reading.index.named(id_)}


def _behind(memory: CollabMemory, found: Sequence[Taken]) -> CollabMemory:
    """Whole facets behind all others, each less sure than the least sure of them."""
    least = min((facet.confidence for facet in memory.facets), default=1.0)
    tokens = memory.tokens or OVERHEAD_TOKENS
    out: list[Facet] = []
    for one in found:
        made = _facet(one, least)
        cost = estimate_tokens(line(made)) + 1
        if len(out) < SHOWN and tokens + cost <= memory.budget_tokens:
            tokens += cost
            out.append(made)
    if not out:
        return memory
    return memory.model_copy(update={"facets": (*memory.facets, *out), "tokens": tokens})


def _facet(one: Taken, least: float) -> Facet:
    return Facet(
        id=one.id,
        kind=FacetKind.FOREIGN,
        text=_text(one),
        confidence=one.trust * min(one.support, least),
        contributors=max(1, one.contributors),
        score=0.0,
        made_by=f"bundle {one.bundle}",
    )


def _text(one: Taken) -> str:
    called = [name.partition(":")[2] for name in one.things]
    said = f"{called[0]} and {called[1]} go together" if len(called) == 2 else f"several have {called[0]}"
    return f"Elsewhere, unverified: {said}"


__all__ = ["added", "explain"]
