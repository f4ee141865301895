"""What nightly upkeep looks at, makes and reports."""

from __future__ import annotations

from dataclasses import dataclass

from collab_layer.types.entity import Value
from collab_layer.types.scope import Level

MERGED = "dm"
"""First letters of the ids of merged items; those of all other derived items are followed by a digit or a to f."""
SPLIT = "split"
"""Mark of a merged item that was taken apart again."""


@dataclass(frozen=True, slots=True)
class Happening:
    """The one event that an item tells of.

    Attributes:
        actor: Who did it, dense id.
        target: What it was done to; None where there is none, and where it is only a subject.
        verb: What was done.
        ended: Whether it was said how it ended.
        at: When it happened, microseconds.
        number: Rises with the order of recording, also at the same moment.
        ref: (backend, native id) of the memory that reports it, if any.
    """

    actor: int
    target: int | None
    verb: str
    ended: bool
    at: int
    number: int
    ref: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """One derived item of one reader, as upkeep sees it.

    Attributes:
        level: The weakest level it rests on.
        sources: (source, principal, share of the support in [0, 1]).
        at, expires: When it was made and when it stops being shown, microseconds.
        superseded: The item that stands in its place, or a mark; None while it stands itself.
        readable: Whether its reader may read everybody behind it, whatever it reads for.
        event: What it tells of, where that is one event of one principal.
        mergeable: Whether its words may be told again in another item.
    """

    id: str
    kind: str
    key: str
    text: str
    confidence: float
    trust: float
    hop: int
    level: Level
    links: tuple[int, ...]
    sources: tuple[tuple[str, int, float], ...]
    at: int
    expires: int
    superseded: str | None = None
    readable: bool = True
    event: Happening | None = None
    mergeable: bool = True

    @property
    def principals(self) -> frozenset[int]:
        """Everyone behind it."""
        return frozenset(principal for _, principal, _ in self.sources)


@dataclass(frozen=True, slots=True)
class Merged:
    """Several items of one kind that say the same, as one.

    Attributes:
        parts: Ids of the items it stands for, sorted.
        worded: The part whose wording it has.
        sources: The union of theirs, and the parts themselves with a share of 0.
    """

    parts: tuple[str, ...]
    worded: str
    kind: str
    key: str
    text: str
    confidence: float
    trust: float
    hop: int
    links: tuple[int, ...]
    sources: tuple[tuple[str, int, float], ...]
    at: int
    expires: int


class Consolidation(Value):
    """What one run of `consolidate` changed, or would change.

    Attributes:
        dry_run: Nothing was changed; the counts are those of a real run.
        resumed: It went on where an earlier run of the same day had stopped; the counts are of both.
        owners: Readers whose derived items were looked at.
        items: Their derived items.
        nodes: Entities whose edges were looked at.
        merged: Items made or shown again that each stand for several with one meaning.
        parts: Items that now stand behind a merged one.
        split: Merged items that do not hold any more and that no other one replaces.
        restored: Items shown again, since what stood in their place is gone or may not be read.
        superseded: Items that a newer event contradicts.
        ended: Items that got another end: superseded earlier, by the worker or by a read, or merged
            items one of whose parts was said again.
        expired: Items deleted, words and lineage, some time after their end.
        related, unrelated: Relations between items written, and removed.
        queued, retracted: Deliveries to stores that a worker is to make, and to take back.
        edges: Edges removed or ended, since their record was erased or does not hold any more.
        packs: Packed adjacency arrays that disagreed with the edges; made anew.
        degrees: Counts of distinct targets that were wrong; put right.
        pages: Transactions it took; 0 in a dry run.
        seconds: How long this call took.
    """

    dry_run: bool = False
    resumed: bool = False
    owners: int = 0
    items: int = 0
    nodes: int = 0
    merged: int = 0
    parts: int = 0
    split: int = 0
    restored: int = 0
    superseded: int = 0
    ended: int = 0
    expired: int = 0
    related: int = 0
    unrelated: int = 0
    queued: int = 0
    retracted: int = 0
    edges: int = 0
    packs: int = 0
    degrees: int = 0
    pages: int = 0
    seconds: float = 0.0

    @property
    def changes(self) -> dict[str, int]:
        """The counts of what was changed, by kind; empty if nothing was."""
        found = {name: getattr(self, name) for name in CHANGES}
        return {name: count for name, count in found.items() if count}


CHANGES = (
    "merged",
    "parts",
    "split",
    "restored",
    "superseded",
    "ended",
    "expired",
    "related",
    "unrelated",
    "queued",
    "retracted",
    "edges",
    "packs",
    "degrees",
)
"""Fields of a report that count changes."""

__all__ = ["CHANGES", "MERGED", "SPLIT", "Consolidation", "Happening", "Merged", "Piece"]
