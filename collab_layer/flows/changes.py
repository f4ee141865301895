"""What changed, since a moment, in the memories that an entity may read.

load:   versions of its own memories and of those of owners that grant it records, one snapshot;
read:   the entity's own words that only its stores have, each store asked once;
save:   nothing.

Owners that share only facets never appear: a change would be told of one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import select, tuple_

from collab_layer.errors import BackendError, InputError, UnknownIdError
from collab_layer.flows import view
from collab_layer.flows.context import permit
from collab_layer.flows.tools import Tools
from collab_layer.graph.cards import card_id
from collab_layer.graph.policy import NOBODY
from collab_layer.graph.reader import Reading
from collab_layer.graph.store import Opened
from collab_layer.graph.tables import cards, interactions, removals
from collab_layer.plugins.specs import Leaving
from collab_layer.types.changed import Changed, ChangeKind
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.scope import Level, Scope
from collab_layer.types.time import moment

_CHUNK = 200


@dataclass(slots=True)
class _Version:
    """One version of one memory, with its words as far as they may be shown."""

    id: int
    interaction: int
    owner: Entity
    ref: MemoryRef
    text: str | None
    at: int
    valid_to: int
    recorded_at: int
    noted: int

    @property
    def memory(self) -> tuple[str, str, Entity]:
        """Whatever its version."""
        return self.ref.backend, self.ref.id, self.owner


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found: versions concerned, what each statement took the place of, removals."""

    versions: list[_Version]
    replaced: Mapping[int, int]
    removed: list[Changed]
    own: Entity


async def changes(tools: Tools, scope: Scope, entity: Entity, since: int, until: int | None) -> list[Changed]:
    """Every change after `since` and up to `until`, the newest last.

    Raises:
        InputError: `until` is before `since`.
        UnknownIdError: Nothing is known of the entity, and it may read nobody.
        NotPermittedError: The principal may not read as the entity.
    """
    now = tools.now()
    end = now if until is None else until
    if end < since:
        raise InputError("`until` is before `since`; nothing can have changed between them")
    look = await tools.in_thread(_look, tools, scope, entity, since, end)
    await _read_own(tools, scope.tenant, look)
    told = [*_told(look, since, end), *look.removed]
    return sorted(told, key=lambda one: (one.at, one.recorded_at, str(one.whose), one.old or "", one.new or ""))


# -- load ------------------------------------------------------------------------------


def _look(tools: Tools, scope: Scope, entity: Entity, since: int, until: int) -> _Look:
    with tools.store.reading(scope, entity, tools.now()) as opened:
        permit(opened, scope, entity)
        if opened.focus == NOBODY and opened.reading.audience.alone:
            raise UnknownIdError(str(entity))
        reading = opened.reading
        concerned = _concerned(opened, since, until)
        numbers, replaced = _with_replaced(reading, concerned)
        versions = _versions(tools, opened, scope.principal or entity, numbers)
        return _Look(versions, replaced, _removed(opened, since, until), entity)


def _readable(opened: Opened, owners: Any) -> Any:
    reading = opened.reading
    return (owners == opened.focus) | (reading.audience.levels(owners, reading.index.is_owner(owners)) >= Level.RECORDS)


def _concerned(opened: Opened, since: int, until: int) -> list[int]:
    """Cards that began or ended between the two moments."""
    held = opened.reading.index.all_cards
    began = (held.at > since) & (held.at <= until)
    ended = (held.valid_to > since) & (held.valid_to <= until)
    rows = np.flatnonzero(held.alive & (began | ended) & _readable(opened, held.owner))
    return held.id[rows].tolist()


def _with_replaced(reading: Reading, concerned: Sequence[int]) -> tuple[set[int], dict[int, int]]:
    """The interactions behind some cards with all their versions, and who took whose place."""
    connection, tenant = reading.connection, reading.tenant
    c, i = cards.c, interactions.c
    refs: set[tuple[str, str]] = set()
    for part in _parts(concerned):
        rows = connection.execute(select(c.backend, c.native_id).where(c.tenant == tenant, c.id.in_(part)))
        refs.update((row.backend, row.native_id) for row in rows)
    numbers: set[int] = set()
    for part in _parts(refs):
        mine = (c.tenant == tenant) & tuple_(c.backend, c.native_id).in_(part)
        numbers.update(connection.execute(select(c.interaction).where(mine)).scalars())
    replaced: dict[int, int] = {}
    for part in _parts(numbers):
        either = i.id.in_(part) | i.replaces.in_(part)
        query = select(i.id, i.replaces).where(i.tenant == tenant, i.replaces.is_not(None), either)
        replaced.update((row.id, row.replaces) for row in connection.execute(query))
    return numbers | set(replaced) | set(replaced.values()), replaced


