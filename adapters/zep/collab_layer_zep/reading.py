"""Edges of a graph to records; what cannot be read is kept in mind and told.

In:   edges as the API gives them.
Out:  records with their spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from collab_layer.ports.stored_facts import Span, Unread
from collab_layer.types.entity import Entity, MemoryRecord
from collab_layer_zep import mapping
from collab_layer_zep.times import span_of


class Reader:
    """Reads edges for one store.

    Args:
        store: Its name; part of every ref.

    Attributes:
        unread: Facts that are left out.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self.unread = Unread()

    def records(
        self, owner: Entity, graph: str, rows: Iterable[Mapping[str, Any]]
    ) -> dict[str, tuple[MemoryRecord, Span]]:
        """Facts by their ref, each once; those that never held or were taken back are left out."""
        found: dict[str, tuple[MemoryRecord, Span]] = {}
        for row in rows:
            span = self.unread.span(str(row["uuid"]), partial(span_of, row))
            record = None if span is None else mapping.record(self._store, owner, graph, row, span, _score(row))
            if record is not None and span is not None:
                found.setdefault(record.ref.id, (record, span))
        return found

    def held(self, owner: Entity, graph: str, rows: Iterable[Mapping[str, Any]], at: datetime) -> list[MemoryRecord]:
        """The records that held at a time, in the order of the edges."""
        return [record for record, span in self.records(owner, graph, rows).values() if span.holds(at)]


def _score(row: Mapping[str, Any]) -> float | None:
    """Zep's score of a search result; none in a list."""
    given = row.get("score") if row.get("score") is not None else row.get("relevance")
    return float(given) if isinstance(given, (int, float)) else None


__all__ = ["Reader"]
