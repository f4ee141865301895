"""A derived item to the tree of everything that it rests on, as one reader may know it.

load:   generation by generation, a few queries each, however many nodes there are;
save:   nothing.

A node that several others rest on stands once, where it is nearest to the item asked about; its other
places refer to it by number. Every node is judged by itself: what the reader's grants do not cover now
is `withheld`, with a pseudonym, a rounded share, and neither words nor times. All that one contributor has
behind the same item is then one node: how many records it has is its own, as is what else it is behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from collab_layer.flows import view
from collab_layer.flows.received import Receivers, received_each
from collab_layer.flows.tools import Tools
from collab_layer.governance.lineage import maker
from collab_layer.graph import injections, names
from collab_layer.graph import lineage as rows
from collab_layer.graph.cards import CardText, texts
from collab_layer.graph.derived import ERASED, FORGOTTEN
from collab_layer.graph.ids import number_of, pair_of
from collab_layer.graph.lineage import Head, Record, Said, Source
from collab_layer.graph.store import Opened
from collab_layer.plugins.specs import Leaving
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.lineage import MAX_NODES, MAX_WIDTH, NodeKind, SourceView, State
from collab_layer.types.scope import Level, Scope
from collab_layer.types.time import moment

DERIVED: dict[str, NodeKind] = {"facet": "facet", "lesson": "lesson", "update": "update", "notice": "notice"}
OTHERS: dict[str, NodeKind] = {"c": "record", "i": "interaction", "h": "holding"}
WITHHELD = "withheld"


@dataclass(slots=True)
class Node:
    """One place in the tree; of the item asked about, number 0, there is no source."""

    source: Source
    number: int = 0
    depth: int = 0
    same_as: int | None = None
    children: list[Node] = field(default_factory=list["Node"])
    more: int = 0


@dataclass(frozen=True, slots=True)
class Grown:
    """A tree: what the item rests on, what of it is not shown, how many nodes and generations."""

    sources: tuple[SourceView, ...]
    more: int
    nodes: int
    depth: int


def grow(tools: Tools, opened: Opened, scope: Scope, id_: str, depth: int, width: int) -> Grown:
    """The tree above an item that the reader may see, cut to so many generations and sources of each."""
    root = Node(Source(id_, 0, 1.0))
    nodes = _climb(opened, root, depth, width if scope.principal is None else MAX_WIDTH)
    facts = _facts(tools, opened, scope, id_, nodes)
    if scope.principal is not None:
        nodes = _folded(facts, root, width)
    sources = tuple(_shown(facts, node) for node in root.children)
    return Grown(sources, root.more, len(nodes), max((node.depth for node in nodes), default=0))


def alone(tools: Tools, opened: Opened, scope: Scope, source: Source) -> SourceView:
    """One record by itself, as the reader may know it."""
    node = Node(source, 1, 1)
    return _shown(_facts(tools, opened, scope, source.id, [node]), node)


def _climb(opened: Opened, root: Node, depth: int, width: int) -> list[Node]:
    """Hang every node below its parent; the nearest place of each source comes first."""
    connection, tenant = opened.reading.connection, opened.reading.tenant
    first, nodes = {root.source.id: 0}, list[Node]()
    front = [root]
    while front:
        found = rows.sources(connection, tenant, [node.source.id for node in front], width)
        below: list[Node] = []
        for parent in front:
            listed, total = found.get(parent.source.id, ([], 0))
            listed = listed[: MAX_NODES - len(nodes)] if parent.depth < depth else []
            parent.more = total - len(listed)
            for source in listed:
                child = Node(source, len(nodes) + 1, parent.depth + 1, first.get(source.id))
                nodes.append(child)
                parent.children.append(child)
                if child.same_as is None:
                    first[source.id] = child.number
                    below += [child] if source.id.startswith("d") else []
        front = below
    return nodes


def _folded(facts: _Facts, root: Node, width: int) -> list[Node]:
    """One node for each contributor that is withheld, the strongest `width` below each item, numbered anew."""
    nodes: list[Node] = []
    front = [root]
    while front:
        for parent in front:
            _fold(facts, parent, width)
            nodes += parent.children
        front = [child for parent in front for child in parent.children]
    numbers = {node.number: place for place, node in enumerate(nodes, 1)}
    for place, node in enumerate(nodes, 1):
        node.number, node.same_as = place, None if node.same_as is None else numbers.get(node.same_as)
    return nodes


def _fold(facts: _Facts, parent: Node, width: int) -> None:
    kept, withheld = list[Node](), dict[int, Node]()
    for child in parent.children:
        if not facts.folds(child.source):
            kept.append(child)
            continue
        first = withheld.setdefault(child.source.principal, child)
        if first is not child:
            first.source = replace(first.source, weight=first.source.weight + child.source.weight)
    for first in withheld.values():
        first.same_as = None
    kept += withheld.values()
    kept.sort(key=lambda one: (-facts.weight(one.source), str(facts.name(one.source))))
    more = parent.more + max(0, len(kept) - width)
    parent.children, parent.more = kept[:width], min(more, 1) if withheld else more


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of every node, and what the reader may know; `item` was asked about."""

    opened: Opened
    scope: Scope
    item: str
    salt: str
    heads: Mapping[str, Head]
    behind: Mapping[str, set[int]]
    cards: Mapping[int, CardText]
    records: Mapping[int, Record]
    said: Mapping[int, Said]
    there: set[str]
    quotes: Mapping[str, str]
    received: Mapping[str, Receivers]

    def folds(self, source: Source) -> bool:
        """Whether it is withheld, and nothing stands below it."""
        return not source.id.startswith("d") and not self.may_know(source)

    def name(self, source: Source) -> Entity:
        """Its principal as the reader may know it."""
        if self.may_know(source):
            return view.entity_of(self.opened.reading, source.principal)
        return view.pseudonym(self.salt, self.opened.reader, self.item, source.principal)

    def weight(self, source: Source) -> float:
        """Its share as the reader may know it."""
        return source.weight if self.may_know(source) else view.coarse(source.weight)

    def may_know(self, source: Source) -> bool:
        """Whether the reader may know which source it is; the operator may."""
        if self.scope.principal is None:
            return True
        seen, head = self.opened.reading.audience, self.heads.get(source.id)
        if head is None:
            return not source.id.startswith("d") and seen.level(source.principal) >= Level.RECORDS
        everybody = self.behind.get(source.id, set())
        return head.owner == self.opened.reader and all(seen.level(one) >= head.level for one in everybody)


