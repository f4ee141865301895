"""One reader's derived items, tidied: contradicted ones step back, those that say the same become one.

In:   every item of one reader with what it tells of, and a moment.
Out:  a `Tidied`: new marks and ends, merged items to make, items to delete.
Pure: no clock, no I/O. What comes out as the new state changes nothing when it is put in again.

Contradiction is decided by events only: the same actor about the same thing, later. Never by the
likeness of vectors: no embedder separates "loves" from "hates". Nothing is overwritten: what
steps back keeps its words until some time after its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from collab_layer.stages.contradiction import contradicted, overtaken
from collab_layer.stages.merging import duplicates
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import Level
from collab_layer.types.upkeep import MERGED, SPLIT, Merged, Piece

STORED = frozenset({FacetKind.UPDATE.value})
"""Kinds that are shown as they are stored. Lessons and facets are made anew at every read, where a text is shown
once: to step back would change nothing for them."""
Name = Callable[[Merged], str]
"""The id of a merged item; the same content gives the same id."""


@dataclass(slots=True)
class Tidied:
    """What is to change; every map is by item id.

    Attributes:
        marks: Whom an item steps back for; None where it is shown (again).
        ends: New ends, microseconds.
        made: Merged items that do not exist yet.
        deleted: Items whose words and lineage go.
        current: Ids of all that is shown afterwards, `made` included.
        counts: Changes by kind, named as in `Consolidation`.
    """

    marks: dict[str, str | None] = field(default_factory=dict[str, str | None])
    ends: dict[str, int] = field(default_factory=dict[str, int])
    made: dict[str, Merged] = field(default_factory=dict[str, Merged])
    deleted: list[str] = field(default_factory=list[str])
    current: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])


def tidy(
    pieces: Sequence[Piece],
    *,
    now: int,
    delta: float,
    grace: int,
    name: Name,
    aliases: Mapping[int, int] | None = None,
) -> Tidied:
    """Decide what changes for one reader.

    Args:
        pieces: All its items, merged ones and those that stepped back included.
        now: The moment, microseconds.
        delta: The most one principal moves a confidence, in (0, 1].
        grace: How long after its end an item keeps its words, microseconds, >= 0.
        name: Ids for merged items.
        aliases: Principals that count as another one.
    """
    state = _State(pieces, now)
    base = [piece for piece in pieces if piece.kind in STORED and not merged(piece.id) and piece.sources]
    base = [piece for piece in base if piece.level >= Level.RECORDS]
    state.follow(base)
    state.supersede(base)
    alive = [piece for piece in base if state.free(piece.id)]
    wanted = {name(one): one for one in duplicates(alive, delta=delta, aliases=aliases)}
    state.merge(alive, wanted)
    state.end()
    return state.settled(grace)


def merged(id_: str | None) -> bool:
    """Whether an id, or a mark, is that of a merged item."""
    return id_ is not None and id_.startswith(MERGED)


class _State:
    """Marks and ends as they are to be, beside those that are."""

    def __init__(self, pieces: Sequence[Piece], now: int) -> None:
        self.pieces, self.now = pieces, now
        self.marks = {piece.id: piece.superseded for piece in pieces}
        self.ends = {piece.id: piece.expires for piece in pieces}
        self.out = Tidied()

    def free(self, id_: str) -> bool:
        """Whether an item is shown, or only stands behind a merged one."""
        return self._stands(id_) and self.ends[id_] > self.now

    def _stands(self, id_: str) -> bool:
        return self.marks[id_] is None or merged(self.marks[id_])

    def follow(self, base: Sequence[Piece]) -> None:
        """Let parts step back for what the worker put in the place of their merged item."""
        for piece in base:
            behind = self.marks[piece.id]
            instead = self.marks.get(behind) if behind is not None and merged(behind) else None
            if instead is not None and instead != SPLIT and not merged(instead):
                self.marks[piece.id], self.ends[piece.id] = instead, min(self.ends[piece.id], self.now)
                self.out.counts["superseded"] += 1

    def supersede(self, base: Sequence[Piece]) -> None:
        """Let the newest event speak."""
        for id_, instead in overtaken(base).items():
            self.marks[id_], self.ends[id_] = None, max(self.ends[id_], self.ends[instead.id])
            self.out.counts["restored"] += 1
        for id_, newer in contradicted(piece for piece in base if self._stands(piece.id)).items():
            self.marks[id_], self.ends[id_] = newer, min(self.ends[id_], self.now)
            self.out.counts["superseded"] += 1

    def merge(self, alive: Sequence[Piece], wanted: dict[str, Merged]) -> None:
        """Put parts behind their merged item, take apart what does not hold any more."""
        of = {part: id_ for id_, one in wanted.items() for part in one.parts}
        for piece in alive:
            mark = of.get(piece.id)
            if self.marks[piece.id] != mark:
                self.marks[piece.id] = mark
                self.out.counts["restored" if mark is None else "parts"] += 1
        known = {piece.id for piece in self.pieces}
        self.out.made = {id_: one for id_, one in wanted.items() if id_ not in known}
        self.out.counts["merged"] += len(self.out.made)
        for piece in self.pieces:
            if piece.id in wanted and self.marks[piece.id] is not None:
                self.marks[piece.id], self.ends[piece.id] = None, wanted[piece.id].expires
                self.out.counts["merged"] += 1
            elif piece.id in wanted and self.ends[piece.id] != wanted[piece.id].expires:
                self.ends[piece.id] = wanted[piece.id].expires
                self.out.counts["ended"] += 1
            elif merged(piece.id) and piece.id not in wanted and self.free(piece.id) and self.marks[piece.id] is None:
                heir = next((of[source] for source, _, _ in piece.sources if source in of), SPLIT)
                self.marks[piece.id], self.ends[piece.id] = heir, self.now
                self.out.counts["split"] += heir == SPLIT

    def end(self) -> None:
        """Give an end to all that stepped back for good."""
        for piece in self.pieces:
            behind = merged(self.marks[piece.id]) and not merged(piece.id)
            if self.marks[piece.id] is not None and not behind and self.ends[piece.id] > self.now:
                self.ends[piece.id] = self.now
                self.out.counts["ended"] += 1

    def settled(self, grace: int) -> Tidied:
        """The differences, and what is past its grace.

        A facet published of owners that share only facets is what the next one is compared with:
        it stays until another one stands in its place.
        """
        out = self.out
        for piece in self.pieces:
            over = self.ends[piece.id] <= self.now - grace
            if over and (piece.level >= Level.RECORDS or self.marks[piece.id] is not None):
                out.deleted.append(piece.id)
                continue
            if self.marks[piece.id] != piece.superseded:
                out.marks[piece.id] = self.marks[piece.id]
            if self.ends[piece.id] != piece.expires:
                out.ends[piece.id] = self.ends[piece.id]
            if self.marks[piece.id] is None and self.ends[piece.id] > self.now:
                out.current.append(piece.id)
        out.current += out.made
        out.counts["expired"] += len(out.deleted)
        out.counts = Counter({kind: count for kind, count in out.counts.items() if count})
        return out


__all__ = ["Tidied", "merged", "tidy"]
