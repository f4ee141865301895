"""What `explain` answers: an item and, as a tree, everything that it rests on.

Values only. What a reader may not know is in it as `withheld`, under a pseudonym that is the same for
one reader whenever it asks about one item, and another for everybody else and in every other item.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from collab_layer.types.entity import MemoryRef, Value
from collab_layer.types.injection import Received
from collab_layer.types.time import UtcTime

MAX_DEPTH, MAX_WIDTH, MAX_NODES = 32, 1_000, 2_000
"""Most generations, sources of one item, and nodes in all that one answer holds."""

NodeKind = Literal["facet", "lesson", "update", "notice", "record", "interaction", "holding", "bundle", "unknown"]
"""A derived item; a version of a memory; something said or done; "this owner holds that thing"; a bundle of
another organisation."""
State = Literal["live", "expired", "superseded", "quarantined", "erased", "withheld"]
"""How it stands now; `withheld` where that is not the reader's to know."""


class Maker(Value):
    """What worded an item: rules by their hash, or a model and the version of its prompt."""

    rules: str | None = None
    model: str | None = None
    prompt: str | None = None


class SourceView(Value):
    """One source as the reader may see it, with its own sources.

    Attributes:
        id: What `explain` and `forget` take; `withheld` where the reader may not know it.
        principal: Who contributed it, by name or as `peer:…`.
        weight: Its share of what it supports, in [0, 1]; where it is withheld, of all that its principal
            has there, in tenths.
        quote: Its words, where they may be quoted.
        number: Its place in the whole tree, from 1; 0 is the item that was asked about.
        depth: Generations from that item, >= 1.
        kind: What it is.
        ref: The store and the memory in it, for a record of a store.
        maker: What worded it, for a derived item.
        trust: The minimum over its own lineage, in [0, 1].
        at: When it was said, or made.
        state: How it stands now.
        received: Who was handed this very node: by name for the operator, in numbers for others.
        sources: What it rests on itself, the strongest first.
        more: Sources that are not shown, since the tree is deep or wide enough; 1 for any number if some are withheld.
        same_as: The number of the node that is the same and has its sources; None for the first.
    """

    id: str
    principal: str
    weight: float
    quote: str | None = None
    number: int = 0
    depth: int = 1
    kind: NodeKind = "unknown"
    ref: MemoryRef | None = None
    maker: Maker | None = None
    trust: float = 1.0
    at: UtcTime | None = None
    state: State = "live"
    received: tuple[Received, ...] = ()
    sources: tuple[SourceView, ...] = ()
    more: int = 0
    same_as: int | None = None


class Lineage(Value):
    """The item and every source behind it, through all generations.

    Attributes:
        id: The item asked about.
        kind: `interaction`, `record`, `facet`, `lesson`, `update`, `notice` or `foreign`.
        text: Its wording, where the reader may see it.
        confidence: Support, for derived items.
        trust: The minimum over the lineage, in [0, 1].
        sources: What it rests on, as a tree; each principal's weight is a share in [0, 1].
        more: Direct sources that are not shown.
        nodes: Nodes in the tree, without the item itself.
        depth: Generations shown.
        made_by: Rules or model that made it, as one line.
        maker: The same in parts.
        at: When it was made.
        expires: When it stops being shown, if it does.
        state: How it stands now.
        related: Ids of items that share links or words with it, as of last night, strongest first;
            those that the reader may see.
        superseded_by: The item that stands in its place, if it stepped back for one.
        received: Who received it, or what was derived of it: by name for the operator, in numbers for others.
    """

    id: str
    kind: str
    text: str | None = None
    confidence: float | None = None
    trust: float = 1.0
    sources: tuple[SourceView, ...] = ()
    more: int = Field(default=0, ge=0)
    nodes: int = 0
    depth: int = 0
    made_by: str = ""
    maker: Maker | None = None
    at: UtcTime | None = None
    expires: UtcTime | None = None
    state: State = "live"
    related: tuple[str, ...] = ()
    superseded_by: str | None = None
    received: tuple[Received, ...] = ()


__all__ = ["MAX_DEPTH", "MAX_NODES", "MAX_WIDTH", "Lineage", "Maker", "NodeKind", "SourceView", "State"]
