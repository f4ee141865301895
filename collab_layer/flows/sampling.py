"""Some owners' pools, in pages: what candidates are like, and what other rules would choose.

load:   principals spread evenly over the tenant, each read as itself under today's grants;
stages: domain, curate;
save:   nothing.

A figure rests only on what some reader may use: an owner who shares nothing is in no pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from collab_layer.flows.tools import Tools
from collab_layer.graph import policy
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.reader import Reading, neighborhood
from collab_layer.stages import domain
from collab_layer.stages.curate import curate, permitted
from collab_layer.stages.domain import Sample
from collab_layer.stages.features import BUILTIN, FeatureLike
from collab_layer.stages.quarantine import speakable
from collab_layer.stages.rules import Scorer
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Neighborhood, Vectors

T = TypeVar("T")
OWNERS = 300
PAGE = 20
"""Owners read in one snapshot, so that writers are not kept waiting for a log that cannot be folded."""
TOP = 16
TOPIC = "topic:"


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of what rules choose other rules choose too, over several owners.

    Attributes:
        mean: Share of the top 16, in [0, 1]; None where neither chooses anybody.
        owners: For how many of them anybody is chosen.
    """

    mean: float | None
    owners: int


def features_of(tools: Tools) -> tuple[FeatureLike, ...]:
    """Every feature that rules of this deployment may use."""
    return (*BUILTIN.values(), *tools.rules.features)


async def minimum(tools: Tools, tenant: str) -> int:
    """How many owners must be behind a figure or a name."""
    return await tools.in_thread(_minimum, tools, tenant)


async def look(tools: Tools, tenant: str) -> Sample | None:
    """The candidates of up to 300 owners; None if no owner may read anybody."""
    return (await survey(tools, tenant, ()))[0]


async def overlap(tools: Tools, tenant: str, before: Scorer, after: Scorer) -> Overlap:
    """What two sets of rules choose for the same owners."""

    def each(hood: Neighborhood, index: TenantIndex) -> float | None:
        return _alike(hood, before, after)

    return _mean(await _pages(tools, tenant, each))


async def survey(tools: Tools, tenant: str, pair: tuple[()] | tuple[Scorer, Scorer]) -> tuple[Sample | None, Overlap]:
    """Both in one pass over the same pools."""
    features = features_of(tools)

    def each(hood: Neighborhood, index: TenantIndex) -> tuple[Sample, float | None]:
        found = domain.sample(hood, features, _names(hood, index), party=index.aliases)
        return found, _alike(hood, *pair) if pair else None

    found = await _pages(tools, tenant, each)
    sample = domain.joined([one for one, _ in found]) if found else None
    return sample, _mean([share for _, share in found])


def _alike(hood: Neighborhood, before: Scorer, after: Scorer) -> float | None:
    """Share of the larger choice that both make; None if neither chooses anybody."""
    one = set(curate(hood, before, k=TOP).ids.tolist())
    two = set(curate(hood, after, k=TOP).ids.tolist())
    return len(one & two) / max(len(one), len(two)) if one or two else None


def _mean(shares: Sequence[float | None]) -> Overlap:
    known = [share for share in shares if share is not None]
    return Overlap(sum(known) / len(known) if known else None, len(known))


async def _pages(tools: Tools, tenant: str, each: Callable[[Neighborhood, TenantIndex], T]) -> list[T]:
    some = await tools.in_thread(_some, tools, tenant)
    out: list[T] = []
    for start in range(0, len(some), PAGE):
        out += await tools.in_thread(_page, tools, tenant, some[start : start + PAGE], each)
    return out


def _some(tools: Tools, tenant: str) -> list[int]:
    """Owners spread evenly over all; of one principal's aliases the first."""
    index = tools.store.index(tenant)
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)
        known = np.array([id_ for id_ in index.owners().tolist() if index.named(id_)], np.int64)
        known = known[np.sort(np.unique(index.party(known), return_index=True)[1])]
    if not len(known):
        return []
    return known[np.linspace(0, len(known) - 1, min(OWNERS, len(known))).astype(np.int64)].tolist()


def _page(tools: Tools, tenant: str, owners: Sequence[int], each: Callable[[Neighborhood, TenantIndex], T]) -> list[T]:
    """What `each` makes of every pool that is not empty."""
    index, now = tools.store.index(tenant), tools.now()
    out: list[T] = []
    with tools.store.database.read() as connection, index.lock:
        index.refresh(connection)
        least = policy.sharing(connection, tenant).min_contributors
        for owner in owners:
            if not index.named(owner):
                continue  # forgotten since the page before
            entity = Entity.parse(index.names[owner])
            seen = tools.store.audience(connection, tenant, entity, owner, None, now)
            reading = Reading(connection, tenant, index, tools.store.adjacency, seen, now, None, least)
            hood = permitted(neighborhood(reading, owner, query_vector=_newest(index, owner)))
            if hood.is_owner.any():
                out.append(each(hood, index))
    return out


def _newest(index: TenantIndex, owner: int) -> Vectors | None:
    """The owner's newest record in place of a query, so that likeness to a query can be judged too."""
    cards = index.cards
    rows = np.flatnonzero(cards.alive & cards.has_vector & (cards.owner == owner))
    return index.vectors(rows[[np.argmax(cards.at[rows])]])[0] if len(rows) else None


def _names(hood: Neighborhood, index: TenantIndex) -> dict[int, str]:
    """Words of the own topics that may go into a prompt; they are shown only if many hold them."""
    out: dict[int, str] = {}
    for id_ in hood.own.ids[hood.own_topic].tolist():
        name, shown = index.names[int(id_)].removeprefix(TOPIC), index.displays[int(id_)]
        if (said := _spaced(shown)) and speakable(name) and speakable(shown):
            out[int(id_)] = said
    return out


def _spaced(words: str) -> str:
    return words.replace("-", " ").replace("_", " ").strip()


def _minimum(tools: Tools, tenant: str) -> int:
    with tools.store.database.read() as connection:
        return policy.sharing(connection, tenant).min_contributors


__all__ = ["OWNERS", "Overlap", "features_of", "look", "minimum", "overlap", "survey"]
