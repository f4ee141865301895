"""Whether a facet of `facets`-level owners may be shown, shown again, or must wait.

Publishing a facet anew right after one owner joined or left would tell what that owner
holds. So a facet changes at most once per epoch, and only if the set of contributors
changed by none or by at least `minimum`. Readers may pool what they were told, and ask
of the past and of the present: no two sets that anybody was ever told of under one key
differ by fewer.
Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Decision(Enum):
    """What to do with a fresh draft."""

    PUBLISH = "publish"
    KEEP = "keep"
    WITHHOLD = "withhold"


@dataclass(frozen=True, slots=True)
class Published:
    """What somebody was shown under the same key; of an erased one, those contributors that are left.

    Attributes:
        gone: Contributors left out since they were erased whole; they never come back.
        cut: Contributors left out since a record of theirs was erased; they may be there still.
    """

    contributors: frozenset[int]
    epoch: int
    erased: bool
    gone: int = 0
    cut: int = 0

    def changed(self, contributors: frozenset[int]) -> int:
        """How many contributors came or went since, at least."""
        return max(0, len(self.contributors ^ contributors) - self.cut) + self.gone

    def same(self, contributors: frozenset[int]) -> bool:
        """Whether they are certainly the same."""
        return not self.cut and not self.gone and self.contributors == contributors


def decide(
    previous: Published | None,
    contributors: frozenset[int],
    *,
    epoch: int,
    minimum: int,
    permitted: frozenset[int],
    told: Iterable[Published] = (),
) -> Decision:
    """Compare a draft with what was shown before.

    Args:
        previous: The last publication, None if there was none.
        contributors: Distinct owners behind the draft.
        epoch: Number of the current epoch.
        minimum: The tenant's `min_contributors`.
        permitted: Those of the previous contributors the reader may still use.
        told: Whatever anybody was shown of it, of the past and of the present.
    """
    if len(contributors) < minimum:
        return Decision.WITHHOLD
    apart = all(may_follow(one, contributors, minimum=minimum) for one in told)
    if previous is None:
        return Decision.PUBLISH if apart else Decision.WITHHOLD
    enough = previous.changed(contributors) >= minimum and epoch > previous.epoch
    if apart and (enough or previous.same(contributors)):
        return Decision.PUBLISH
    whole = not previous.erased and previous.contributors <= permitted
    return Decision.KEEP if whole else Decision.WITHHOLD


def may_follow(previous: Published, contributors: frozenset[int], *, minimum: int) -> bool:
    """Whether a facet tells nobody's part beside one shown before: the same owners, or `minimum` others at least."""
    return previous.same(contributors) or previous.changed(contributors) >= minimum


def epoch_of(now: int, hours: float) -> int:
    """The number of the epoch a moment lies in; `now` in microseconds."""
    return int(now // (hours * 3_600_000_000))
