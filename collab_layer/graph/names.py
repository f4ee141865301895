"""Strings at the edge, dense integers inside.

In:   entities, inside a transaction, and when which event named them.
Out:  their dense ids per tenant; unknown ones are made where that is allowed.

Since when an entity is known, and how it is displayed, follows from the earliest event that named
it and not from the one told first: events may arrive late.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, bindparam, func, select, update

from collab_layer.graph.among import one_of, pages
from collab_layer.graph.engine import insert, upsert
from collab_layer.graph.lean import Lean
from collab_layer.graph.tables import entities, settings, tenants
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.scope import Sharing
from collab_layer.types.time import FOREVER

_CHUNK = 500
SALT = "salt"
_E = entities.c
_NAMED = select(_E.name, _E.id).where(_E.tenant == bindparam("tenant"), one_of(_E.name, "names"))
_FIND, _KNOWN = Lean(_NAMED), Lean(_NAMED.add_columns(_E.since, _E.named, _E.display))
_T = tenants.c
_SEEN = select(_T.generation, _T.policy, _T.rev).where(_T.tenant == bindparam("tenant"))
_STANDS, _HELD = Lean(_SEEN), Lean(_SEEN.with_for_update())
_RAISED = Lean(
    update(tenants)
    .where(_T.tenant == bindparam("whose"))
    .values(rev=_T.rev + 1, next_entity=_T.next_entity + bindparam("made"))
    .returning(_T.next_entity, _T.rev)
)
_SHARED, _ALONE = (
    Lean(select(lock(func.hashtext(bindparam("tenant", type_=Text)))))
    for lock in (func.pg_advisory_xact_lock_shared, func.pg_advisory_xact_lock)
)
_SALT = select(settings.c.value).where(settings.c.tenant == bindparam("tenant"), settings.c.name == SALT)
_LEARNED = select(entities.c.since, entities.c.named).where(
    entities.c.tenant == bindparam("tenant"),
    entities.c.rev > bindparam("seen"),
    entities.c.kind.not_in(sorted(OWNER_KINDS)),
)


@dataclass(frozen=True, slots=True)
class Mention:
    """How some events name one entity, taken together.

    Attributes:
        since: The earliest of them, microseconds.
        display: What that one calls it.
        named: The earliest whose caller named it, not only its text.
    """

    since: int
    display: str
    named: int = FOREVER


class Tenant(NamedTuple):
    """Where a tenant stands: how often something was erased, the version of its grants, its revision."""

    generation: int
    policy: int
    rev: int


@dataclass(frozen=True, slots=True)
class Met:
    """Entities with their ids.

    Attributes:
        ids: Of all that were asked for.
        late: From when on a thing's name may be found in texts, where it could not be before the
            call; the earliest of them all, `FOREVER` if there is none.
    """

    ids: dict[Entity, int]
    late: int = FOREVER


def mention(
    found: dict[Entity, Mention], entity: Entity, at: int, display: str | None = None, *, by_caller: bool
) -> None:
    """Note that an event names an entity."""
    said, named = display or entity.id, at if by_caller else FOREVER
    old = found.get(entity)
    if old is None:
        found[entity] = Mention(at, said, named)
    elif (at, said) < (old.since, old.display) or named < old.named:
        since, first = min((at, said), (old.since, old.display))
        found[entity] = Mention(since, first, min(named, old.named))


def ensure(connection: Connection, tenant: str) -> None:
    """Make the tenant's row and secret if they are not there; private, as every new tenant is."""
    row = {
        "tenant": tenant,
        "sharing": Sharing.private().model_dump_json(),
        "generation": 0,
        "policy": 0,
        "next_entity": 1,
        "rev": 1,
    }
    upsert(connection, tenants, [row])
    upsert(connection, settings, [{"tenant": tenant, "name": SALT, "value": secrets.token_hex(16)}])


def salt(connection: Connection, tenant: str) -> str:
    """The tenant's secret for pseudonyms."""
    found = connection.execute(_SALT, {"tenant": tenant}).scalar()
    return found or ""  # a tenant that nothing was written to yet has nobody to name


def find(connection: Connection, tenant: str, names: Iterable[str]) -> dict[str, int]:
    """The ids of those names that are known."""
    wanted = list(dict.fromkeys(names))
    found: dict[str, int] = {}
    for part in pages(wanted):
        found.update(_FIND.rows(connection, {"tenant": tenant, "names": part}))
    return found


def names_of(connection: Connection, tenant: str, ids: Sequence[int]) -> dict[int, str]:
    """The names of those ids that have one."""
    found: dict[int, str] = {}
    wanted = sorted(set(ids))
    e = entities.c
    for start in range(0, len(wanted), _CHUNK):
        rows = connection.execute(
            select(e.id, e.name).where(e.tenant == tenant, e.id.in_(wanted[start : start + _CHUNK]))
        )
        found.update((row.id, row.name) for row in rows)
    return found


