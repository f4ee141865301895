"""Where a tenant stands: the one row that every read asks for first.

In:   a snapshot.
Out:  the versions by which what is kept in memory is known to hold, and which rare things there are at all.
What is not there need not be asked for: a read that finds nothing changed costs one round trip for it.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, exists, select

from collab_layer.graph.lean import Lean
from collab_layer.graph.names import SALT
from collab_layer.graph.tables import foreign_things, limits, notices, settings, tenants


class State(NamedTuple):
    """A tenant in one snapshot; one that nothing was written to yet is all zeros.

    Attributes:
        rev: Raised with every change of cards or entities.
        generation: Raised by every erasure.
        policy: Raised by every change of a grant, a limit or the rules.
        sharing: The tenant's policy as it is stored.
        salt: The tenant's secret for pseudonyms.
        limited, noticed, federated: Whether there are limits, notices, candidates of other organisations.
    """

    rev: int = 0
    generation: int = 0
    policy: int = 0
    sharing: str | None = None
    salt: str = ""
    limited: bool = False
    noticed: bool = False
    federated: bool = False


_T = tenants.c
_STATE = Lean(
    select(
        _T.rev,
        _T.generation,
        _T.policy,
        _T.sharing,
        select(settings.c.value).where(settings.c.tenant == _T.tenant, settings.c.name == SALT).scalar_subquery(),
        exists().where(limits.c.tenant == _T.tenant),
        exists().where(notices.c.tenant == _T.tenant),
        exists().where(foreign_things.c.tenant == _T.tenant),
    ).where(_T.tenant == bindparam("tenant"))
)


def state(connection: Connection, tenant: str) -> State:
    """Where the tenant stands."""
    rows = _STATE.tuples(connection, {"tenant": tenant})
    if not rows:
        return State()
    rev, generation, policy, sharing, salt, *there = rows[0]
    return State(rev, generation, policy, sharing, salt or "", *map(bool, there))


__all__ = ["State", "state"]
