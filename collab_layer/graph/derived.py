"""Derived items and their lineage: append-only, superseding, never overwritten.

Ids are made from what an item says and rests on, so that storing the same plan twice
stores once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import BindParameter, Column, Connection, Select, bindparam, delete, func, null, or_, select, update

from collab_layer.graph import lineage as lineages
from collab_layer.graph import merged, names
from collab_layer.graph.among import among, one_of, pages
from collab_layer.graph.engine import upsert
from collab_layer.graph.lean import Lean
from collab_layer.graph.tables import deliveries, derived, lineage, notices
from collab_layer.types.facet import FacetKind
from collab_layer.types.prompt import SHOWN_ID
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

ERASED = "erased"
FORGOTTEN = "forgotten"
"""Marks of rows that hold no words any more: a distilled facet's trace, and an item that must not be made again."""
GONE = (ERASED, FORGOTTEN)
COPY = "copy of "
"""How the key of a notice begins that is one reader's copy of another, for its store."""
NOBODY = 0
"""Owner of a trace whose reader was erased."""
REMEMBERED = 64
"""Publications of one facet, by whomever read, that a new one is compared with."""
_SHOWN = re.compile(f"d[0-9a-f]{{{SHOWN_ID - 1},30}}")
_AS_JSON = json.JSONEncoder(ensure_ascii=False).encode
_CHUNK = 400
_D = derived.c
_THIS: BindParameter[str] = bindparam("this")
_SUPERSEDED = (
    update(derived)
    .where(_D.tenant == bindparam("of"), _D.id == bindparam("old"), _D.superseded.is_(None))
    .values(superseded=_THIS)
)
_MINE: BindParameter[Any] = bindparam("ids", expanding=True)
_TENANTS = _D.tenant == bindparam("tenant")
_GET = select(derived).where(_TENANTS, _D.id.in_(_MINE))
_CURRENT = select(derived).where(
    _TENANTS,
    _D.owner.in_(bindparam("owners", expanding=True)),
    _D.kind == bindparam("kind"),
    _D.expires > bindparam("now"),
    _D.superseded.is_(None),
)
_NEXT_END = Lean(
    select(func.min(_D.expires)).where(_TENANTS, _D.owner == bindparam("owner"), _D.expires > bindparam("now"))
)
_ERASED = select(_D.id).where(_TENANTS, _D.id.in_(_MINE), _D.superseded.in_(GONE))
_MARKS = Lean(select(_D.id, _D.superseded).where(_TENANTS, one_of(_D.id, "ids")))
_STANDING = Lean(
    select(_D.id, _D.owner, _D.kind, _D.key).where(
        _TENANTS, one_of(_D.owner, "owners"), one_of(_D.key, "keys"), _D.superseded.is_(None)
    )
)
_SHOWN_AGAIN = Lean(
    update(derived)
    .where(_TENANTS, one_of(_D.id, "ids"), _D.superseded.is_not(None), *(_D.superseded != gone for gone in GONE))
    .values(superseded=null())
)
_N = lineage.c
_RESTS = select(_N.item, _N.source, _N.principal, _N.weight).where(_N.tenant == bindparam("tenant"), _N.item.in_(_MINE))
_PUBLISHED = (
    select(_D.id)
    .where(_TENANTS, _D.key.in_(bindparam("keys", expanding=True)), _D.kind == FacetKind.FACET.value)
    .order_by(_D.at.desc())
    .limit(REMEMBERED)
)


@dataclass(frozen=True, slots=True)
class Item:
    """One derived item with its lineage: (source, principal, weight share in [0, 1]).

    `superseded` is read only: the item that stands in its place, or a mark; None while it stands itself.
    """

    id: str
    owner: int
    kind: FacetKind
    key: str
    text: str
    confidence: float
    level: Level
    links: tuple[int, ...]
    sources: tuple[tuple[str, int, float], ...]
    made_by: str
    epoch: int = 0
    hop: int = 1
    trust: float = 1.0
    at: int = 0
    expires: int = FOREVER
    superseded: str | None = None
    gone: int = 0
    cut: int = 0

    @property
    def principals(self) -> frozenset[int]:
        """Everyone behind it."""
        return frozenset(principal for _, principal, _ in self.sources)


