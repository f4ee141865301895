"""Where a tenant's upkeep stands: who is at it, how far it came, when it was last done.

Kept in the database under one name of `settings`, so that several workers do not do it twice
and a restart goes on where it stopped. A lease with a token lets another take over from one
that died; whoever lost it changes nothing more. Leases go by the database's clock, as all do;
which night it is goes by the layer's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter
from sqlalchemy import Connection, select

from collab_layer.errors import StaleLeaseError
from collab_layer.graph import present
from collab_layer.graph.engine import upsert
from collab_layer.graph.ids import next_id
from collab_layer.graph.names import lock
from collab_layer.graph.tables import interactions, settings
from collab_layer.types.time import DAY, SECOND

NAME = "consolidation"
LEASE = 60 * SECOND
ITEMS, EDGES = "items", "edges"
"""The two halves of a run: readers by id, then entities by id."""


@dataclass(frozen=True, slots=True)
class Night:
    """One tenant's state.

    Attributes:
        token: Of who is at it; 0 if the last run is done or none ever began.
        until: End of the lease by the database's clock, microseconds.
        started, finished: Of the run that is open, and of the last one that was done; 0 if never.
        half, after: The last reader or entity that is done.
        pages: Transactions so far.
        counts: Changes so far, by kind.
    """

    token: int = 0
    until: int = 0
    started: int = 0
    finished: int = 0
    half: str = ITEMS
    after: int = 0
    pages: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def open(self) -> bool:
        """Whether a run was begun and not finished."""
        return self.started > self.finished

    def on(self, half: str, after: int, counts: dict[str, int]) -> Night:
        """One page further."""
        return replace(self, half=half, after=after, counts=counts, pages=self.pages + 1)


_ADAPTER = TypeAdapter(Night)


def load(connection: Connection, tenant: str) -> Night:
    """The tenant's state; that of a tenant never looked after if there is none."""
    query = select(settings.c.value).where(settings.c.tenant == tenant, settings.c.name == NAME)
    text = connection.execute(query).scalar()
    return Night() if text is None else _ADAPTER.validate_json(text)


def claim(connection: Connection, tenant: str, now: int) -> Night | None:
    """Begin a run, or go on with one of the last day; None while somebody else is at it.

    Args:
        connection: In a write transaction.
        tenant: Whose.
        now: By the layer's clock, microseconds.
    """
    lock(connection, tenant)
    found, at = load(connection, tenant), present.read(connection)
    held = 0 < found.until - at <= LEASE  # one that ends later was taken before that clock was set back
    if found.open and found.token and held:
        return None
    if found.open and now - found.started < DAY:
        mine = replace(found, token=next_id(), until=at + LEASE)
    else:
        started = max(now, found.finished + 1)  # a clock may have been set back
        mine = Night(token=next_id(), until=at + LEASE, started=started, finished=found.finished)
    _save(connection, tenant, mine)
    return mine


def keep(connection: Connection, tenant: str, night: Night) -> None:
    """Save how far a run came, in the transaction of the page itself; the lease begins anew.

    Raises:
        StaleLeaseError: Another worker has taken it over; the page must not be written.
    """
    _check(connection, tenant, night.token)
    _save(connection, tenant, replace(night, until=present.read(connection) + LEASE))


def finish(connection: Connection, tenant: str, night: Night) -> None:
    """The run is done.

    Raises:
        StaleLeaseError: Another worker has taken it over.
    """
    _check(connection, tenant, night.token)
    _save(connection, tenant, Night(finished=night.started))


def release(connection: Connection, tenant: str, token: int) -> None:
    """Let anybody go on at once, if it is still ours."""
    lock(connection, tenant)
    found = load(connection, tenant)
    if found.token == token:
        _save(connection, tenant, replace(found, token=0, until=0))


def due(connection: Connection, tenant: str, now: int, hour: int) -> bool:
    """Whether the hour (UTC) has passed since the last run began; for a new tenant, since its first interaction.

    A night that was missed is made up for once.
    """
    found = load(connection, tenant)
    since = found.finished
    if not found.finished:
        i = interactions.c
        first = select(i.recorded_at).where(i.tenant == tenant).order_by(i.id).limit(1)
        since = connection.execute(first).scalar() or now
    return night_of(since, hour) < night_of(now, hour)


def night_of(at: int, hour: int) -> int:
    """The number of the day that begins at that hour (UTC)."""
    return (at - hour * 3_600 * SECOND) // DAY


def _check(connection: Connection, tenant: str, token: int) -> None:
    lock(connection, tenant)
    if load(connection, tenant).token != token:
        raise StaleLeaseError(tenant, "another worker has taken its upkeep over")


def _save(connection: Connection, tenant: str, night: Night) -> None:
    row = {"tenant": tenant, "name": NAME, "value": _ADAPTER.dump_json(night).decode()}
    upsert(connection, settings, [row], update=("value",))
