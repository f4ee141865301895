"""Rows of the graph to records; what cannot be read is kept in mind and told.

In:   facts as the graph gives them.
Out:  records with their spans; a complaint for `health`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from collab_layer.ports.stored_facts import Span, Unread
from collab_layer.types.entity import Entity, MemoryRecord
from collab_layer_graphiti import mapping
from collab_layer_graphiti.times import span_of


class Reader:
    """Reads rows for one store.

    Args:
        store: Its name; part of every ref.

    Attributes:
        unread: Facts that are left out.
        nameless: Groups that name no owner.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self.unread = Unread()
        self.nameless: set[str] = set()

    def records(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[MemoryRecord, Span]]:
        """Facts of owners by id, each once; derived ones and those that never held are left out."""
        found: dict[str, tuple[MemoryRecord, Span]] = {}
        for row in rows:
            owner = self.owner(row.get("group_id"))
            span = None if owner is None else self.unread.span(str(row["uuid"]), partial(span_of, row))
            if owner is not None and span is not None:
                record = mapping.record(self._store, owner, row, span)
                if record is not None:
                    found.setdefault(record.ref.id, (record, span))
        return found

    def held(self, rows: Iterable[Mapping[str, Any]], at: datetime) -> list[MemoryRecord]:
        """The records that held at a time, in the order of the rows."""
        return [record for record, span in self.records(rows).values() if span.holds(at)]

    def owner(self, group: object) -> Entity | None:
        """Whose a group is; None for reserved ones and those that name nobody."""
        owner = mapping.owner_of(group if isinstance(group, str) else None)
        if owner is None and not str(group).startswith(mapping.DERIVED_PREFIX):
            self.nameless.add(str(group))
        return owner

    def complaint(self) -> str:
        """What was left out, with an example of each; empty if nothing was."""
        said = [unread] if (unread := self.unread.complaint()) else []
        if self.nameless:
            said.append(f"{len(self.nameless)} groups name no owner, such as `{min(self.nameless)[:80]}`")
        return "; ".join(said)


__all__ = ["Reader"]