def item_id(salt: str, owner: str, kind: FacetKind, key: str, text: str, sources: Iterable[str]) -> str:
    """The deterministic id of a derived item, keyed with the tenant's secret: sources cannot be guessed from it.

    The owner goes in by name, which is known before it is an entity.
    """
    whole = _AS_JSON([salt, owner, kind, key, text, sorted(sources)])
    return "d" + hashlib.sha256(whole.encode()).hexdigest()[:31]


def store(connection: Connection, tenant: str, items: Sequence[Item]) -> None:
    """Store items and lineage; what is there already holds on from now.

    Raises:
        LineageCycleError: An item would rest on itself.
    """
    items = _trusted(connection, tenant, items)
    upsert(connection, derived, [_row(tenant, item) for item in items], update=("at", "expires"))
    upsert(
        connection,
        lineage,
        [
            {"tenant": tenant, "item": item.id, "source": source, "principal": principal, "weight": weight}
            for item in items
            for source, principal, weight in _summed(item.sources)
        ],
    )


def put(connection: Connection, tenant: str, items: Sequence[Item]) -> None:
    """Store items and lineage; those of the same keys are superseded."""
    store(connection, tenant, items)
    if not items:
        return
    rows = [
        {"of": tenant, "this": item.id, "old": old}
        for item, others in _instead(connection, tenant, items)
        for old in others
    ]
    if rows:
        connection.execute(_SUPERSEDED, rows)
    for part in pages([item.id for item in items]):
        _SHOWN_AGAIN.run(connection, {"tenant": tenant, "ids": part})


def _instead(connection: Connection, tenant: str, items: Sequence[Item]) -> list[tuple[Item, list[str]]]:
    """Items with the standing ones of the same keys, for the same readers, which each takes the place of."""
    owners, keys = sorted({item.owner for item in items}), sorted({item.key for item in items})
    found: dict[tuple[int, str, str], list[str]] = {}
    for part in pages(keys):
        given = {"tenant": tenant, "owners": owners, "keys": part}
        for id_, owner, kind, key in _STANDING.tuples(connection, given):
            found.setdefault((owner, kind, key), []).append(id_)
    return [
        (item, [id_ for id_ in found.get((item.owner, item.kind.value, item.key), ()) if id_ != item.id])
        for item in items
    ]


def get(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, Item]:
    """Items by id, with lineage."""
    found: dict[str, Item] = {}
    for start in range(0, len(ids), _CHUNK):
        part = list(ids[start : start + _CHUNK])
        found.update((item.id, item) for item in _load(connection, tenant, _GET, {"ids": part}))
    return found


def whole(connection: Connection, tenant: str, id_: str, reader: int | None = None) -> str:
    """The id that a shown beginning stands for; the text as given where it is none, or not of exactly one.

    Args:
        connection: In the caller's transaction.
        tenant: Nothing crosses it.
        id_: An id, or its first characters as prompts show them.
        reader: Only among what was derived for this one.
    """
    if not _SHOWN.fullmatch(id_):
        return id_
    d = derived.c
    query = select(d.id).where(d.tenant == tenant, d.id >= id_, d.id < f"{id_}g").limit(2)
    found = connection.execute(query if reader is None else query.where(d.owner == reader)).scalars().all()
    return found[0] if len(found) == 1 else id_


def current(connection: Connection, tenant: str, owner: int, kind: FacetKind, now: int) -> list[Item]:
    """An owner's items of a kind that still hold."""
    return current_of(connection, tenant, [owner], kind, now)[owner]


def current_of(
    connection: Connection, tenant: str, owners: Sequence[int], kind: FacetKind, now: int
) -> dict[int, list[Item]]:
    """The same of each of some owners."""
    found: dict[int, list[Item]] = {owner: [] for owner in owners}
    for part in pages(list(found), _CHUNK):
        for item in _load(connection, tenant, _CURRENT, {"owners": list(part), "kind": kind.value, "now": now}):
            found[item.owner].append(item)
    return found


