"""What a tenant or a team allows at most: who it concerns, what a grant may be, what of one still holds.

In:   limits with the members of their teams; a grant about to be made, or one made before.
Out:  a refusal, or the grant cut to what is allowed.
Pure: no clock, no I/O. Several limits hold together: the strictest of each part counts, so that
a team's can never loosen its tenant's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from collab_layer.errors import PolicyError
from collab_layer.governance.grants import GrantRow
from collab_layer.types.scope import EVERYONE, Level
from collab_layer.types.time import DAY, FOREVER

TENANT = ""
"""The name under which the tenant's own limits are kept."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What one team, or the tenant, allows; None sets no limit.

    Attributes:
        team: Its name; `TENANT` for the tenant.
        members: Dense ids of those in the team now, and of the team itself.
        minimum: Distinct owners behind a facet.
        level: The most a grant may give.
        purposes: Only for one of these.
        longest: How long a grant may hold, microseconds.
    """

    team: str
    members: frozenset[int] = frozenset()
    minimum: int | None = None
    level: Level | None = None
    purposes: frozenset[str] | None = None
    longest: int | None = None

    def concerns(self, owner: int | None, audience: str) -> bool:
        """Whether a grant is by a member, to the team, or in the tenant."""
        return self.team in (TENANT, audience) or owner in self.members


def check(
    limits: Iterable[Limit],
    owner: int | None,
    audience: str,
    level: Level,
    purpose: str | None,
    until: int,
    now: int,
) -> None:
    """Refuse a grant that is more than a limit allows.

    Raises:
        PolicyError: It names the limit, and what it allows.
    """
    for limit in limits:
        if not limit.concerns(owner, audience):
            continue
        if limit.level is not None and level > limit.level:
            raise PolicyError(limit.team, "level", level.name.lower(), limit.level.name.lower())
        if limit.purposes is not None and purpose not in limit.purposes:
            raise PolicyError(limit.team, "purpose", purpose or "any", ", ".join(sorted(limit.purposes)) or "none")
        if limit.longest is not None and until > now + limit.longest:
            asked = "for ever" if until >= FOREVER else f"{(until - now) / DAY:.2f} days"
            raise PolicyError(limit.team, "until", asked, f"{limit.longest / DAY:.2f} days")


def check_stricter(new: Limit, tenant: Limit) -> None:
    """Refuse a team's limit that says more than the tenant's allows.

    Raises:
        PolicyError: It would be looser in that part.
    """
    if new.minimum is not None and new.minimum < (tenant.minimum or 0):
        raise PolicyError(TENANT, "min_contributors", str(new.minimum), f"{tenant.minimum} at least")
    if new.level is not None and tenant.level is not None and new.level > tenant.level:
        raise PolicyError(TENANT, "level", new.level.name.lower(), tenant.level.name.lower())
    if new.purposes is not None and tenant.purposes is not None and not new.purposes <= tenant.purposes:
        asked = ", ".join(sorted(new.purposes - tenant.purposes))
        raise PolicyError(TENANT, "purposes", asked, ", ".join(sorted(tenant.purposes)) or "none")
    if new.longest is not None and tenant.longest is not None and new.longest > tenant.longest:
        days = (f"{one / DAY:.2f} days" for one in (new.longest, tenant.longest))
        raise PolicyError(TENANT, "longest_days", *days)


def together(limits: Sequence[Limit], team: str) -> Limit:
    """The strictest of each part."""
    purposes = [one.purposes for one in limits if one.purposes is not None]
    return Limit(
        team,
        minimum=max((one.minimum for one in limits if one.minimum is not None), default=None),
        level=min((one.level for one in limits if one.level is not None), default=None),
        purposes=reduce(lambda one, other: one & other, purposes) if purposes else None,
        longest=min((one.longest for one in limits if one.longest is not None), default=None),
    )


def cut(limits: Sequence[Limit], grants: Iterable[GrantRow]) -> list[GrantRow]:
    """Grants as far as the limits of today allow them, opt-outs as they are, and a ceiling for each member of a team.

    A ceiling is a row of its own: it also holds for what the tenant's policy gives of the member.
    """
    out = [_cut(limits, grant) for grant in grants]
    for limit in limits if out else ():
        if limit.team != TENANT and (limit.level is not None or limit.purposes is not None):
            most = Level.RECORDS if limit.level is None else limit.level
            out += [
                GrantRow(member, EVERYONE, most, None, FOREVER, False, purposes=limit.purposes, ceiling=True)
                for member in sorted(limit.members)
            ]
    return out


def minimum(limits: Iterable[Limit], at_least: int, names: frozenset[str], seen: frozenset[int]) -> int:
    """Contributors behind a facet: for a reader under these names that sees these owners distilled."""
    mine = [one.minimum for one in limits if one.minimum is not None and _near(one, names, seen)]
    return max([at_least, *mine])


def allows(limits: Iterable[Limit], owner: int, audience: str, purpose: str | None, at: int, now: int) -> bool:
    """Whether a notice that was made at that time may still be read for that purpose."""
    mine = [one for one in limits if one.concerns(owner, audience)]
    return all(one.purposes is None or purpose in one.purposes for one in mine) and all(
        one.longest is None or now < at + one.longest for one in mine
    )


def _cut(limits: Sequence[Limit], grant: GrantRow) -> GrantRow:
    mine = [one for one in limits if one.concerns(grant.owner, grant.audience)]
    if grant.denied or not mine:
        return grant
    most = together(mine, TENANT)
    # What the tenant itself gives has no end of its own to cut.
    until = (
        grant.until if most.longest is None or grant.owner is None else min(grant.until, grant.created + most.longest)
    )
    level = grant.level if most.level is None else min(grant.level, most.level)
    return replace(grant, level=level, until=until, purposes=most.purposes)


def _near(limit: Limit, names: frozenset[str], seen: frozenset[int]) -> bool:
    return limit.team == TENANT or limit.team in names or bool(limit.members & seen)


__all__ = ["TENANT", "Limit", "allows", "check", "check_stricter", "cut", "minimum", "together"]
