"""Strings at the edge, dense integers inside.

In:   entities, inside a transaction.
Out:  their dense ids per tenant; unknown ones are made where that is allowed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, select, text, update

from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import entities, settings, tenants
from collab_layer.types.entity import Entity
from collab_layer.types.scope import Sharing

_CHUNK = 500
SALT = "salt"


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
    found = connection.execute(
        select(settings.c.value).where(settings.c.tenant == tenant, settings.c.name == SALT)
    ).scalar()
    return found or ""  # a tenant that nothing was written to yet has nobody to name


def find(connection: Connection, tenant: str, names: Iterable[str]) -> dict[str, int]:
    """The ids of those names that are known."""
    wanted = list(dict.fromkeys(names))
    found: dict[str, int] = {}
    for start in range(0, len(wanted), _CHUNK):
        rows = connection.execute(
            select(entities.c.name, entities.c.id).where(
                entities.c.tenant == tenant, entities.c.name.in_(wanted[start : start + _CHUNK])
            )
        )
        found.update((name, id_) for name, id_ in rows)
    return found


def resolve(
    connection: Connection, tenant: str, wanted: Iterable[Entity], displays: Mapping[Entity, str] | None = None
) -> dict[Entity, int]:
    """The ids of all, new ones made in the order given; `displays` names them for people."""
    ordered = list(dict.fromkeys(wanted))
    known = find(connection, tenant, (str(entity) for entity in ordered))
    missing = [entity for entity in ordered if str(entity) not in known]
    if missing:
        next_id, rev = bump(connection, tenant, entities_made=len(missing))
        # Taken the tenant's row: nobody else makes entities now. Look again for what they made.
        known.update(find(connection, tenant, (str(entity) for entity in missing)))
        missing = [entity for entity in missing if str(entity) not in known]
        rows = [
            {
                "tenant": tenant,
                "id": next_id + at,
                "name": str(entity),
                "kind": entity.kind,
                "display": (displays or {}).get(entity) or entity.id,
                "degree": 0,
                "rev": rev,
            }
            for at, entity in enumerate(missing)
        ]
        if rows:
            connection.execute(entities.insert(), rows)
        known.update({str(entity): next_id + at for at, entity in enumerate(missing)})
    return {entity: known[str(entity)] for entity in ordered}


def lock(connection: Connection, tenant: str) -> int:
    """Take the tenant's row until the commit, before any other lock; the generation it is at."""
    query = select(tenants.c.generation).where(tenants.c.tenant == tenant)
    if connection.dialect.name != "sqlite":  # there the whole database is ours already
        query = query.with_for_update()
    return connection.execute(query).scalar() or 0


def share_with_erasure(connection: Connection, tenant: str, *, erasing: bool = False) -> None:
    """Let writers of new facts run side by side, and an erasure alone (PostgreSQL; SQLite has one writer)."""
    if connection.dialect.name != "sqlite":
        kind = "" if erasing else "_shared"
        connection.execute(text(f"SELECT pg_advisory_xact_lock{kind}(hashtext(:tenant))"), {"tenant": tenant})


def bump(connection: Connection, tenant: str, *, entities_made: int = 0) -> tuple[int, int]:
    """Take the tenant's row until the commit: raise `rev`, reserve entity ids.

    Returns:
        The first reserved entity id, and the new revision.
    """
    raised = (
        update(tenants)
        .where(tenants.c.tenant == tenant)
        .values(rev=tenants.c.rev + 1, next_entity=tenants.c.next_entity + entities_made)
        .returning(tenants.c.next_entity, tenants.c.rev)
    )
    row = connection.execute(raised).first()
    if row is None:
        ensure(connection, tenant)
        row = connection.execute(raised).one()
    return row.next_entity - entities_made, row.rev