def end_by(connection: Connection, tenant: str, ids: Sequence[str], end: int) -> None:
    """Let updates hold no longer than that; facets go when what they rest on is over."""
    d = derived.c
    for start in range(0, len(ids), _CHUNK):
        mine = (d.tenant == tenant) & d.id.in_(list(ids[start : start + _CHUNK]))
        later = (d.kind == FacetKind.UPDATE.value) & (d.expires > end)
        connection.execute(update(derived).where(mine, later).values(expires=end))


def next_end(connection: Connection, tenant: str, owner: int, now: int) -> int:
    """When the next of an owner's items runs out."""
    ((end,),) = _NEXT_END.tuples(connection, {"tenant": tenant, "owner": owner, "now": now})
    return FOREVER if end is None else end


def published(connection: Connection, tenant: str, keys: Sequence[str]) -> dict[str, list[Item]]:
    """The facets of each key that anybody was ever shown, newest first, traces of erased ones included.

    Of more than `REMEMBERED` the oldest are left out.
    """
    if not keys:
        return {}
    found: list[str] = []
    salt = names.salt(connection, tenant)
    clear = {_trace_key(salt, key): key for key in keys}
    for trace, key in clear.items():
        found += connection.execute(_PUBLISHED, {"tenant": tenant, "keys": [key, trace]}).scalars()
    out: dict[str, list[Item]] = {key: [] for key in keys}
    for item in sorted(get(connection, tenant, found).values(), key=lambda item: (-item.at, item.id)):
        key = clear.get(item.key, item.key)
        out[key].append(replace(item, key=key))
    return out


def _trace_key(salt: str, key: str) -> str:
    """What a trace is found by: the key may be the name of something that nobody may be told of any more."""
    return "trace:" + hashlib.blake2b(key.encode(), key=salt.encode()[:64], digest_size=16).hexdigest()


def descendants(connection: Connection, tenant: str, sources: Iterable[str]) -> set[str]:
    """Every derived item that rests on any of the sources, through all generations."""
    reached: set[str] = set()
    front = list(dict.fromkeys(sources))
    while front:
        found: set[str] = set()
        for part in pages(front):
            mine = (lineage.c.tenant == tenant) & among(connection, lineage.c.source, part)
            found.update(connection.execute(select(lineage.c.item).where(mine).distinct()).scalars())
        front = sorted(found - reached)
        reached |= found
    return reached


def of_principal(connection: Connection, tenant: str, principal: int) -> set[str]:
    """Every derived item for somebody else that rests on a principal, through all generations."""
    n, d = lineage.c, derived.c
    rests = select(n.item).where(n.tenant == tenant, n.principal == principal).distinct()
    found = set(connection.execute(rests).scalars())
    found -= set(connection.execute(select(d.id).where(d.tenant == tenant, d.owner == principal)).scalars())
    return found | descendants(connection, tenant, found)


def resting_on(connection: Connection, tenant: str, principal: int) -> list[tuple[str, int, Level, FacetKind]]:
    """Items with words, for somebody else, that rest on a principal: id, whom they are for, level, kind."""
    n, d = lineage.c, derived.c
    rests = select(n.item).where(n.tenant == tenant, n.principal == principal)
    alive = or_(d.superseded.is_(None), d.superseded.not_in(GONE))
    theirs = (d.tenant == tenant) & d.id.in_(rests) & (d.owner != principal)
    query = select(d.id, d.owner, d.level, d.kind).where(theirs, alive)
    return [(row.id, row.owner, Level(row.level), FacetKind(row.kind)) for row in connection.execute(query)]


