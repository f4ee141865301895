"""One reader's derived items: read in one snapshot, tidied by the stages, ready to be written.

load:   its items, the events they tell of, whom it may read;
stages: consolidate, related, quarantine;
save:   `upkeep.apply`, in a transaction that first checks that nothing moved meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import Audience, GrantRow, Reader, audience
from collab_layer.graph import derived, happenings, merged, names, policy, upkeep
from collab_layer.graph.derived import Item
from collab_layer.graph.merged import DELIVERED, RETRACTING, WAITING
from collab_layer.graph.upkeep import Changes, Stamp
from collab_layer.stages.consolidate import Tidied, tidy
from collab_layer.stages.quarantine import quarantined
from collab_layer.stages.related import Mention, related
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import EVERYONE, Level
from collab_layer.types.time import DAY
from collab_layer.types.upkeep import MERGED, Merged, Piece

GRACE_DAYS = 30
"""How long after its end an item keeps its words."""


@dataclass(frozen=True, slots=True)
class Desk:
    """One snapshot of a tenant, for the readers of one page.

    Attributes:
        readers: Who each of them is to grants.
        grants: By the name of their audience.
        fence: Generation and policy of the snapshot.
        stores: Where updates are delivered to.
        aliases: Principals that count as another one.
    """

    connection: Connection
    tenant: str
    now: int
    names: Sequence[str]
    readers: Mapping[int, Reader]
    grants: Mapping[str, Sequence[GrantRow]]
    fence: tuple[int, int]
    delta: float
    salt: str
    stores: Sequence[str]
    aliases: Mapping[int, int]

    def audience(self, owner: int) -> Audience:
        """What a reader may use, whatever it reads for."""
        who = self.readers[owner]
        return audience(
            (grant for name in (EVERYONE, *who.names) for grant in self.grants.get(name, ())), who, self.now
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to change for one reader, and what that rests on."""

    owner: int
    fence: tuple[int, int]
    before: Stamp
    changes: Changes
    counts: Counter[str]


def open_desk(tools: Tools, connection: Connection, tenant: str, owners: Sequence[int], now: int) -> Desk:
    """Read what all of these readers need."""
    index = tools.store.index(tenant)
    with index.lock:  # only for this: others read meanwhile
        index.refresh(connection)
        known = index.names
        named = [owner for owner in owners if index.named(owner)]
        who = policy.readers(connection, tools.store.adjacency, tenant, named, None, known)
    grants: dict[str, list[GrantRow]] = {}
    for grant in policy.rows(connection, tenant, now):
        grants.setdefault(grant.audience, []).append(grant)
    return Desk(
        connection=connection,
        tenant=tenant,
        now=now,
        names=known,
        readers={one.id: one for one in who},
        grants=grants,
        fence=upkeep.fence(connection, tenant),
        delta=policy.sharing(connection, tenant).delta,
        salt=names.salt(connection, tenant),
        stores=tools.delivered_to(tenant),
        aliases=index.aliases,
    )


def plan(desk: Desk, owner: int) -> Plan:
    """Decide what changes for one reader; nothing for one that has no name any more."""
    before = upkeep.stamp(desk.connection, desk.tenant, owner)
    if owner not in desk.readers:
        return Plan(owner, desk.fence, before, Changes(), Counter())
    held = upkeep.held(desk.connection, desk.tenant, before)
    pieces = _pieces(desk, owner, held)
    items = {item.id: item for item, _ in held}
    tidied = _tidied(desk, owner, pieces)
    changes = Changes(
        made=[_item(desk, owner, id_, one, items[one.worded]) for id_, one in sorted(tidied.made.items())],
        marks=_marks(tidied, {piece.id: piece for piece in pieces}),
        deleted=tidied.deleted,
    )
    items.update((item.id, item) for item in changes.made)
    _relate(desk, items, tidied, changes)
    _deliver(desk, items, dict((item.id, mark) for item, mark in held), tidied, changes)
    return Plan(owner, desk.fence, before, changes, _counts(tidied, changes, len(held)))


