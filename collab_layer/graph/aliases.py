"""Entities that one principal acts as: counted once, whatever number of them there is.

In:   a tenant, dense ids, inside the caller's transaction.
Out:  alias to principal; a principal is never an alias itself, so that one look is enough.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import aliases


def of(connection: Connection, tenant: str) -> dict[int, int]:
    """Every alias of the tenant."""
    a = aliases.c
    return {
        row.entity: row.principal for row in connection.execute(select(a.entity, a.principal).where(a.tenant == tenant))
    }


def listed(connection: Connection, tenant: str) -> list[tuple[int, int, int]]:
    """Alias, principal and since when, by principal."""
    a = aliases.c
    query = select(a.entity, a.principal, a.at).where(a.tenant == tenant).order_by(a.principal, a.entity)
    return [(row.entity, row.principal, row.at) for row in connection.execute(query)]


def together(connection: Connection, tenant: str, entity: int) -> list[int]:
    """Every entity of the principal that an entity is, itself included."""
    known = of(connection, tenant)
    root = known.get(entity, entity)
    return sorted({entity, root, *(alias for alias, principal in known.items() if principal == root)})


def tie(connection: Connection, tenant: str, entity: int, principal: int, now: int) -> bool:
    """Make an entity an alias of a principal, with all that were aliases of it; False if they are one already."""
    known = of(connection, tenant)
    root = known.get(principal, principal)
    if root == known.get(entity, entity):
        return False
    a = aliases.c
    connection.execute(update(aliases).where(a.tenant == tenant, a.principal == entity).values(principal=root))
    row = {"tenant": tenant, "entity": entity, "principal": root, "at": now}
    upsert(connection, aliases, [row], update=("principal", "at"))
    return True


def untie(connection: Connection, tenant: str, entity: int) -> bool:
    """Let an alias count by itself again; whether it was one."""
    a = aliases.c
    return connection.execute(delete(aliases).where(a.tenant == tenant, a.entity == entity)).rowcount > 0


def drop(connection: Connection, tenant: str, entity: int) -> None:
    """An entity is erased: those that were its aliases stay one principal without it."""
    a = aliases.c
    connection.execute(delete(aliases).where(a.tenant == tenant, a.entity == entity))
    left = select(a.entity).where(a.tenant == tenant, a.principal == entity).order_by(a.entity)
    others = list(connection.execute(left).scalars())
    if others:
        untie(connection, tenant, others[0])
        mine = (a.tenant == tenant) & (a.principal == entity)
        connection.execute(update(aliases).where(mine).values(principal=others[0]))
