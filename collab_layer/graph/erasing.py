"""Rows removed with everything that rests on them, in the caller's transaction.

Order: raise the generation (work in flight is planned anew), find the sources, drop the
derived items that rest on them through all generations, then the sources themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, func, select, update

from collab_layer.graph import (
    access,
    aliases,
    considered,
    foreign,
    injections,
    item_edges,
    limits,
    notices,
    policy,
    rankings,
    spans,
    syntheses,
)
from collab_layer.graph import cards as card_rows
from collab_layer.graph import derived as derived_rows
from collab_layer.graph.adjacency import Adjacency
from collab_layer.graph.among import among, pages
from collab_layer.graph.cards import card_id
from collab_layer.graph.ids import interaction_id, number_of
from collab_layer.graph.names import bump, ensure, share_with_erasure
from collab_layer.graph.reader import holding_id
from collab_layer.graph.tables import (
    adjacency,
    audit,
    cards,
    cursors,
    derived,
    edges,
    entities,
    grants,
    interactions,
    lineage,
    outbox,
    released,
    removals,
    tenants,
    work,
)

_CHUNK = 400


@dataclass(slots=True)
class Removed:
    """Counts by table, and the ids that a receipt lists as hashes, by kind."""

    rows: dict[str, int] = field(default_factory=dict[str, int])
    ids: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    owners: dict[tuple[str, str], set[int]] = field(default_factory=dict[tuple[str, str], set[int]])
    """Memories that lie in a store, by (store, native id): who told of them."""
    entity: int | None = None
    """Dense id of the entity that is erased whole."""

    def add(self, table: str, count: int) -> None:
        """Count rows."""
        if count:
            self.rows[table] = self.rows.get(table, 0) + count

    def name(self, kind: str, ids: Iterable[str]) -> None:
        """Note what is erased."""
        self.ids.setdefault(kind, set()).update(ids)

    def name_record(self, backend: str | None, native_id: str | None, owner: int) -> None:
        """Note a memory that lies in a store."""
        if backend and native_id:
            self.name("records", [f"{backend}:{native_id}"])
            self.owners.setdefault((backend, native_id), set()).add(owner)


def fence(connection: Connection, tenant: str) -> int:
    """Raise the tenant's generation; every process reloads, every plan in flight is dropped.

    Edges between things rest on everybody at once: they go, and are made again without what is erased.
    """
    share_with_erasure(connection, tenant, erasing=True)
    ensure(connection, tenant)
    generation = connection.execute(  # the tenant's row before all others, or it and who makes the edges wait in a ring
        update(tenants)
        .where(tenants.c.tenant == tenant)
        .values(generation=tenants.c.generation + 1, policy=tenants.c.policy + 1, rev=tenants.c.rev + 1)
        .returning(tenants.c.generation)
    ).scalar_one()
    item_edges.drop(connection, tenant)
    return generation


def interactions_gone(
    connection: Connection, adjacent: Adjacency, tenant: str, numbers: Sequence[int], removed: Removed, now: int
) -> None:
    """Remove interactions, their edges, cards and outbox rows, and all that was derived from them.

    What they had taken the place of holds again, as if they had never been said.
    """
    i, e, c, o = interactions.c, edges.c, cards.c, outbox.c
    for part in pages(numbers):
        mine = (i.tenant == tenant) & among(connection, i.id, part)
        rows = connection.execute(select(i.id, i.actor, i.target, i.backend, i.native_id).where(mine)).all()
        told = (c.tenant == tenant) & among(connection, c.interaction, part)
        made = connection.execute(select(c.id, c.owner).where(told)).all()
        lines = (e.tenant == tenant) & among(connection, e.interaction, part)
        touched = list(connection.execute(select(e.src).where(lines).distinct()).scalars())
        sources = [interaction_id(row.id) for row in rows] + [card_id(card.id) for card in made]
        sources += [holding_id(row.actor, row.target) for row in rows if row.target is not None]
        owners = frozenset([row.actor for row in rows] + [card.owner for card in made])
        removed.name("interactions", (interaction_id(row.id) for row in rows))
        for row in rows:
            removed.name_record(row.backend, row.native_id, row.actor)
        derived_gone(connection, tenant, sources, owners, removed)
        cards_gone(connection, tenant, [card.id for card in made], removed)
        removed.add("edges", connection.execute(delete(edges).where(lines)).rowcount)
        adjacent.unfold(connection, tenant, touched)
        removed.add("entities", _orphans(connection, tenant, touched))
        connection.execute(delete(outbox).where(o.tenant == tenant, among(connection, o.interaction, part)))
        held_again = spans.replaced_by(connection, tenant, part)
        removed.add("interactions", connection.execute(delete(interactions).where(mine)).rowcount)
        replaced = (i.tenant == tenant) & among(connection, i.replaces, part)
        connection.execute(update(interactions).where(replaced).values(replaces=None))
        spans.bring(connection, adjacent, tenant, spans.ends(connection, tenant, held_again), now)


def cards_gone(connection: Connection, tenant: str, ids: Sequence[int], removed: Removed) -> None:
    """Remove cards with words and vectors."""
    c = cards.c
    for part in pages(ids):
        mine = (c.tenant == tenant) & among(connection, c.id, part)
        for row in connection.execute(select(c.backend, c.native_id, c.owner).where(mine)):
            removed.name_record(row.backend, row.native_id, row.owner)
        seen = (released.c.tenant == tenant) & among(connection, released.c.card, part)
        connection.execute(delete(released).where(seen))
    removed.name("cards", (card_id(id_) for id_ in ids))
    injections.drop_items(connection, tenant, [card_id(id_) for id_ in ids])
    _, rev = bump(connection, tenant)
    card_rows.bury(connection, tenant, ids, rev)
    removed.add("cards", len(ids))


def derived_gone(
    connection: Connection, tenant: str, sources: Iterable[str], owners: frozenset[int], removed: Removed
) -> None:
    """Remove every derived item that rests on the sources, and what the log says of it and of them."""
    given = list(sources)
    items = derived_rows.descendants(connection, tenant, given)
    removed.name("derived", items)
    injections.drop_items(connection, tenant, [*given, *items])
    removed.add("derived", derived_rows.drop(connection, tenant, sorted(items), owners))


def entity_gone(connection: Connection, adjacent: Adjacency, tenant: str, id_: int, removed: Removed, now: int) -> None:
    """Remove an entity: what it did, what was done to it, what it was told, its grants, its name."""
    removed.entity = id_
    i = interactions.c
    numbers = list(
        connection.execute(
            select(i.id).where(i.tenant == tenant, (i.actor == id_) | (i.target == id_)).order_by(i.id)
        ).scalars()
    )
    _influence_gone(connection, tenant, id_, removed)  # before its records go one by one
    interactions_gone(connection, adjacent, tenant, numbers, removed, now)
    rest = list(connection.execute(select(cards.c.id).where(cards.c.tenant == tenant, cards.c.owner == id_)).scalars())
    derived_gone(connection, tenant, [card_id(card) for card in rest], frozenset([id_]), removed)
    cards_gone(connection, tenant, rest, removed)
    told = list(
        connection.execute(select(derived.c.id).where(derived.c.tenant == tenant, derived.c.owner == id_)).scalars()
    )
    injections.drop_reader(connection, tenant, id_)
    rankings.drop(connection, tenant, id_)
    items_gone(connection, tenant, told, removed)
    _unlink(connection, tenant, id_, removed)
    around = list(
        connection.execute(select(edges.c.dst).where(edges.c.tenant == tenant, edges.c.src == id_).distinct()).scalars()
    )
    count = connection.execute(
        delete(edges).where(edges.c.tenant == tenant, (edges.c.src == id_) | (edges.c.dst == id_))
    ).rowcount
    removed.add("edges", count)
    adjacent.unfold(connection, tenant, around)
    connection.execute(delete(adjacency).where(adjacency.c.tenant == tenant, adjacency.c.node == id_))
    syntheses.erase(connection, tenant, id_)
    connection.execute(delete(work).where(work.c.tenant == tenant, work.c.entity == id_))
    connection.execute(delete(outbox).where(outbox.c.tenant == tenant, outbox.c.entity == id_))
    removed.add("grants", connection.execute(
        delete(grants).where(grants.c.tenant == tenant, grants.c.owner == id_)
    ).rowcount)  # fmt: skip
    name = connection.execute(
        select(entities.c.name).where(entities.c.tenant == tenant, entities.c.id == id_)
    ).scalar_one()
    name_gone(connection, tenant, name, removed)
    connection.execute(delete(audit).where(audit.c.tenant == tenant, audit.c.principal == id_))
    connection.execute(delete(removals).where(removals.c.tenant == tenant, removals.c.owner == id_))
    aliases.drop(connection, tenant, id_)
    connection.execute(delete(entities).where(entities.c.tenant == tenant, entities.c.id == id_))
    removed.add("entities", 1 + _orphans(connection, tenant, around))


def name_gone(connection: Connection, tenant: str, name: str, removed: Removed) -> None:
    """Remove what names an entity, which may never have been seen itself: others grant to it and publish for it."""
    removed.name("entities", [name])
    removed.add("tokens", access.drop(connection, tenant, name))
    removed.add("limits", limits.drop(connection, tenant, name))
    notices_gone(connection, tenant, notices.meant_for(connection, tenant, name), removed)
    removed.add("cursors", connection.execute(
        delete(cursors).where(cursors.c.tenant == tenant, cursors.c.owner == name)
    ).rowcount)  # fmt: skip
    removed.add("grants", connection.execute(
        delete(grants).where(grants.c.tenant == tenant, grants.c.audience == name)
    ).rowcount)  # fmt: skip
    foreign_gone(connection, tenant, foreign.naming(connection, tenant, name), removed)


def foreign_gone(connection: Connection, tenant: str, ids: Sequence[str], removed: Removed) -> None:
    """Forget what other organisations said; it is not taken again."""
    removed.name("foreign", ids)
    injections.drop_items(connection, tenant, ids)
    removed.add("foreign", foreign.forget(connection, tenant, ids))


def influence_gone(connection: Connection, tenant: str, id_: int, removed: Removed) -> None:
    """Remove all that was derived for others of a principal, whose own memories stay.

    What a removed update stood for is shown again; others' records that a model had read together
    with the principal's are read again when they next recur. The log of who was told stays.
    """
    notices_gone(connection, tenant, notices.of_owner(connection, tenant, id_), removed)
    items = sorted(derived_rows.of_principal(connection, tenant, id_))
    removed.name("derived", items)
    considered.drop(connection, tenant, _read_with(connection, tenant, items, id_))
    bump(connection, tenant)  # answers kept in memory rest on them
    removed.add("derived", derived_rows.drop(connection, tenant, items, frozenset([id_])))


def withdrawn(connection: Connection, tenant: str, owner: int, rests: Sequence[str], removed: Removed) -> None:
    """Remove items that rest on an owner whom their readers may no longer quote, with what rests on them.

    Others' records that a model had read together with the owner's are read again when they next recur.
    """
    items = sorted({*rests, *derived_rows.descendants(connection, tenant, rests)})
    if items:
        removed.name("derived", items)
        considered.drop(connection, tenant, _read_with(connection, tenant, items, owner))
        bump(connection, tenant)
        removed.add("derived", derived_rows.drop(connection, tenant, items, frozenset([owner])))


def _read_with(connection: Connection, tenant: str, items: Sequence[str], but: int) -> list[int]:
    """Cards of others that the items rest on too."""
    n, found = lineage.c, set[int]()
    for part in pages(items):
        mine = (n.tenant == tenant) & among(connection, n.item, part) & (n.principal != but) & n.source.like("c%")
        sources = connection.execute(select(n.source).where(mine).distinct()).scalars()
        found.update(number for source in sources if (number := number_of(source)) is not None)
    return sorted(found)


def _influence_gone(connection: Connection, tenant: str, id_: int, removed: Removed) -> None:
    """Remove whatever a principal is behind, through all generations."""
    n = lineage.c
    direct = list(connection.execute(select(n.item).where(n.tenant == tenant, n.principal == id_).distinct()).scalars())
    items = sorted({*direct, *derived_rows.descendants(connection, tenant, direct)})
    removed.name("derived", items)
    injections.drop_items(connection, tenant, items)
    removed.add("derived", derived_rows.drop(connection, tenant, items, frozenset([id_]), whole=True))


def _unlink(connection: Connection, tenant: str, id_: int, removed: Removed) -> None:
    """Others' notes that refer to the entity stay theirs, without the link and what was named after it."""
    numbers = list(
        connection.execute(
            select(edges.c.interaction).where(edges.c.tenant == tenant, edges.c.dst == id_, edges.c.interaction > 0)
        ).scalars()
    )
    for start in range(0, len(numbers), _CHUNK):
        part = numbers[start : start + _CHUNK]
        c = cards.c
        held = connection.execute(select(c.id, c.links).where(c.tenant == tenant, c.interaction.in_(part))).all()
        sources = [card_id(card.id) for card in held] + [interaction_id(number) for number in part]
        derived_gone(connection, tenant, sources, frozenset(), removed)
        for card in held:
            left = [link for link in json.loads(card.links) if link != id_]
            connection.execute(update(cards).where(c.tenant == tenant, c.id == card.id).values(links=json.dumps(left)))
        i = interactions.c
        rows = connection.execute(select(i.id, i.links).where(i.tenant == tenant, i.id.in_(part))).all()
        for row in rows:
            left = [link for link in json.loads(row.links) if link != id_]
            where = (i.tenant == tenant) & (i.id == row.id)
            connection.execute(update(interactions).where(where).values(links=json.dumps(left)))


