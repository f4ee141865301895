"""The injection log, read: the answers of a reader; who received an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from collab_layer.errors import NotPermittedError
from collab_layer.flows.tools import Tools
from collab_layer.graph import derived, injections, names
from collab_layer.graph.cards import card_id
from collab_layer.graph.ids import number_of
from collab_layer.graph.tables import cards
from collab_layer.types.entity import Entity
from collab_layer.types.injection import Injection, Received, Use
from collab_layer.types.scope import Scope
from collab_layer.types.time import micros, moment

_CHUNK = 400

Receivers = tuple[Received, ...]


async def injections_of(
    tools: Tools, scope: Scope, entity: Entity | None, since: datetime | None, limit: int
) -> list[Injection]:
    """Answers that carried something of others, newest first; this process's last ones too.

    Raises:
        NotPermittedError: A principal asks for somebody else's.
    """
    if scope.principal is not None and entity not in (None, scope.principal):
        raise NotPermittedError(str(scope.principal), "see what was told to", str(entity))
    return await tools.in_thread(_listed, tools, scope, entity or scope.principal, since, limit)


def received_by(tools: Tools, connection: Connection, scope: Scope, id_: str) -> tuple[Received, ...]:
    """Who received an item, or anything derived of it; by name for the operator, numbers for others."""
    given = [id_, *_records(connection, scope.tenant, id_)]
    ids = sorted({*given, *derived.descendants(connection, scope.tenant, given)})
    seen = injections.received(connection, scope.tenant, ids, tools.log.since(tools.now()))
    return _told(connection, scope, {id_: seen})[id_]


def received_each(tools: Tools, connection: Connection, scope: Scope, ids: Sequence[str]) -> dict[str, Receivers]:
    """Who received each of these themselves; in two queries, however many there are."""
    since = tools.log.since(tools.now())
    return _told(connection, scope, injections.received_each(connection, scope.tenant, ids, since))


def _told(connection: Connection, scope: Scope, seen: Mapping[str, Sequence[injections.Seen]]) -> dict[str, Receivers]:
    if scope.principal is not None:
        return {id_: _counts(of) for id_, of in seen.items()}
    called = names.names_of(connection, scope.tenant, [one.entity for of in seen.values() for one in of])
    return {id_: tuple(_named(one, called) for one in of if one.entity in called) for id_, of in seen.items()}


def _named(one: injections.Seen, called: Mapping[int, str]) -> Received:
    first, last = moment(one.first), moment(one.last)
    return Received(
        entity=Entity.parse(called[one.entity]), use=_use(one.use), answers=one.answers, first=first, last=last
    )


def _records(connection: Connection, tenant: str, id_: str) -> list[str]:
    """The cards made of an interaction."""
    number = number_of(id_) if id_.startswith("i") else None
    c = cards.c
    query = select(c.id).where(c.tenant == tenant, c.interaction == number)
    return [] if number is None else [card_id(card) for card in connection.execute(query).scalars()]


def _counts(seen: Sequence[injections.Seen]) -> tuple[Received, ...]:
    by_use: dict[str, list[injections.Seen]] = {}
    for one in seen:
        by_use.setdefault(one.use, []).append(one)
    return tuple(
        Received(use=_use(use), readers=len(of), answers=sum(one.answers for one in of))
        for use, of in sorted(by_use.items())
    )


def _listed(tools: Tools, scope: Scope, entity: Entity | None, since: datetime | None, limit: int) -> list[Injection]:
    tools.log.flush()
    tenant, oldest = scope.tenant, tools.log.since(tools.now())
    start = oldest if since is None else max(oldest, micros(since))
    with tools.store.database.read() as connection:
        of = None
        if entity is not None:
            of = names.find(connection, tenant, [str(entity)]).get(str(entity))
            if of is None:
                return []
        rows = injections.listed(connection, tenant, of, start, limit)
        called = names.names_of(connection, tenant, [id_ for row in rows for id_ in (row.entity, row.principal) if id_])
    out: list[Injection] = []
    for row in rows:
        told, asked = called.get(row.entity), called.get(row.principal or 0)
        if told is None:
            continue
        known = asked is not None and (scope.principal is None or asked == str(scope.principal))
        out.append(
            Injection(
                at=moment(row.at),
                entity=Entity.parse(told),
                principal=Entity.parse(asked) if asked is not None and known else None,
                purpose=row.purpose if known or row.principal is None else None,
                use=_use(row.use),
                items=row.items,
            )
        )
    return out


def _use(text: str) -> Use:
    uses: dict[str, Use] = {"context": "context", "rank": "rank", "answer": "answer"}
    return uses.get(text, "delivery")