def drop(
    connection: Connection,
    tenant: str,
    ids: Sequence[str],
    erased: frozenset[int] = frozenset(),
    *,
    whole: bool = False,
) -> int:
    """Erase items: text, links, lineage and relations go; what they stood for is shown again.

    A facet that was published to others leaves a keyed hash of its key, its epoch and the *other* principals
    behind, so that the next one is not published as a difference of one. How many of `erased` were
    behind it is kept as a number: owners erased as a `whole`, or owners of whom a record was. Lineage stays
    while a copy is to be taken back from a store: so whoever is erased meanwhile waits for it too.

    Returns:
        How many items there were.
    """
    count = 0
    for part in pages(ids):
        merged.release(connection, tenant, part)
        merged.unrelate(connection, tenant, part)
        d, n, sent = derived.c, lineage.c, deliveries.c
        again = (d.tenant == tenant) & among(connection, d.superseded, part) & (d.kind == FacetKind.UPDATE.value)
        merged.show_again(connection, tenant, again)
        copies = (sent.tenant == tenant) & among(connection, sent.item, part)
        connection.execute(update(deliveries).where(copies).values(state=merged.RETRACTING))
        mine = (d.tenant == tenant) & among(connection, d.id, part)
        distilled = mine & (d.kind == FacetKind.FACET.value) & (d.level == int(Level.FACETS))
        kept = list(connection.execute(select(d.id).where(distilled)).scalars())
        if kept:
            _leave_traces(connection, tenant, kept, erased, derived.c.gone if whole else derived.c.cut)
        gone = sorted(set(part) - set(kept))
        awaited = select(sent.item).where(copies)
        rests = (n.tenant == tenant) & among(connection, n.item, gone) & n.item.not_in(awaited)
        connection.execute(delete(lineage).where(rests))
        said = (notices.c.tenant == tenant) & among(connection, notices.c.item, gone)
        connection.execute(delete(notices).where(said))
        left = delete(derived).where(d.tenant == tenant, among(connection, d.id, gone))
        count += len(kept) + connection.execute(left).rowcount
    return count


def _leave_traces(
    connection: Connection, tenant: str, kept: Sequence[str], erased: frozenset[int], left_out: Column[int]
) -> None:
    d, n = derived.c, lineage.c
    mine = (d.tenant == tenant) & among(connection, d.id, kept)
    values = {"text": "", "links": "[]", "confidence": 0.0, "superseded": ERASED, "made_by": ""}
    named = connection.execute(select(d.id, d.key).where(mine, or_(d.superseded.is_(None), d.superseded != ERASED)))
    salt = names.salt(connection, tenant)
    hashed = [{"this": row.id, "hashed": _trace_key(salt, row.key)} for row in named]
    if hashed:
        here = (d.tenant == tenant) & (d.id == bindparam("this"))
        connection.execute(update(derived).where(here).values(key=bindparam("hashed")), hashed)
    connection.execute(update(derived).where(mine).values(**values))
    theirs = (n.tenant == tenant) & among(connection, n.item, kept)
    if erased:
        _count_left_out(connection, tenant, kept, erased, left_out)
        connection.execute(delete(lineage).where(theirs, among(connection, n.principal, sorted(erased))))
    connection.execute(delete(derived).where(mine, d.id.not_in(select(n.item).where(theirs))))


def forget_lineage(connection: Connection, tenant: str, ids: Sequence[str]) -> None:
    """The last copy of these was taken back: what they rested on goes, where they are erased."""
    d, n, sent = derived.c, lineage.c, deliveries.c
    for part in pages(ids):
        holds = or_(d.superseded.is_(None), d.superseded != FORGOTTEN)
        held = select(d.id).where(d.tenant == tenant, among(connection, d.id, part), holds)
        awaited = select(sent.item).where(sent.tenant == tenant, among(connection, sent.item, part))
        rests = (n.tenant == tenant) & among(connection, n.item, part)
        connection.execute(delete(lineage).where(rests, n.item.not_in(held), n.item.not_in(awaited)))


def _count_left_out(
    connection: Connection, tenant: str, ids: Sequence[str], owners: frozenset[int], column: Column[int]
) -> None:
    n = lineage.c
    mine = (n.tenant == tenant) & among(connection, n.item, ids) & among(connection, n.principal, sorted(owners))
    counted = select(n.item, func.count(n.principal.distinct())).where(mine).group_by(n.item)
    rows = [{"this": item, "more": count} for item, count in connection.execute(counted)]
    if rows:
        here = (derived.c.tenant == tenant) & (derived.c.id == bindparam("this"))
        connection.execute(update(derived).where(here).values({column: column + bindparam("more")}), rows)