def _facts(tools: Tools, opened: Opened, scope: Scope, item: str, nodes: Sequence[Node]) -> _Facts:
    connection, tenant = opened.reading.connection, opened.reading.tenant
    every = {node.source.id: node.source for node in nodes}
    derived = [id_ for id_ in every if id_.startswith("d")]
    cards, spoken = _numbers(every, "c"), _numbers(every, "i")
    facts = _Facts(
        opened=opened,
        scope=scope,
        item=item,
        salt=names.salt(connection, tenant),
        heads=rows.heads(connection, tenant, derived),
        behind=rows.principals(connection, tenant, derived),
        cards=texts(connection, tenant, cards),
        records=rows.records(connection, tenant, cards),
        said=rows.said(connection, tenant, spoken),
        there=injections.known(connection, tenant, list(every)),
        quotes={},
        received={},
    )
    known = [source for source in every.values() if facts.may_know(source)]
    quotes, received = _quotes(tools, facts, known), received_each(tools, connection, scope, [one.id for one in known])
    return replace(facts, quotes=quotes, received=received)


def _numbers(ids: Iterable[str], letter: str) -> list[int]:
    return [number for id_ in ids if id_[0] == letter and (number := number_of(id_)) is not None]


def _quotes(tools: Tools, facts: _Facts, known: Sequence[Source]) -> dict[str, str]:
    """Words of the sources, as their owners let them go; none that are held back."""
    reading = facts.opened.reading
    held = rows.held_back(reading.connection, reading.tenant, list(facts.said))
    found: dict[str, tuple[int, str]] = {}
    for source in known:
        text = _words(facts, source, held)
        if text:
            found[source.id] = (source.principal, text)
    reader = facts.scope.principal
    if reader is None:
        return {id_: text for id_, (_, text) in found.items()}
    leaving = [Leaving(view.entity_of(reading, whose), reader, text) for whose, text in found.values()]
    passed = zip(found, tools.leaving(leaving), strict=True)
    return {id_: text for id_, text in passed if text is not None}


