"""Which entities are one principal: said by the operator, counted once from the next read on.

Nothing is shared or widened by it: grants stay with each entity. What rests on several of them is
taken apart and made again with one voice; each change is a row in the audit table.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert

from collab_layer.errors import InputError, UnknownIdError
from collab_layer.flows.tools import Tools
from collab_layer.graph import aliases, merged, names, policy
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import audit
from collab_layer.types.alias import Alias
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.time import moment


async def tie(tools: Tools, tenant: str, entity: Entity, principal: Entity) -> Alias:
    """Count an entity as another one.

    Raises:
        InputError: They are the same, or one of them has no memory of its own.
    """
    for one in (entity, principal):
        if one.kind not in OWNER_KINDS:
            raise InputError(f"`{one}` has no memory of its own; an alias is a {', a '.join(sorted(OWNER_KINDS))}")
    if entity == principal:
        raise InputError(f"`{entity}` is itself already; name two entities")
    return await tools.in_thread(_tie, tools, tenant, entity, principal)


async def untie(tools: Tools, tenant: str, entity: Entity) -> None:
    """Count an alias by itself again.

    Raises:
        UnknownIdError: It is none.
    """
    await tools.in_thread(_untie, tools, tenant, entity)


async def listed(tools: Tools, tenant: str) -> list[Alias]:
    """Every alias of the tenant, by principal."""
    return await tools.in_thread(_listed, tools, tenant)


def _tie(tools: Tools, tenant: str, entity: Entity, principal: Entity) -> Alias:
    now = tools.now()
    with tools.store.database.write() as connection:
        names.share_with_erasure(connection, tenant)
        names.lock(connection, tenant)  # who else ties waits: what is known of aliases stays so until the commit
        ids = names.resolve(connection, tenant, [entity, principal])
        if aliases.tie(connection, tenant, ids[entity], ids[principal], now):
            _changed(connection, tenant, "alias", ids[entity], ids[principal], now)
    return next(one for one in _listed(tools, tenant) if entity in (one.entity, one.principal))


def _untie(tools: Tools, tenant: str, entity: Entity) -> None:
    with tools.store.database.write() as connection:
        names.share_with_erasure(connection, tenant)
        names.lock(connection, tenant)
        id_ = names.find(connection, tenant, [str(entity)]).get(str(entity))
        root = None if id_ is None else aliases.of(connection, tenant).get(id_)
        if id_ is None or root is None or not aliases.untie(connection, tenant, id_):
            raise UnknownIdError(str(entity))
        _changed(connection, tenant, "unalias", id_, root, tools.now())


def _changed(connection: Connection, tenant: str, action: str, entity: int, principal: int, now: int) -> None:
    """Let every process look again, and note it under the dense ids: names would outlive an erasure."""
    policy.raise_version(connection, tenant)
    names.bump(connection, tenant)
    for one in (entity, principal):
        merged.split(connection, tenant, one)
    row = {"tenant": tenant, "id": next_id(), "at": now, "principal": entity}
    connection.execute(insert(audit), [{**row, "action": action, "subject": f"entity {principal}"}])


def _listed(tools: Tools, tenant: str) -> list[Alias]:
    with tools.store.database.read() as connection:
        rows = aliases.listed(connection, tenant)
        called = names.names_of(connection, tenant, [id_ for row in rows for id_ in row[:2]])
    return [
        Alias(entity=Entity.parse(called[entity]), principal=Entity.parse(called[principal]), at=moment(at))
        for entity, principal, at in rows
        if entity in called and principal in called
    ]
