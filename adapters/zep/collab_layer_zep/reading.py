"""Edges of a graph to records; what cannot be read is kept in mind and told.

In:   edges as the API gives them.
Out:  records with their spans; a complaint for `health`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from collab_layer.types.entity import Entity, MemoryRecord
from collab_layer_zep import mapping
from collab_layer_zep.times import Span, UnreadableTimeError, span_of

_log = logging.getLogger(__name__)


class Reader:
    """Reads edges for one store.

    Args:
        store: Its name; part of every ref.

    Attributes:
        unread: Facts that are left out, and which of their times cannot be read.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self.unread: dict[str, str] = {}

    def records(
        self, owner: Entity, graph: str, rows: Iterable[Mapping[str, Any]]
    ) -> dict[str, tuple[MemoryRecord, Span]]:
        """Facts by their ref, each once; those that never held or were taken back are left out."""
        found: dict[str, tuple[MemoryRecord, Span]] = {}
        for row in rows:
            span = self._span(row)
            record = None if span is None else mapping.record(self._store, owner, graph, row, span, _score(row))
            if record is not None and span is not None:
                found.setdefault(record.ref.id, (record, span))
        return found

    def held(self, owner: Entity, graph: str, rows: Iterable[Mapping[str, Any]], at: datetime) -> list[MemoryRecord]:
        """The records that held at a time, in the order of the edges."""
        return [record for record, span in self.records(owner, graph, rows).values() if span.holds(at)]

    def complaint(self) -> str:
        """What was left out, with an example; empty if nothing was."""
        if not self.unread:
            return ""
        id_, field = next(iter(self.unread.items()))
        return f"{len(self.unread)} facts are left out, such as `{id_}`: correct its `{field}`"

    def _span(self, row: Mapping[str, Any]) -> Span | None:
        id_ = str(row["uuid"])
        try:
            span = span_of(row)
        except UnreadableTimeError as error:
            if id_ not in self.unread:
                _log.warning("fact `%s` is left out: its `%s` is no time", id_, error.field)
            self.unread[id_] = error.field
            return None
        self.unread.pop(id_, None)
        return span


def _score(row: Mapping[str, Any]) -> float | None:
    """Zep's score of a search result; none in a list."""
    given = row.get("score") if row.get("score") is not None else row.get("relevance")
    return float(given) if isinstance(given, (int, float)) else None


__all__ = ["Reader"]