def _words(facts: _Facts, source: Source, held: set[int]) -> str | None:
    head, number = facts.heads.get(source.id), number_of(source.id) or 0
    if head is not None:
        return head.text
    index = facts.opened.reading.index
    if source.id.startswith("h") and (pair := pair_of(source.id)) is not None and index.named(pair[1]):
        return f"has {index.displays[pair[1]]}"
    if source.id.startswith("c") and number in facts.cards:
        return facts.cards[number].text
    return (
        facts.said[number].text if source.id.startswith("i") and number in facts.said and number not in held else None
    )


def _shown(facts: _Facts, node: Node) -> SourceView:
    source, head = node.source, facts.heads.get(node.source.id)
    kind = DERIVED.get(head.kind, "unknown") if head is not None else OTHERS.get(source.id[:1], "unknown")
    trust = 1.0 if head is None else head.trust
    below = tuple(_shown(facts, child) for child in node.children)
    place = {"number": node.number, "depth": node.depth, "same_as": node.same_as, "more": node.more}
    if not facts.may_know(source):
        kind = kind if source.id.startswith("d") else "record"
        whose, weight = str(facts.name(source)), facts.weight(source)
        told = {"principal": whose, "weight": weight, "kind": kind, "trust": trust, "state": WITHHELD}
        return SourceView.model_validate({"id": WITHHELD, "sources": below, **told, **place})
    at, ref = _when_and_where(facts, source)
    return SourceView.model_validate(
        {
            "id": source.id,
            "principal": str(facts.name(source)),
            "weight": source.weight,
            "quote": facts.quotes.get(source.id),
            "kind": kind,
            "ref": ref,
            "maker": None if head is None else maker(head.made_by),
            "trust": trust,
            "at": None if at is None else moment(at),
            "state": _state(facts, source),
            "received": facts.received.get(source.id, ()),
            "sources": below,
            **place,
        }
    )


def _when_and_where(facts: _Facts, source: Source) -> tuple[int | None, MemoryRef | None]:
    head, number = facts.heads.get(source.id), number_of(source.id) or 0
    if head is not None:
        return head.at, None
    if source.id.startswith("c") and number in facts.records:
        card = facts.cards.get(number)
        return facts.records[number].at, None if card is None else _ref(card.backend, card.native_id, card.version)
    if source.id.startswith("i") and number in facts.said:
        one = facts.said[number]
        return one.at, _ref(one.backend, one.native_id, one.version)
    return None, None


def _ref(backend: str | None, native_id: str | None, version: str | None) -> MemoryRef | None:
    return MemoryRef(backend=backend, id=native_id or "", version=version or "") if backend else None


def _state(facts: _Facts, source: Source) -> State:
    if source.id not in facts.there:
        return "erased"
    head, number = facts.heads.get(source.id), number_of(source.id) or 0
    if head is not None:
        return state_of(head.superseded, head.expires, facts.opened.reading.now)
    record = facts.records.get(number) if source.id.startswith("c") else None
    if record is None:
        return "live"
    if record.held:
        return "quarantined"
    return "superseded" if record.over or record.valid_to <= facts.opened.reading.now else "live"


def state_of(superseded: str | None, expires: int, now: int) -> State:
    """How a derived item stands."""
    if superseded in (ERASED, FORGOTTEN):
        return "erased"
    if superseded is not None:
        return "superseded"
    return "expired" if expires <= now else "live"


__all__ = ["Grown", "grow", "state_of"]
