"""Which facets a model made of what it was shown, so that nobody pays for them twice.

A row holds a keyed hash and ids, never words. Where one of its facets was erased the row
counts for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from collab_layer.graph import derived
from collab_layer.graph.derived import Item
from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import syntheses
from collab_layer.types.time import DAY

KEPT = 30 * DAY


def find(connection: Connection, tenant: str, key: str) -> list[Item] | None:
    """The facets made of it, strongest first, perhaps none; None if it was never asked or one was erased."""
    s = syntheses.c
    row = connection.execute(select(s.made).where(s.tenant == tenant, s.key == key)).first()
    if row is None:
        return None
    ids: list[str] = json.loads(row.made)
    items = derived.get(connection, tenant, ids)
    gone = derived.is_erased(connection, tenant, ids) | (set(ids) - set(items))
    return None if gone else [items[id_] for id_ in ids]


def put(connection: Connection, tenant: str, key: str, owner: int, ids: Sequence[str], now: int) -> None:
    """Note what was made; what the owner was made long ago is forgotten."""
    s = syntheses.c
    connection.execute(delete(syntheses).where(s.tenant == tenant, s.owner == owner, s.at < now - KEPT))
    row = {"tenant": tenant, "key": key, "owner": owner, "made": json.dumps(list(ids)), "at": now}
    upsert(connection, syntheses, [row], update=("made", "at"))


def erase(connection: Connection, tenant: str, owner: int) -> int:
    """Everything that was made for one reader; how many rows."""
    s = syntheses.c
    return connection.execute(delete(syntheses).where(s.tenant == tenant, s.owner == owner)).rowcount
