"""How much a statement is supported, such that no single owner can move it far.

In:   snippets of neighbours, each with an owner, a level and a weight.
Out:  who may be counted for a statement, and a confidence in [0, 1]. Not a probability.
Pure.

Owners have shares p >= 0 of the weight, capped and adding up to 1. Let S be the owners behind a
statement, R those of them at RECORDS level, m the fewest contributors, step = delta rounded down
to tenths:

    records  = min(sum of p over R, |R| * delta)
    together = min(sum of p over S, (|S| - m + 1) * step), rounded down to tenths; 0 if |S| < m
    confidence = max(records, together)

When one owner comes or goes, another's share changes by no more in sum than that owner's own
share, which is at most max(step, 1 / n). So each term moves by at most delta, and their maximum
too; also where the statement vanishes, since with |S| = m `together` is at most one step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, fsum

from collab_layer.types.graph import Snippet
from collab_layer.types.scope import Level


@dataclass(frozen=True, slots=True)
class Pool:
    """Snippets by link, strongest first, and each owner's level and share of the weight."""

    by_link: Mapping[int, Sequence[Snippet]]
    level: Mapping[int, Level]
    share: Mapping[int, float]
    min_contributors: int
    delta: float


@dataclass(frozen=True, slots=True)
class Support:
    """Whom a statement may count, how sure it is, and their shares added up."""

    owners: frozenset[int]
    confidence: float
    mass: float


def pool(snippets: Iterable[Snippet], *, min_contributors: int, delta: float) -> Pool:
    """Group what may be used; snippets whose weight is not positive are left out.

    An owner weighs as much as its strongest snippet, and counts as FACETS-level if any of its
    snippets is. Owners that are aliases of one principal are one owner here, under its id.

    Raises:
        ValueError: `delta` is not in (0, 1] or `min_contributors` is below 1.
    """
    if not 0 < delta <= 1 or min_contributors < 1:
        raise ValueError(f"delta {delta} must be in (0, 1], min_contributors {min_contributors} at least 1")
    weights: dict[int, float] = {}
    level: dict[int, Level] = {}
    by_link: defaultdict[int, list[Snippet]] = defaultdict(list)
    nothing = Level.NONE
    for snippet in sorted(snippets, key=lambda s: (-s.weight, -s.at, s.source)):
        weight, permits, links = snippet.weight, snippet.level, snippet.links
        if weight > 0 and permits > nothing:
            voice = snippet.voice
            if voice not in weights:
                weights[voice], level[voice] = weight, permits
            elif permits < level[voice]:
                level[voice] = permits
            for link in links if len(links) == 1 else dict.fromkeys(links):
                by_link[link].append(snippet)
    return Pool(by_link, level, shares(weights, tenths(delta) or delta), min_contributors, delta)


def shares(weights: Mapping[int, float], cap: float) -> dict[int, float]:
    """Shares of the sum, after each weight was cut to `cap` of the cut sum.

    Args:
        weights: Owner to weight, > 0.
        cap: In (0, 1]. With n <= 1 / cap owners all shares are equal.

    Returns:
        Owner to share, at most max(cap, 1 / n) each, adding up to 1. Without one owner every
        other share is at least what it was.
    """
    if len(weights) * cap <= 1 + 1e-9:
        return {owner: 1 / len(weights) for owner in sorted(weights)}
    ranked = sorted(weights, key=lambda owner: (-weights[owner], owner))
    tail = fsum(weights.values())
    cut = 0
    while weights[ranked[cut]] > (limit := tail / (1 / cap - cut)):
        cut += 1
        tail = fsum(weights[owner] for owner in ranked[cut:])
    return {owner: min(weights[owner], limit) * cap / limit for owner in sorted(weights)}


def tenths(value: float) -> float:
    """Rounded down to tenths; a hair below a tenth, as sums of floats are, counts as that tenth."""
    return floor(value * 10 + 1e-9) / 10


def support(of: Pool, owners: Iterable[int]) -> Support | None:
    """Who may be counted of `owners`, and the confidence; None if nothing may be said.

    FACETS-level owners are counted only with `min_contributors` in all, and only where they
    raise the confidence above that of the RECORDS-level owners alone.
    """
    everyone = sorted(set(owners))
    level, quotable = of.level, Level.RECORDS
    open_ones = [owner for owner in everyone if level[owner] == quotable]
    mass = _mass(of, open_ones)
    records = min(mass, len(open_ones) * of.delta)
    if len(open_ones) < len(everyone):
        spare, whole = len(everyone) - of.min_contributors + 1, _mass(of, everyone)
        together = tenths(min(whole, spare * tenths(of.delta))) if spare > 0 else -1.0
        if together > records or (not open_ones and together >= 0):
            return Support(frozenset(everyone), together, whole)
    return Support(frozenset(open_ones), records, mass) if open_ones else None


def _mass(of: Pool, owners: Sequence[int]) -> float:
    share = of.share
    return min(1.0, fsum([share[owner] for owner in owners]))


__all__ = ["Pool", "Support", "pool", "shares", "support", "tenths"]
