"""Who reads, for what, as of when; who shares what with whom.

Every read carries a `Scope`. A `Grant` is the only way from one owner to another.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field

from collab_layer.types.entity import Entity, Text, Value
from collab_layer.types.time import UtcTime

EVERYONE = "tenant"
"""The audience of a grant that means everybody in the tenant."""


class Level(IntEnum):
    """How much of an owner a reader may use."""

    NONE = 0
    FACETS = 1
    """Distilled only, with at least `min_contributors` distinct owners behind each."""
    RECORDS = 2
    """Verbatim evidence; the owner consents to being quoted."""


LevelName = Literal["facets", "records"]


class Scope(Value):
    """What every read is bound to.

    Attributes:
        tenant: Nothing crosses it.
        principal: Who is reading. `None` is the operator of an embedded layer, who then
            reads as the entity asked about.
        purpose: Compared with the purpose of a grant.
        as_of: Read the past: only what had happened by then, under today's grants.
    """

    tenant: str
    principal: Entity | None = None
    purpose: str | None = None
    as_of: UtcTime | None = None


class Grant(Value):
    """One owner lets an audience use its memories.

    Attributes:
        id: Opaque; pass it to `revoke`.
        owner: Whose memories; `None` is the tenant's own policy, a default for every owner.
        to: An entity, a group such as `team:support` (its members), a kind such as
            `agent:*` written as `kind:agent`, or `tenant`.
        level: `facets` or `records`.
        purpose: Only readers acting for this purpose; any purpose if `None`.
        until: Ends by itself at this time.
        denied: An owner's opt-out from the tenant's policy.
    """

    id: str
    owner: Entity | None
    to: str
    level: LevelName
    purpose: str | None = None
    until: UtcTime | None = None
    denied: bool = False


class Reach(StrEnum):
    """How far sharing goes when no owner said anything."""

    PRIVATE = "private"
    TENANT = "within_tenant"


class Sharing(Value):
    """The tenant's default policy; private unless said otherwise.

    Attributes:
        reach: Nobody, or everybody within the tenant.
        level: What the reach gives; owners can opt out.
        min_contributors: Distinct owners behind each facet of `facets`-level owners, >= 2.
        delta: The most that one principal moves a facet's confidence, in (0, 1].
        epoch_hours: A published facet changes at most once per epoch, in hours, > 0.
    """

    reach: Reach = Reach.PRIVATE
    level: LevelName = "facets"
    min_contributors: int = Field(default=3, ge=2, le=1000)
    delta: float = Field(default=0.25, gt=0, le=1)
    epoch_hours: float = Field(default=24.0, gt=0, le=24 * 365)

    @classmethod
    def private(cls, *, min_contributors: int = 3, delta: float = 0.25) -> Self:
        """Nothing is shared until an owner grants it. The default."""
        return cls(min_contributors=min_contributors, delta=delta)

    @classmethod
    def within_tenant(cls, level: LevelName = "facets", *, min_contributors: int = 3, delta: float = 0.25) -> Self:
        """Everybody in the tenant may use everybody's memories at `level`, minus opt-outs."""
        return cls(reach=Reach.TENANT, level=level, min_contributors=min_contributors, delta=delta)


class Policy(Value):
    """What a team, or the tenant, allows at most; what is None is not limited.

    It concerns grants and notices to the team, and those by its members to anybody. Where several
    concern one grant, the strictest of each part counts.

    Attributes:
        team: Such as `team:support`; `None` is the tenant.
        min_contributors: Distinct owners behind each facet that a member reads, or may be behind of.
        level: The most that a grant may give.
        purposes: A grant must name one of these, and is read for one of these only.
        longest_days: How long a grant may hold.
    """

    team: Entity | None = None
    min_contributors: int | None = Field(default=None, ge=2, le=1000)
    level: LevelName | None = None
    purposes: tuple[Annotated[Text, Field(min_length=1, max_length=200)], ...] | None = Field(
        default=None, max_length=100
    )
    longest_days: float | None = Field(default=None, gt=0, le=36_500, allow_inf_nan=False)


__all__ = ["EVERYONE", "Grant", "Level", "LevelName", "Policy", "Reach", "Scope", "Sharing"]
