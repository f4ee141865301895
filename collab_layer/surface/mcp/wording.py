"""Replies in few words. Every word that came from a store is quoted on one line.

In:   a reply.
Out:  a text of at most some twenty lines; the whole reply is in the structured result.
"""

from __future__ import annotations

from collab_layer.surface.http.models import AnswerReply, ContextReply, NeighborsReply, ObserveReply
from collab_layer.types.lineage import Lineage
from collab_layer.types.prompt import quote
from collab_layer.types.ranking import Ranking

LINES = 16


def context(reply: ContextReply) -> str:
    """The fenced block."""
    return reply.text


def answer(reply: AnswerReply) -> str:
    """The sentences with their sources."""
    return reply.text


def observe(reply: ObserveReply) -> str:
    """The ids."""
    return f"Noted: {', '.join(reply.ids)}"


def rank(reply: Ranking) -> str:
    """One line per candidate, best first."""
    lines = [
        f"{place}. {item.entity} {item.score:.3g}" + (f" because {quote(item.rationale)}" if item.rationale else "")
        for place, item in enumerate(reply.items[:LINES], start=1)
    ]
    return "\n".join([*lines, *_rest(len(reply.items)), *_incomplete(reply.degraded)])


def neighbors(reply: NeighborsReply) -> str:
    """One line per neighbour, strongest first."""
    if not reply.neighbors:
        return "No neighbours that may be read."
    lines = [
        f"{item.entity} {item.score:.3g}" + (f" shares {', '.join(map(str, item.shared[:4]))}" if item.shared else "")
        for item in reply.neighbors[:LINES]
    ]
    return "\n".join([*lines, *_rest(len(reply.neighbors))])


def explain(reply: Lineage) -> str:
    """What it says, then one line per source."""
    head = f"{reply.kind} {reply.id}: {quote(reply.text) if reply.text else 'its wording is not yours to read'}"
    lines = [
        f"from {one.principal}, weight {one.weight:.2g}" + (f": {quote(one.quote)}" if one.quote else "")
        for one in reply.sources[:LINES]
    ]
    return "\n".join([head, *lines, *_rest(len(reply.sources))])


def _rest(count: int) -> list[str]:
    return [f"and {count - LINES} more"] if count > LINES else []


def _incomplete(degraded: tuple[str, ...]) -> list[str]:
    return [f"Incomplete: {'; '.join(degraded)}"] if degraded else []
