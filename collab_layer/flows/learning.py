"""A worker's own turn at learning: edges between things, the gate, whom to mute, when enough is new.

Runs beside the worker's other work, one tenant at a time: propagation goes on meanwhile. Whether a
tenant is due is decided in the database, and who is at it holds a lease there, by the database's
clock: of several workers one does it. Killed on the way, nothing is half-written, and another
begins anew when the lease has ended. Never raises into the worker.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass
from sqlalchemy import Connection, func, select

from collab_layer.errors import CollabError, LayerClosedError
from collab_layer.flows import fit, gate, served
from collab_layer.flows.rebuild import rebuild
from collab_layer.flows.tools import Tools
from collab_layer.graph import item_edges, present
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import next_id
from collab_layer.graph.names import lock
from collab_layer.graph.tables import interactions, settings
from collab_layer.types.time import DAY, SECOND

log = logging.getLogger("collab_layer")

NAME = "learning"
LOOK = 600 * SECOND
"""Between two looks of one worker at one tenant."""
LEASE = 120 * SECOND
"""Of who is at it; prolonged at each third of it."""
FREE = 1
"""An end of a lease that is long past: whoever comes begins anew."""
PAUSE = 3_600 * SECOND
"""Between two turns at one tenant, whatever happens in it."""
NEW, SHARE = 200, 0.05
"""New interactions that make a turn worth while: so many, and such a share of all before."""
OWNERS = 300
_BROKEN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What is wrong with us or with a plugin, and not with the database."""


@dataclass(frozen=True)
class Turn:
    """The last turn: when, the newest interaction it knew, how many there were.

    Attributes:
        token: Of who is at it.
        until: End of its lease; 0 when it is done.
    """

    at: int = 0
    through: int = 0
    seen: int = 0
    token: int = 0
    until: int = 0


_TURN = TypeAdapter(Turn)


class Learning:
    """When one worker looks at which tenant again, and what it is at."""

    def __init__(self) -> None:
        self._looked: dict[str, int] = {}
        self._running: asyncio.Task[None] | None = None

    def turn(self, tools: Tools, tenant: str) -> None:
        """Begin to learn what a tenant's newest events teach, if it may be due; returns at once."""
        now, last = tools.now(), self._looked.get(tenant)
        if tools.consolidate_hour is None or (last is not None and last <= now < last + LOOK):
            return
        if self._running is None or self._running.done():
            self._looked[tenant] = now
            self._running = asyncio.ensure_future(self._look(tools, tenant))

    async def stop(self) -> None:
        """Let go of what is under way; the next worker begins it anew."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _look(self, tools: Tools, tenant: str) -> None:
        try:
            async with tools.taking(partial(claim, tools, tenant), partial(_begun_anew, tools, tenant)) as token:
                if token:
                    await _learn(tools, tenant, token)
                    await tools.in_thread(_set_until, tools, tenant, token, 0)
        except LayerClosedError:
            return
        except CollabError as error:
            log.warning("learning from `%s` waits: %s", tenant, error)
        except _BROKEN:
            log.exception("whether to learn from `%s` is not known", tenant)


async def _learn(tools: Tools, tenant: str, token: int) -> None:
    held = asyncio.ensure_future(_hold(tools, tenant, token))
    try:
        await rebuild(tools, tenant)
        if await tools.in_thread(_state, tools, tenant) == "set":  # what the operator chose stays
            await tools.in_thread(served.judge, tools, tenant)
        else:
            await fit.refit(tools, tenant, OWNERS)
    except _BROKEN:
        log.exception("learning from `%s` stopped; it is tried again when more is new", tenant)
    finally:
        held.cancel()


async def _hold(tools: Tools, tenant: str, token: int) -> None:
    """Prolong the lease until cancelled."""
    while True:
        await asyncio.sleep(LEASE / SECOND / 3)
        with suppress(CollabError):  # tried again at the next third
            await tools.in_thread(_set_until, tools, tenant, token, None)


def claim(tools: Tools, tenant: str) -> int:
    """Take the turn if it is due; its token, 0 if it is not."""
    now = tools.now()
    with tools.store.database.read() as connection:
        if not _due(connection, tenant, now):
            return 0
    with tools.store.database.write() as connection:
        lock(connection, tenant)
        if not _due(connection, tenant, now):  # another worker was faster
            return 0
        i = interactions.c
        newest, seen = connection.execute(select(func.max(i.id), func.count()).where(i.tenant == tenant)).one()
        mine = Turn(now, newest or 0, seen, token=next_id(), until=present.read(connection) + LEASE)
        _save(connection, tenant, mine)
    return mine.token


def _due(connection: Connection, tenant: str, now: int) -> bool:
    last = _last(connection, tenant)
    if last.until:
        return not 0 < last.until - present.read(connection) <= LEASE  # else somebody is at it
    if last.at <= now < last.at + PAUSE:
        return False
    if last.at and item_edges.load(connection, tenant) is None:  # an erasure took them
        return True
    i = interactions.c
    first = select(i.recorded_at).where(i.tenant == tenant).order_by(i.id).limit(1)
    before = last.at or connection.execute(first).scalar() or now
    wanted = 1 if now >= before + DAY else max(NEW, round(SHARE * last.seen))
    some = select(i.id).where(i.tenant == tenant, i.id > last.through).limit(wanted).subquery()
    return connection.execute(select(func.count()).select_from(some)).scalar_one() >= wanted


def _begun_anew(tools: Tools, tenant: str, token: int) -> None:
    """Whoever comes next begins the turn anew."""
    if token:
        _set_until(tools, tenant, token, FREE)


def _set_until(tools: Tools, tenant: str, token: int, until: int | None) -> None:
    """Set the end of our lease, None for another whole one; nothing if it is another's by now."""
    with tools.store.database.write() as connection:
        lock(connection, tenant)
        last = _last(connection, tenant)
        if last.token == token:
            end = present.read(connection) + LEASE if until is None else until
            _save(connection, tenant, replace(last, until=end))


def _save(connection: Connection, tenant: str, turn: Turn) -> None:
    row = {"tenant": tenant, "name": NAME, "value": _TURN.dump_json(turn).decode()}
    upsert(connection, settings, [row], update=("value",))


def _last(connection: Connection, tenant: str) -> Turn:
    query = select(settings.c.value).where(settings.c.tenant == tenant, settings.c.name == NAME)
    text = connection.execute(query).scalar()
    return Turn() if text is None else _TURN.validate_json(text)


def _state(tools: Tools, tenant: str) -> str:
    with tools.store.database.read() as connection:
        return gate.load(connection, tenant).state


__all__ = ["Learning", "claim"]