class Called(dict[int, str]):
    """Names by id as a transaction sees them, each looked up once; an unknown id has none."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        super().__init__()
        self._connection, self._tenant = connection, tenant

    def __missing__(self, id_: int) -> str:
        self[id_] = names_of(self._connection, self._tenant, [id_]).get(id_, "")
        return self[id_]


def resolve(connection: Connection, tenant: str, wanted: Iterable[Entity]) -> dict[Entity, int]:
    """The ids of all, new ones made in the order given; nothing is noted about when they were named."""
    return meet(connection, tenant, wanted, {}).ids


def always(connection: Connection, tenant: str, entity: Entity) -> int:
    """The id of an entity that is known whatever moment is read, as one who grants something is."""
    return meet(connection, tenant, [entity], {entity: Mention(0, entity.id, 0)}).ids[entity]


def meet(connection: Connection, tenant: str, wanted: Iterable[Entity], mentions: Mapping[Entity, Mention]) -> Met:
    """The ids of all, new ones made in the order given; of those mentioned, known since the mention at least."""
    ordered = list(dict.fromkeys(wanted))
    known = _rows(connection, tenant, (str(entity) for entity in ordered))
    missing = [entity for entity in ordered if str(entity) not in known]
    rev, late = 0, FOREVER
    if missing:
        next_id, rev = bump(connection, tenant, entities_made=len(missing))
        # Taken the tenant's row: nobody else makes entities now. Look again for what they made.
        known.update(_rows(connection, tenant, (str(entity) for entity in missing)))
        missing = [entity for entity in missing if str(entity) not in known]
        rows = [_new(tenant, next_id + at, entity, mentions.get(entity), rev) for at, entity in enumerate(missing)]
        insert(connection, entities, rows)
        late = min((_usable(entity, mentions[entity]) for entity in missing if entity in mentions), default=FOREVER)
        ids = {str(entity): next_id + at for at, entity in enumerate(missing)}
    else:
        ids = {}
    earlier = [
        (row, mentions[entity])
        for entity in ordered
        if entity in mentions and (row := known.get(str(entity))) is not None and _is_news(row, mentions[entity])
    ]
    if earlier:
        late = min(late, _note_earlier(connection, tenant, earlier, rev))
    ids.update((name, row.id) for name, row in known.items())
    return Met({entity: ids[str(entity)] for entity in ordered}, late)


def learned_since(connection: Connection, tenant: str, rev: int) -> int:
    """From when on names of things may be found that the index of that revision did not have; `FOREVER` if none."""
    found = connection.execute(_LEARNED, {"tenant": tenant, "seen": rev})
    return min((min(row.named, row.since + 1) for row in found), default=FOREVER)


def _rows(connection: Connection, tenant: str, names: Iterable[str]) -> dict[str, Any]:
    wanted = list(dict.fromkeys(names))
    found: dict[str, Any] = {}
    for part in pages(wanted):
        found.update((row.name, row) for row in _KNOWN.rows(connection, {"tenant": tenant, "names": part}))
    return found


def _new(tenant: str, id_: int, entity: Entity, said: Mention | None, rev: int) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "id": id_,
        "name": str(entity),
        "kind": entity.kind,
        "display": entity.id if said is None else said.display,
        "degree": 0,
        "since": FOREVER if said is None else said.since,
        "named": FOREVER if said is None else said.named,
        "rev": rev,
    }


def _is_news(row: Any, said: Mention) -> bool:
    return (said.since, said.display) < (row.since, row.display) or said.named < row.named


def _usable(entity: Entity, said: Mention) -> int:
    """From when on the name may be found in texts; see `known.Known`. Never, of an owner."""
    return FOREVER if entity.kind in OWNER_KINDS else min(said.named, said.since + 1)


def _note_earlier(connection: Connection, tenant: str, earlier: list[tuple[Any, Mention]], rev: int) -> int:
    """Entities that are known for longer than was thought; from when on their names may be found now."""
    if not rev:  # the tenant's row, so that two writers never meet here
        _, rev = bump(connection, tenant)
    e = entities.c
    here = (e.tenant == tenant) & (e.id == bindparam("entity"))
    later = (e.since > bindparam("first")) | ((e.since == bindparam("first")) & (e.display > bindparam("said")))
    rows = [{"entity": row.id, "first": new.since, "said": new.display, "by_caller": new.named} for row, new in earlier]
    first = update(entities).where(here, later).values(since=bindparam("first"), display=bindparam("said"), rev=rev)
    connection.execute(first, rows)
    named = update(entities).where(here, e.named > bindparam("by_caller")).values(named=bindparam("by_caller"), rev=rev)
    connection.execute(named, rows)
    before = [min(row.named, row.since + 1) for row, _ in earlier]
    after = [_usable(Entity.parse(row.name), new) for row, new in earlier]
    return min((new for new, old in zip(after, before, strict=True) if new < old), default=FOREVER)


def lock(connection: Connection, tenant: str) -> int:
    """Take the tenant's row until the commit, before any other lock; the generation it is at."""
    return locked(connection, tenant).generation


def locked(connection: Connection, tenant: str) -> Tenant:
    """The same, and where else the tenant stands."""
    query = _STANDS if connection.dialect.name == "sqlite" else _HELD  # there the whole database is ours already
    rows = query.rows(connection, {"tenant": tenant})
    return Tenant(*rows[0]) if rows else Tenant(0, 0, 0)


def share_with_erasure(connection: Connection, tenant: str, *, erasing: bool = False) -> None:
    """Let writers of new facts run side by side, and an erasure alone (PostgreSQL; SQLite has one writer)."""
    if connection.dialect.name != "sqlite":
        (_ALONE if erasing else _SHARED).run(connection, {"tenant": tenant})


def bump(connection: Connection, tenant: str, *, entities_made: int = 0) -> tuple[int, int]:
    """Take the tenant's row until the commit: raise `rev`, reserve entity ids.

    Returns:
        The first reserved entity id, and the new revision.
    """
    given = {"whose": tenant, "made": entities_made}
    rows = _RAISED.rows(connection, given)
    if not rows:
        ensure(connection, tenant)
        rows = _RAISED.rows(connection, given)
    [row] = rows
    return row.next_entity - entities_made, row.rev