def _pieces(desk: Desk, owner: int, held: Sequence[tuple[Item, str | None]]) -> list[Piece]:
    seen = desk.audience(owner)
    telling = [item for item, _ in held if item.level >= Level.RECORDS and not merged.is_merged(item.id)]
    events = happenings.happenings(desk.connection, desk.tenant, telling)
    return [
        Piece(
            id=item.id,
            kind=item.kind.value,
            key=item.key,
            text=item.text,
            confidence=item.confidence,
            trust=item.trust,
            hop=item.hop,
            level=item.level,
            links=item.links,
            sources=item.sources,
            at=item.at,
            expires=item.expires,
            superseded=mark,
            readable=all(seen.level(principal) >= item.level for principal in item.principals),
            event=events.get(item.id),
        )
        for item, mark in held
    ]


def _tidied(desk: Desk, owner: int, pieces: Sequence[Piece]) -> Tidied:
    """Words that would be held back today are not told again in a merged item."""

    def name(one: Merged) -> str:
        whole = [*one.parts, f"{one.confidence:.9f}"]
        id_ = derived.item_id(desk.salt, desk.names[owner], FacetKind(one.kind), one.key, one.text, whole)
        return MERGED + id_[1:31]

    def decide(of: Sequence[Piece]) -> Tidied:
        return tidy(of, now=desk.now, delta=desk.delta, grace=GRACE_DAYS * DAY, name=name, aliases=desk.aliases)

    first = decide(pieces)
    bad = {part for one in first.made.values() if quarantined(one.text) for part in one.parts}
    return decide([replace(piece, mergeable=piece.id not in bad) for piece in pieces]) if bad else first


def _item(desk: Desk, owner: int, id_: str, one: Merged, worded: Item) -> Item:
    return Item(
        id=id_,
        owner=owner,
        kind=FacetKind(one.kind),
        key=one.key,
        text=one.text,
        confidence=one.confidence,
        level=Level.RECORDS,
        links=one.links,
        sources=one.sources,
        made_by=worded.made_by,
        hop=one.hop,
        trust=one.trust,
        at=one.at,
        expires=one.expires,
    )


def _marks(tidied: Tidied, pieces: Mapping[str, Piece]) -> dict[str, tuple[str | None, int]]:
    return {
        id_: (tidied.marks.get(id_, pieces[id_].superseded), tidied.ends.get(id_, pieces[id_].expires))
        for id_ in sorted({*tidied.marks, *tidied.ends})
    }


def _relate(desk: Desk, items: Mapping[str, Item], tidied: Tidied, changes: Changes) -> None:
    """Replace the reader's relations as a set; what is as it was is left alone."""
    mentions = [Mention(id_, frozenset(items[id_].links), items[id_].text) for id_ in sorted(tidied.current)]
    wanted = related(mentions)
    stored = upkeep.relations_of(desk.connection, desk.tenant, list(items))
    changes.related = {pair: weight for pair, weight in wanted.items() if stored.get(pair) != weight}
    changes.unrelated = sorted(stored.keys() - wanted.keys())


def _deliver(
    desk: Desk, items: Mapping[str, Item], before: Mapping[str, str | None], tidied: Tidied, changes: Changes
) -> None:
    """Take back what is shown no more; send what is shown instead, where that was.

    Of lessons and facets only what is deleted: the others are offered anew as they are read.
    """
    rows = upkeep.deliveries_of(desk.connection, desk.tenant, list(items))
    kept = {id_ for id_, item in items.items() if item.kind is not FacetKind.UPDATE} - {*tidied.deleted}
    there: dict[str, set[str]] = {}
    for (item, store), (state, _) in rows.items():
        if state in (WAITING, DELIVERED):
            there.setdefault(item, set()).add(store)
    over = {item for (item, _), (state, _) in rows.items() if state != RETRACTING} - kept - {*tidied.current}
    changes.retracted = sorted(over)
    wanted: set[tuple[str, str]] = set()
    shown = [id_ for id_, mark in tidied.marks.items() if mark is None]
    for id_ in (*tidied.made, *shown):
        parts = [source for source, _, _ in items[id_].sources if source in items]
        instead = parts if merged.is_merged(id_) else [before[id_] or ""]
        wanted |= {(id_, store) for part in instead for store in there.get(part, ())}
        wanted |= {(id_, store) for store in (() if merged.is_merged(id_) else desk.stores)}
    changes.queued = [(id_, store, desk.now) for id_, store in sorted(wanted) if store not in there.get(id_, ())]


def _counts(tidied: Tidied, changes: Changes, items: int) -> Counter[str]:
    found = Counter(tidied.counts)
    found.update(owners=1, items=items, related=len(changes.related), unrelated=len(changes.unrelated))
    found.update(queued=len(changes.queued), retracted=len(changes.retracted))
    return found
