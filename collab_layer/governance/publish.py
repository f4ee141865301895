"""Whether a facet of `facets`-level owners may be shown, shown again, or must wait.

Publishing a facet anew right after one owner joined or left would tell what that owner
holds. So a facet changes at most once per epoch, and only if the set of contributors
changed by none or by at least `minimum`.
Pure: no clock, no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Decision(Enum):
    """What to do with a fresh draft."""

    PUBLISH = "publish"
    KEEP = "keep"
    WITHHOLD = "withhold"


@dataclass(frozen=True, slots=True)
class Published:
    """What this reader was shown last under the same key."""

    contributors: frozenset[int]
    epoch: int
    erased: bool


def decide(
    previous: Published | None,
    contributors: frozenset[int],
    *,
    epoch: int,
    minimum: int,
    permitted: frozenset[int],
) -> Decision:
    """Compare a draft with what was shown last.

    Args:
        previous: The last publication, None if there was none.
        contributors: Distinct owners behind the draft.
        epoch: Number of the current epoch.
        minimum: The tenant's `min_contributors`.
        permitted: Those of the previous contributors the reader may still use.
    """
    if len(contributors) < minimum:
        return Decision.WITHHOLD
    if previous is None:
        return Decision.PUBLISH
    changed = len(previous.contributors ^ contributors) + int(previous.erased)
    if changed == 0 or (changed >= minimum and epoch > previous.epoch):
        return Decision.PUBLISH
    whole = not previous.erased and previous.contributors <= permitted
    return Decision.KEEP if whole else Decision.WITHHOLD


def may_follow(previous: Published | None, contributors: frozenset[int], *, minimum: int) -> bool:
    """Whether a facet tells nobody's part beside one shown before: the same owners, or `minimum` others at least."""
    if previous is None:
        return True
    changed = len(previous.contributors ^ contributors) + int(previous.erased)
    return changed == 0 or changed >= minimum


def epoch_of(now: int, hours: float) -> int:
    """The number of the epoch a moment lies in; `now` in microseconds."""
    return int(now // (hours * 3_600_000_000))
