"""A lineage as a tree on a terminal: one line per node, generations below each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from collab_layer.types.injection import Received
    from collab_layer.types.lineage import Lineage, SourceView


def tree(lineage: Lineage) -> Tree:
    """The whole of it; texts of stores are taken literally."""
    from rich.text import Text  # rich loads only when something is printed
    from rich.tree import Tree

    said = lineage.text or "its wording is not yours to read"
    facts = [f"trust {lineage.trust:.2g}", f"made by {lineage.made_by or 'its owner'}"]
    if lineage.at is not None:
        facts.append(f"{lineage.at:%Y-%m-%d %H:%M} UTC")
    facts += [] if lineage.state == "live" else [lineage.state]
    drawn = Tree(Text(f"{lineage.kind} {lineage.id}: {said}\n({', '.join(facts)})"))
    _below(drawn, lineage.sources, lineage.more)
    return drawn


def _below(drawn: Tree, sources: Sequence[SourceView], more: int) -> None:
    from rich.text import Text

    for node in sources:
        _below(drawn.add(_line(node)), node.sources, 0 if node.same_as is not None else node.more)
    if more:
        drawn.add(Text(f"and {more} more"))


def _line(node: SourceView) -> Text:
    from rich.text import Text

    name = f"{node.number}. {node.kind}" if node.id == "withheld" else f"{node.number}. {node.kind} {node.id}"
    facts = [node.principal, f"weight {node.weight:.2g}"]
    if node.same_as is not None:
        return Text(f"{name} ({', '.join(facts)}): the same as {node.same_as}")
    facts += [f"in {node.ref.backend} as {node.ref.id}"] if node.ref is not None else []
    if node.maker is not None:
        facts.append(f"rules {node.maker.rules}" if node.maker.rules else f"{node.maker.model}, {node.maker.prompt}")
    facts += [f"trust {node.trust:.2g}"] if node.trust < 1 else []
    facts += [f"{node.at:%Y-%m-%d %H:%M}"] if node.at is not None else []
    facts += [] if node.state == "live" else [node.state]
    facts += [f"received by {_who(node.received)}"] if node.received else []
    return Text(f"{name} ({', '.join(facts)})" + (f": {node.quote}" if node.quote else ""))


def _who(received: Sequence[Received]) -> str:
    named = [f"{one.entity} {one.last:%Y-%m-%d %H:%M}" for one in received if one.entity is not None and one.last]
    return ", ".join(named) if named else f"{sum(one.readers for one in received)} readers"
