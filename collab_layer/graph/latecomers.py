"""Names that became known later than texts that may mean them: those texts are to be read again.

In:   from when on names may be found that could not be before, in the caller's transaction.
Out:  one moment per tenant, the earliest, until it was seen to.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, delete, select

from collab_layer.graph.lean import Lean
from collab_layer.graph.tables import settings

_NAME = "names_known_late"
_SINCE = Lean(
    select(settings.c.value).where(settings.c.tenant == bindparam("tenant"), settings.c.name == bindparam("name"))
)


def note(connection: Connection, tenant: str, at: int) -> None:
    """Texts said at that moment or later may mean what could not be meant before."""
    before = since(connection, tenant)
    if before is None or at < before:
        done(connection, tenant)
        connection.execute(settings.insert(), [{"tenant": tenant, "name": _NAME, "value": str(at)}])


def since(connection: Connection, tenant: str) -> int | None:
    """The earliest moment that was noted."""
    rows = _SINCE.tuples(connection, {"tenant": tenant, "name": _NAME})
    return int(rows[0][0]) if rows else None


def done(connection: Connection, tenant: str) -> None:
    """It was seen to."""
    connection.execute(delete(settings).where(settings.c.tenant == tenant, settings.c.name == _NAME))