def _versions(tools: Tools, opened: Opened, reader: Entity, numbers: Iterable[int]) -> list[_Version]:
    """Versions with the words that are kept here, oldest first; what a share filter holds back is left out."""
    reading, c, i = opened.reading, cards.c, interactions.c
    columns = (c.id, c.interaction, c.owner, c.backend, c.native_id, c.version, c.text, c.at, c.valid_to, c.superseded)
    here = (i.tenant == c.tenant) & (i.id == c.interaction)
    rows: list[Any] = []
    for part in _parts(numbers):
        mine = (c.tenant == reading.tenant) & c.interaction.in_(part) & c.quarantine.is_(None)
        query = select(*columns, i.text.label("said"), i.recorded_at).join(interactions, here).where(mine)
        rows += reading.connection.execute(query).all()
    rows = [row for row in rows if bool(_readable(opened, np.array([row.owner]))[0])]
    own = [row.owner == opened.focus for row in rows]
    texts = [row.said if mine and row.text is None else row.text for row, mine in zip(rows, own, strict=True)]
    leaving = [
        at for at, (row, text) in enumerate(zip(rows, texts, strict=True)) if text and row.owner != opened.reader
    ]
    owners = [view.entity_of(reading, row.owner) for row in rows]
    let_go = tools.leaving([Leaving(owners[at], reader, texts[at] or "") for at in leaving])
    for at, text in zip(leaving, let_go, strict=True):
        texts[at] = text
    found = [
        _Version(
            row.id, row.interaction, owner, MemoryRef(backend=row.backend, id=row.native_id, version=row.version),
            text, row.at, row.valid_to, row.recorded_at, row.superseded or row.recorded_at,
        )
        for row, owner, text in zip(rows, owners, texts, strict=True)
    ]  # fmt: skip
    return sorted(found, key=lambda one: (one.at, one.interaction))


def _removed(opened: Opened, since: int, until: int) -> list[Changed]:
    reading, r = opened.reading, removals.c
    between = (r.tenant == reading.tenant) & (r.at > since) & (r.at <= until)
    rows = reading.connection.execute(select(r.owner, r.backend, r.at).where(between)).all()
    readable = _readable(opened, np.array([row.owner for row in rows], np.int64))
    return [
        Changed(
            kind=ChangeKind.REMOVED,
            whose=view.entity_of(reading, row.owner),
            at=moment(row.at),
            recorded_at=moment(row.at),
        )
        for row, may in zip(rows, readable.tolist(), strict=True)
        if may
    ]


# -- read ------------------------------------------------------------------------------


async def _read_own(tools: Tools, tenant: str, look: _Look) -> None:
    """The entity's own words that are in its stores alone; a store that is down leaves them out."""
    wanted: dict[str, dict[str, _Version]] = {}
    for version in look.versions:
        if version.owner == look.own and version.text is None and version.ref.backend:
            wanted.setdefault(version.ref.backend, {})[version.ref.id] = version
    for backend, of in wanted.items():
        store = tools.backends.get((tenant, backend))
        if store is None:
            continue
        try:
            found = await store.read([version.ref for version in of.values()])
        except BackendError:
            tools.standing.down(tenant, backend)
            continue
        for record in found:
            for version in look.versions:
                if version.ref == record.ref and version.owner == record.owner == look.own:
                    version.text = record.text


# -- told ------------------------------------------------------------------------------


def _told(look: _Look, since: int, until: int) -> list[Changed]:
    """Each version that held at all, beside what it took the place of; and ends that nothing followed."""
    held = [version for version in look.versions if version.valid_to > version.at]
    by_number = {version.interaction: version for version in held}
    last: dict[tuple[str, str, Entity], _Version] = {}
    followed: set[int] = set()
    out: list[Changed] = []
    for version in held:
        before = last.get(version.memory)
        if before is None or before.valid_to != version.at:
            before = by_number.get(look.replaced.get(version.interaction, -1))
        if before is not None and (before.valid_to != version.at or before.id in followed):
            before = None
        last[version.memory] = version
        if before is not None:
            followed.add(before.id)
        if since < version.at <= until:
            kind = ChangeKind.ADDED if before is None else ChangeKind.CHANGED
            out.append(_changed(version, kind, version.at, version.recorded_at, before, version))
    for version in held:
        if version.id not in followed and since < version.valid_to <= until:
            out.append(_changed(version, ChangeKind.ENDED, version.valid_to, version.noted, version, None))
    return out


def _changed(
    what: _Version, kind: ChangeKind, at: int, recorded_at: int, old: _Version | None, new: _Version | None
) -> Changed:
    return Changed(
        kind=kind,
        what=card_id(what.id),
        whose=what.owner,
        old=None if old is None else old.text,
        new=None if new is None else new.text,
        at=moment(at),
        recorded_at=moment(recorded_at),
        ref=what.ref if what.ref.backend else None,
    )


def _parts(values: Iterable[Any]) -> Iterable[list[Any]]:
    wanted = sorted(set(values))
    return (wanted[start : start + _CHUNK] for start in range(0, len(wanted), _CHUNK))


__all__ = ["changes"]