def notices_gone(connection: Connection, tenant: str, ids: Sequence[str], removed: Removed | None = None) -> None:
    """Remove what was published with all that rests on it; every answer kept in memory is looked at anew."""
    gone = Removed() if removed is None else removed
    derived_gone(connection, tenant, ids, frozenset(), gone)
    items_gone(connection, tenant, ids, gone)
    policy.raise_version(connection, tenant)


def items_gone(connection: Connection, tenant: str, ids: Sequence[str], removed: Removed) -> None:
    """What was derived for an entity goes, whoever reads it; of distilled facets a trace stays that is nobody's."""
    removed.name("derived", ids)
    injections.drop_items(connection, tenant, ids)
    derived_rows.drop(connection, tenant, ids)
    traces = derived_rows.is_erased(connection, tenant, ids)
    for part in pages(ids):
        gone = [id_ for id_ in part if id_ not in traces]
        mine = (derived.c.tenant == tenant) & among(connection, derived.c.id, gone)
        connection.execute(delete(derived).where(mine))
        kept = (derived.c.tenant == tenant) & among(connection, derived.c.id, sorted(set(part) & traces))
        connection.execute(update(derived).where(kept).values(owner=derived_rows.NOBODY))
    derived_rows.forget_lineage(connection, tenant, ids)
    removed.add("derived", len(ids))


def _orphans(connection: Connection, tenant: str, around: Sequence[int]) -> int:
    """Topics that only the erased texts had named; their names are words of those texts, and go on no receipt."""
    count = 0
    for start in range(0, len(around), _CHUNK):
        part = list(around[start : start + _CHUNK])
        held = select(func.count()).where(edges.c.tenant == tenant, edges.c.src == entities.c.id).scalar_subquery()
        lonely = list(
            connection.execute(
                select(entities.c.id).where(
                    entities.c.tenant == tenant, entities.c.id.in_(part), entities.c.kind == "topic", held == 0
                )
            ).scalars()
        )
        connection.execute(delete(adjacency).where(adjacency.c.tenant == tenant, adjacency.c.node.in_(lonely)))
        rankings.drop_offered(connection, tenant, lonely)
        connection.execute(delete(entities).where(entities.c.tenant == tenant, entities.c.id.in_(lonely)))
        count += len(lonely)
    return count
