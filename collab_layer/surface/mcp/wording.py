"""Replies in few words. Every word that came from a store is quoted on one line.

In:   a reply.
Out:  a text of at most some twenty lines; the whole reply is in the structured result.
"""

from __future__ import annotations

from collab_layer.surface.http.models import (
    AnswerReply,
    ChangesReply,
    ContextReply,
    GrantsReply,
    InjectionsReply,
    NeighborsReply,
    ObserveReply,
    ReceiptsReply,
)
from collab_layer.types.changed import Changed
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.lineage import Lineage, SourceView
from collab_layer.types.notice import Notice
from collab_layer.types.prompt import quote
from collab_layer.types.ranking import Ranking
from collab_layer.types.scope import Grant

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
    """What it says, then one line per source, deeper ones further in."""
    head = f"{reply.kind} {reply.id}: {quote(reply.text) if reply.text else 'its wording is not yours to read'}"
    lines = [line for one in reply.sources for line in _branch(one, 0)]
    return "\n".join([head, *lines[:LINES], *_rest(len(lines))])


def publish(reply: Notice) -> str:
    """Its id, and who may read it."""
    return f"Published as {reply.id} for {reply.to}."


def changes(reply: ChangesReply) -> str:
    """One line per change, the newest last."""
    if not reply.changes:
        return "Nothing changed."
    shown = reply.changes[-LINES:]
    older = [f"{len(reply.changes) - LINES} older ones"] if len(reply.changes) > LINES else []
    return "\n".join([*older, *map(_change, shown)])


def injections(reply: InjectionsReply) -> str:
    """One line per answer, newest first."""
    if not reply.injections:
        return "Nothing of others was told."
    lines = [f"{one.at:%Y-%m-%d %H:%M} {one.use}: {', '.join(one.items[:4])}" for one in reply.injections[:LINES]]
    return "\n".join([*lines, *_rest(len(reply.injections))])


def receipt(reply: ErasureReceipt) -> str:
    """What was asked for, when, how far it is, and how many of each kind."""
    kinds = ", ".join(f"{one.count} {kind}" for kind, one in sorted(reply.erased.items())) or "nothing"
    return f"{reply.id}: {reply.action}, {reply.at:%Y-%m-%d %H:%M}, {reply.status}: {kinds}"


def receipts(reply: ReceiptsReply) -> str:
    """One line per receipt, newest first."""
    if not reply.receipts:
        return "No receipts."
    return "\n".join([*map(receipt, reply.receipts[:LINES]), *_rest(len(reply.receipts))])


def grants(reply: GrantsReply) -> str:
    """One line per grant, newest first."""
    if not reply.grants:
        return "Nothing is granted."
    return "\n".join([*map(_grant, reply.grants[:LINES]), *_rest(len(reply.grants))])


def _branch(one: SourceView, depth: int) -> list[str]:
    said = f": {quote(one.quote)}" if one.quote else ""
    line = f"{'  ' * depth}from {one.principal}, weight {one.weight:.2g}{said}"
    return [line, *(below for child in one.sources for below in _branch(child, depth + 1))]


def _change(one: Changed) -> str:
    old = f" was {quote(one.old)}" if one.old else ""
    new = f" now {quote(one.new)}" if one.new else ""
    return f"{one.at:%Y-%m-%d %H:%M} {one.whose} {one.kind.value}{old}{new}"


def _grant(one: Grant) -> str:
    purpose = f" for {quote(one.purpose)}" if one.purpose else ""
    until = f" until {one.until:%Y-%m-%d %H:%M}" if one.until else ""
    return f"{one.id}: {one.to} {'gets nothing' if one.denied else f'may use {one.level}'}{purpose}{until}"


def _rest(count: int) -> list[str]:
    return [f"and {count - LINES} more"] if count > LINES else []


def _incomplete(degraded: tuple[str, ...]) -> list[str]:
    return [f"Incomplete: {'; '.join(degraded)}"] if degraded else []
