"""What a tenant and its teams allow at most: recorded by the operator, in force at the very next read.

In:   a team, or none for the tenant, and its limits.
Out:  one commit with a row of audit; texts that nobody may quote any more go with it.
A team's policy can be stricter than its tenant's, never looser.
"""

from __future__ import annotations

from collab_layer.flows.share import note, texts_anew
from collab_layer.flows.tools import Tools
from collab_layer.governance.limits import TENANT, Limit, check_stricter, together
from collab_layer.graph import limits, merged, names, policy
from collab_layer.types.entity import Entity
from collab_layer.types.scope import Level, Policy, Scope
from collab_layer.types.time import DAY


async def set_policy(tools: Tools, tenant: str, wanted: Policy) -> Policy:
    """Record a policy in place of the one before; what holds from now on, the tenant's part included.

    Raises:
        PolicyError: A team's would be looser than the tenant's.
    """
    return await tools.in_thread(_set, tools, tenant, wanted)


async def listed(tools: Tools, tenant: str) -> list[Policy]:
    """The tenant's policy and those of its teams, each as it was recorded."""
    return await tools.in_thread(_listed, tools, tenant)


def _set(tools: Tools, tenant: str, wanted: Policy) -> Policy:
    now, new = tools.now(), _limit(wanted)
    with tools.store.database.write() as connection:
        names.ensure(connection, tenant)
        names.lock(connection, tenant)
        least = Limit(TENANT, minimum=policy.sharing(connection, tenant).min_contributors)
        known = {one.team: one for one in limits.of(connection, tenant, now)}
        whole = together([least, *(one for team, one in known.items() if team == TENANT)], TENANT)
        check_stricter(new, least if new.team == TENANT else whole)
        limits.put(connection, tenant, new, now)
        policy.raise_version(connection, tenant)
        merged.split(connection, tenant, None)
        note(connection, Scope(tenant=tenant), None, "limits", new.team or "tenant", now)
        texts_anew(tools, connection, tenant, now)
    tools.store.database.compact()
    return _policy(together([least if new.team == TENANT else whole, new], new.team))


def _listed(tools: Tools, tenant: str) -> list[Policy]:
    with tools.store.database.read() as connection:
        return [_policy(one) for one in limits.of(connection, tenant, tools.now())]


def _limit(wanted: Policy) -> Limit:
    return Limit(
        TENANT if wanted.team is None else str(wanted.team),
        minimum=wanted.min_contributors,
        level=None if wanted.level is None else policy.LEVELS[wanted.level],
        purposes=None if wanted.purposes is None else frozenset(wanted.purposes),
        longest=None if wanted.longest_days is None else int(wanted.longest_days * DAY),
    )


def _policy(limit: Limit) -> Policy:
    return Policy(
        team=Entity.parse(limit.team) if limit.team else None,
        min_contributors=limit.minimum,
        level=None if limit.level is None else "facets" if limit.level < Level.RECORDS else "records",
        purposes=None if limit.purposes is None else tuple(sorted(limit.purposes)),
        longest_days=None if limit.longest is None else limit.longest / DAY,
    )


__all__ = ["listed", "set_policy"]