def suppress(connection: Connection, tenant: str, id_: str) -> int:
    """Erase an item by its own id; an empty row stays, so that it is not made again.

    Of a distilled facet the trace does: whoever forgets one is not told of the next by difference.
    """
    drop(connection, tenant, [id_])
    if is_erased(connection, tenant, [id_]):
        return 1
    connection.execute(delete(derived).where(derived.c.tenant == tenant, derived.c.id == id_))
    forget_lineage(connection, tenant, [id_])
    blank = Item(id_, NOBODY, FacetKind.LESSON, FORGOTTEN, "", 0.0, Level.RECORDS, (), (), "")
    connection.execute(derived.insert(), [{**_row(tenant, blank), "superseded": FORGOTTEN}])
    return 1


def marks(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, str | None]:
    """Those of the items that are there: what stands in the place of each, or why it is empty; None of one that holds.

    See `ERASED`, `FORGOTTEN`.
    """
    if not ids:
        return {}
    return dict(_MARKS.tuples(connection, {"tenant": tenant, "ids": ids}))


def is_erased(connection: Connection, tenant: str, ids: Sequence[str]) -> set[str]:
    """Those of the items that are only the trace of something erased."""
    return set(connection.execute(_ERASED, {"tenant": tenant, "ids": list(ids)}).scalars()) if ids else set()


def _trusted(connection: Connection, tenant: str, items: Sequence[Item]) -> Sequence[Item]:
    """Items trusted no more than what they rest on; costs nothing where none rests on another."""
    fresh = {item.id: {source for source, _, _ in item.sources if source.startswith("d")} for item in items}
    if not any(fresh.values()):
        return items
    trust = lineages.trusted(connection, tenant, fresh, {item.id: item.trust for item in items})
    return [replace(item, trust=trust[item.id]) for item in items]


def _load(connection: Connection, tenant: str, query: Select[Any], given: Mapping[str, Any]) -> list[Item]:
    items: dict[str, Item] = {}
    for row in connection.execute(query, {"tenant": tenant, **given}).all():
        items[row.id] = Item(
            row.id, row.owner, FacetKind(row.kind), row.key, row.text, row.confidence, Level(row.level),
            tuple(json.loads(row.links)), (), row.made_by, row.epoch, row.hop, row.trust, row.at, row.expires,
            row.superseded,
            row.gone, row.cut,
        )  # fmt: skip
    sources: dict[str, list[tuple[str, int, float]]] = {}
    ids = list(items)
    for start in range(0, len(ids), _CHUNK):
        rows = connection.execute(_RESTS, {"tenant": tenant, "ids": ids[start : start + _CHUNK]})
        for item, source, principal, weight in rows.all():
            sources.setdefault(item, []).append((source, principal, weight))
    ordered = {id_: tuple(sorted(found, key=lambda one: (-one[2], one[0]))) for id_, found in sources.items()}
    return [replace(item, sources=ordered.get(item.id, ())) for item in items.values()]


def _summed(sources: Iterable[tuple[str, int, float]]) -> list[tuple[str, int, float]]:
    total: dict[str, tuple[int, float]] = {}
    for source, principal, weight in sources:
        total[source] = (principal, total.get(source, (principal, 0.0))[1] + weight)
    return [(source, principal, min(1.0, weight)) for source, (principal, weight) in total.items()]


def _row(tenant: str, item: Item) -> dict[str, object]:
    return {
        "tenant": tenant,
        "id": item.id,
        "owner": item.owner,
        "kind": item.kind.value,
        "key": item.key,
        "text": item.text,
        "confidence": item.confidence,
        "trust": item.trust,
        "hop": item.hop,
        "links": json.dumps(list(item.links)),
        "level": int(item.level),
        "made_by": item.made_by,
        "epoch": item.epoch,
        "at": item.at,
        "expires": item.expires,
        "gone": item.gone,
        "cut": item.cut,
        "superseded": None,
    }
