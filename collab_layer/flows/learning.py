"""A worker's own turn at learning: edges between things, then the gate, when enough is new.

Whether a tenant is due is decided and claimed in the database, so that of several workers one
does it. Killed on the way, nothing is half-written, and the next turn is an hour later.
"""

from __future__ import annotations

import logging

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass
from sqlalchemy import Connection, func, select

from collab_layer.errors import StoreError
from collab_layer.flows import fit, gate
from collab_layer.flows.rebuild import rebuild
from collab_layer.flows.tools import Tools
from collab_layer.graph import item_edges
from collab_layer.graph.engine import upsert
from collab_layer.graph.names import lock
from collab_layer.graph.tables import interactions, settings
from collab_layer.types.time import DAY, SECOND

log = logging.getLogger("collab_layer")

NAME = "learning"
LOOK = 600 * SECOND
"""Between two looks of one worker at one tenant."""
PAUSE = 3_600 * SECOND
"""Between two turns at one tenant, whatever happens in it."""
NEW, SHARE = 200, 0.05
"""New interactions that make a turn worth while: so many, and such a share of all before."""
OWNERS = 300


@dataclass(frozen=True)
class Turn:
    """The last turn: when, the newest interaction it knew, how many there were."""

    at: int = 0
    through: int = 0
    seen: int = 0


_TURN = TypeAdapter(Turn)


class Learning:
    """When one worker looks at which tenant again."""

    def __init__(self) -> None:
        self._again: dict[str, int] = {}

    async def turn(self, tools: Tools, tenant: str) -> bool:
        """Learn what a tenant's newest events teach, if it is due; whether anything was done.

        Raises:
            StoreError: The database refused.
        """
        now = tools.now()
        if tools.consolidate_hour is None or now < self._again.get(tenant, 0):
            return False
        self._again[tenant] = now + LOOK
        if not await tools.in_thread(claim, tools, tenant):
            return False
        try:
            await rebuild(tools, tenant)
            if await tools.in_thread(_state, tools, tenant) != "set":  # what the operator chose stays
                await fit.refit(tools, tenant, OWNERS)
        except StoreError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            log.exception("learning from `%s` stopped; it is tried again when more is new", tenant)
            return False
        return True


def claim(tools: Tools, tenant: str) -> bool:
    """Take the turn if it is due."""
    now = tools.now()
    with tools.store.database.read() as connection:
        if not _due(connection, tenant, now):
            return False
    with tools.store.database.write() as connection:
        lock(connection, tenant)
        if not _due(connection, tenant, now):  # another worker was faster
            return False
        i = interactions.c
        newest, seen = connection.execute(select(func.max(i.id), func.count()).where(i.tenant == tenant)).one()
        value = _TURN.dump_json(Turn(now, newest or 0, seen)).decode()
        upsert(connection, settings, [{"tenant": tenant, "name": NAME, "value": value}], update=("value",))
    return True


def _due(connection: Connection, tenant: str, now: int) -> bool:
    last = _last(connection, tenant)
    if last.at <= now < last.at + PAUSE:
        return False
    if last.at and item_edges.load(connection, tenant) is None:  # an erasure took them
        return True
    wanted = 1 if last.at and now >= last.at + DAY else max(NEW, round(SHARE * last.seen))
    i = interactions.c
    some = select(i.id).where(i.tenant == tenant, i.id > last.through).limit(wanted).subquery()
    return connection.execute(select(func.count()).select_from(some)).scalar_one() >= wanted


def _last(connection: Connection, tenant: str) -> Turn:
    query = select(settings.c.value).where(settings.c.tenant == tenant, settings.c.name == NAME)
    text = connection.execute(query).scalar()
    return Turn() if text is None else _TURN.validate_json(text)


def _state(tools: Tools, tenant: str) -> str:
    with tools.store.database.read() as connection:
        return gate.load(connection, tenant).state


__all__ = ["Learning", "claim"]
