"""An id to its lineage, as far as the reader may know it; how the layer is doing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from collab_layer.errors import NotPermittedError, UnknownIdError
from collab_layer.flows import ancestry, foreign, notices, view
from collab_layer.flows.deliver import PARKED
from collab_layer.flows.received import received_by
from collab_layer.flows.tools import Tools
from collab_layer.governance.lineage import maker
from collab_layer.graph import derived, outbox, rankings, receipts, upkeep
from collab_layer.graph import lineage as lineages
from collab_layer.graph import notices as published
from collab_layer.graph.derived import Item
from collab_layer.graph.ids import number_of
from collab_layer.graph.lineage import Source
from collab_layer.graph.store import Opened, table_counts
from collab_layer.graph.tables import deliveries
from collab_layer.types.entity import Entity
from collab_layer.types.facet import Facet, FacetKind
from collab_layer.types.graph import Draft
from collab_layer.types.health import Condition, Health, PartHealth
from collab_layer.types.lineage import Lineage, SourceView
from collab_layer.types.scope import Level, Scope
from collab_layer.types.time import FOREVER, moment

OPERATOR = Entity("app", "operator")


async def explain(tools: Tools, scope: Scope, id_: str, depth: int, width: int) -> Lineage:
    """Everything a derived item rests on, as a tree; or what an interaction or a record said.

    Raises:
        UnknownIdError: Nothing is known under it, or the reader may not see it.
    """
    await tools.in_thread(tools.log.flush)
    return await tools.in_thread(_explain, tools, scope, id_, depth, width)


async def shown(tools: Tools, scope: Scope, id_: str) -> Facet:
    """A derived item as it was shown, with the evidence that may still be shown.

    Raises:
        UnknownIdError: No such item, or not for this reader.
    """
    return await tools.in_thread(_shown, tools, scope, id_)


async def health(tools: Tools, scope: Scope) -> Health:
    """Our database, the work waiting, and every attached store, each asked itself.

    How much there is of anything, and what stores say beside their condition, is the operator's to know.
    """
    own = await tools.in_thread(_own_health, tools, scope.tenant)
    told: list[PartHealth] = []
    for backend in tools.stores_of(scope.tenant):
        told.append(await backend.health())
        note = tools.standing.down if told[-1].condition == "down" else tools.standing.up
        note(scope.tenant, backend.name)
    parts = [*own[0], *told]
    worst: Condition = "ok"
    for condition in ("degraded", "down"):
        if any(part.condition == condition for part in parts):
            worst = condition
    if scope.principal is not None:
        parts = [part if part.condition == "down" else part.model_copy(update={"detail": ""}) for part in parts]
    return Health(condition=worst, parts=tuple(parts), counts=own[1] if scope.principal is None else {})


def _explain(tools: Tools, scope: Scope, id_: str, depth: int, width: int) -> Lineage:
    with tools.store.reading(scope, scope.principal or OPERATOR, tools.now()) as opened:
        if id_.startswith("f"):
            return foreign.explain(tools, scope, opened, id_)
        if id_.startswith(("i", "c")):
            said = _interaction(opened, scope, id_) if id_.startswith("i") else _record(tools, opened, scope, id_)
            return said.model_copy(update={"received": received_by(tools, opened.reading.connection, scope, id_)})
        item = _item(opened, scope, id_)
        id_ = item.id
        seen = opened.reading.audience
        if scope.principal is not None and any(seen.level(one) < item.level for one in item.principals):
            raise UnknownIdError(id_)
        grown = ancestry.grow(tools, opened, scope, id_, depth, width)
        mark = upkeep.mark_of(opened.reading.connection, scope.tenant, id_)
        own = () if item.kind is not FacetKind.NOTICE else (_publisher(opened, item),)
        return Lineage(
            id=id_,
            kind=item.kind.value,
            text=item.text,
            confidence=item.confidence,
            trust=item.trust,
            sources=(*own, *grown.sources),
            more=grown.more,
            nodes=grown.nodes,
            depth=grown.depth,
            made_by=item.made_by,
            maker=maker(item.made_by),
            at=moment(item.at),
            expires=moment(item.expires) if item.expires < FOREVER else None,
            state=ancestry.state_of(mark, item.expires, opened.reading.now),
            related=_seen(opened, scope, upkeep.related_to(opened.reading.connection, scope.tenant, id_), item.owner),
            superseded_by=_instead(opened, scope, item, mark),
            received=received_by(tools, opened.reading.connection, scope, id_),
        )


def _seen(opened: Opened, scope: Scope, ids: Sequence[str], owner: int) -> tuple[str, ...]:
    """Those of the items that were derived for the same reader and may be seen now."""
    reading = opened.reading
    found = derived.get(reading.connection, reading.tenant, ids)
    erased = derived.is_erased(reading.connection, reading.tenant, ids)
    return tuple(
        id_
        for id_ in ids
        if (item := found.get(id_)) is not None
        and id_ not in erased
        and item.owner == owner
        and (scope.principal is None or all(reading.audience.level(one) >= item.level for one in item.principals))
    )


def _instead(opened: Opened, scope: Scope, item: Item, mark: str | None) -> str | None:
    seen = () if mark is None else _seen(opened, scope, [mark], item.owner)
    return seen[0] if seen else None


def _shown(tools: Tools, scope: Scope, id_: str) -> Facet:
    with tools.store.reading(scope, scope.principal or OPERATOR, tools.now()) as opened:
        item = _item(opened, scope, id_)
        reader = Entity.parse(opened.reading.index.names[item.owner])
        if scope.principal is None:  # the operator sees what the item's reader would see now
            with tools.store.reading(scope, reader, tools.now()) as theirs:
                return _as_facet(theirs, item)
        return _as_facet(opened, item)


def _as_facet(opened: Opened, item: Item) -> Facet:
    seen = opened.reading.audience
    if any(seen.level(one) < item.level for one in item.principals):
        raise UnknownIdError(item.id)
    if item.kind is FacetKind.NOTICE:
        return view.with_refs(opened.reading, [notices.facet(opened.reading, item)])[0]
    draft = Draft(item.key, item.text, item.confidence, 0.0, item.links, item.sources)
    return view.with_refs(opened.reading, [view.facet(opened.reading, draft, item.id, item.kind, item.made_by)])[0]


def _item(opened: Opened, scope: Scope, id_: str) -> Item:
    reading = opened.reading
    id_ = derived.whole(reading.connection, reading.tenant, id_, None if scope.principal is None else opened.reader)
    item = derived.get(reading.connection, reading.tenant, [id_]).get(id_)
    if item is not None and item.key.startswith(derived.COPY):  # a reader's copy of a notice stands for it
        id_ = item.sources[0][0]
        item = derived.get(reading.connection, reading.tenant, [id_]).get(id_)
    gone = item is None or id_ in derived.is_erased(reading.connection, reading.tenant, [id_])
    if item is None or gone or (scope.principal is not None and not _may_see(opened, item)):
        raise UnknownIdError(id_)
    return item


def _may_see(opened: Opened, item: Item) -> bool:
    """Whether it was derived for the reader, or published to it."""
    if item.kind is FacetKind.NOTICE:
        reading = opened.reading
        return published.permits(reading.connection, reading.tenant, item.id, opened.who, opened.now)
    return item.owner == opened.reader


def _publisher(opened: Opened, item: Item) -> SourceView:
    """Its owner stands for a notice by name."""
    return SourceView(id=item.id, principal=str(view.entity_of(opened.reading, item.owner)), weight=1.0, kind="notice")


def _record(tools: Tools, opened: Opened, scope: Scope, id_: str) -> Lineage:
    """A version of a memory; whose words are held back, or lie in a store only, is shown without them."""
    reading, number = opened.reading, number_of(id_)
    found = {} if number is None else lineages.records(reading.connection, reading.tenant, [number])
    if number is None or number not in found:
        raise UnknownIdError(id_)
    record = found[number]
    if scope.principal is not None and reading.audience.level(record.owner) < Level.RECORDS:
        raise UnknownIdError(id_)
    node = ancestry.alone(tools, opened, scope, Source(id_, record.owner, 1.0))
    return Lineage(
        id=id_, kind="record", text=node.quote, sources=(node,), nodes=1, depth=1, at=node.at, state=node.state
    )


def _interaction(opened: Opened, scope: Scope, id_: str) -> Lineage:
    reading, number = opened.reading, number_of(id_)
    found = {} if number is None else lineages.said(reading.connection, reading.tenant, [number])
    if number is None or number not in found:
        raise UnknownIdError(id_)
    said = found[number]
    if scope.principal is not None and reading.audience.level(said.actor) < Level.RECORDS:
        raise NotPermittedError(str(scope.principal), "read", id_)
    held = scope.principal is not None and bool(lineages.held_back(reading.connection, reading.tenant, [number]))
    text, actor = None if held else said.text, str(view.entity_of(reading, said.actor))
    source = SourceView(
        id=id_, principal=actor, weight=1.0, quote=text, kind="interaction", number=1, at=moment(said.at)
    )
    return Lineage(
        id=id_,
        kind="interaction",
        text=text,
        sources=(source,),
        nodes=1,
        depth=1,
        made_by=said.verb,
        at=moment(said.at),
    )


def _own_health(tools: Tools, tenant: str) -> tuple[list[PartHealth], dict[str, int]]:
    with tools.store.database.read() as connection:
        waiting, parked = outbox.counts(connection, tenant)
        counts = {**table_counts(connection, tenant), "waiting": waiting, "parked": parked}
        unused = tools.rules.in_use(connection, tenant).why
        muted = [owner for owner, one in rankings.verdicts_of(connection, tenant).items() if one.muted]
        counts["muted"] = sum(owner != rankings.TENANT for owner in muted)
        unsigned = receipts.unsigned(connection, tenant)
        refused = connection.execute(
            select(deliveries.c.item).where(deliveries.c.tenant == tenant, deliveries.c.state == PARKED).limit(1)
        ).first()
        stuck = connection.execute(
            select(deliveries.c.item).where(deliveries.c.tenant == tenant, deliveries.c.state == "retracting").limit(1)
        ).first()
    graph: Condition = "empty" if counts["interactions"] == 0 else "ok"
    parts = [PartHealth(name="graph", condition=graph)]
    if parked:
        detail = f"{parked} entities were parked after repeated failures; see the log"
        parts.append(PartHealth(name="work", condition="degraded", detail=detail))
    if unused is not None:
        parts.append(PartHealth(name="rules", condition="degraded", detail=unused))
    if muted:
        parts.append(PartHealth(name="ranking", condition="ok", detail=_muted(muted)))
    if unsigned and tools.keys.missed is not None:
        parts.append(PartHealth(name="receipts", condition="degraded", detail=tools.keys.missed))
    if refused is not None:
        parts.append(PartHealth(name="deliveries", condition="degraded", detail="a store refused items five times"))
    if stuck is not None:
        parts.append(PartHealth(name="deliveries", condition="degraded", detail="an erasure is still to be delivered"))
    return parts, counts


def _muted(owners: Sequence[int]) -> str:
    if rankings.TENANT in owners:
        return "neighbours are muted in the whole tenant: rankings went better without them"
    count = "1 owner" if len(owners) == 1 else f"{len(owners)} owners"
    return f"neighbours are muted for {count}, whose rankings went better without them"
