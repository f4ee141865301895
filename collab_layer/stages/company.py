"""Who holds the same things, whoever is curated: what speaks for a candidate where little else is known.

In:   the owners of a pool; which candidates they hold.
Out:  a weight per owner; a number per candidate.
Pure: vectorised numpy; sums do not depend on the order of pairs.

Sixteen curated neighbours are few where the entity holds one thing that hundreds hold: their
likeness is the same. All of them together say what goes with it, as edges between things do, but
read under the reader's own grants, at any moment, with nothing stored.
"""

from __future__ import annotations

import numpy as np

from collab_layer.stages.features import BUILTIN, column
from collab_layer.types.graph import Bools, Company, Floats, Ids, Levels, Neighborhood, Rows
from collab_layer.types.scope import Level

SHRINK = 2.0
"""Shared things at which an owner keeps half its weight."""


def weights(pool: Neighborhood) -> Floats:
    """How much each owner of a pool counts.

    `sum of idf^2 over shared things * co/(co + 2) * min(1, median/n)`, n the things it holds, but for
    a factor that is the same for all. An owner that holds less than half of the others do counts for
    no more than they: a crowd of small accounts gains nothing by being small.

    Returns:
        Shape (n,), >= 0; 0 for who shares nothing.

    Source:
        Normalised neighbourhoods: GF-CF, Shen et al., CIKM 2021, its first term. The bound and the
        shrinkage: docs/evidence/lift.md.
    """
    shared = np.bincount(pool.pair_candidate, minlength=len(pool)).astype(np.float64)
    degree = np.maximum(pool.degree, 1).astype(np.float64)
    together = column(BUILTIN["idf_cosine"], pool) * np.sqrt(degree)
    some = shared > 0
    typical = float(np.median(degree[some])) if some.any() else 1.0
    return together * shared / (shared + SHRINK) * np.minimum(1.0, typical / degree)


def co_holders(company: Company, holders: Floats, min_contributors: int) -> Floats:
    """`sum of the weights of those that hold x / sum of all weights / sqrt(holders of x)`, in [0, 1].

    Args:
        company: Owners and what they hold; a pair may be there twice and counts once.
        holders: That may be counted, of each candidate, shape (c,).
        min_contributors: Owners at the `facets` level that must hold a candidate to count for it, >= 1.
    """
    size = len(holders)
    counts = countable(company.level, company.owner, company.candidate, size, min_contributors)
    candidate, owner = _pairs(company.owner[counts], company.candidate[counts])
    total = float(company.weight.sum())
    if not len(owner) or total <= 0:
        return np.zeros(size)
    held = np.bincount(candidate, weights=company.weight[owner], minlength=size)
    return np.minimum(held / total, 1.0) / np.sqrt(np.maximum(holders, 1.0))


def countable(level: Levels, owner: Rows, candidate: Rows, size: int, least: int) -> Bools:
    """Which pairs of owner and candidate may count: those of who shares records, and others where enough agree.

    Args:
        level: What each owner permits.
        owner: Row of each pair's owner; pairs may repeat.
        candidate: Row of each pair's candidate.
        size: How many candidates there are.
        least: Owners at the `facets` level that must hold a candidate, >= 1.
    """
    each = level[owner]
    facets = each == Level.FACETS
    together = distinct(owner[facets], candidate[facets], size)
    return (each >= Level.RECORDS) | (facets & (together[candidate] >= least))


def distinct(owner: Rows, candidate: Rows, size: int) -> Floats:
    """Different owners per candidate, shape (size,)."""
    return np.bincount(_pairs(owner, candidate)[0], minlength=size).astype(np.float64)


def _pairs(owner: Rows, candidate: Rows) -> tuple[Ids, Ids]:
    """Different pairs as (candidate, owner), in order; as one number each, which numpy sorts several times as fast."""
    keys = np.unique((candidate.astype(np.int64) << 32) | owner.astype(np.int64))
    return keys >> 32, keys & 0xFFFFFFFF


__all__ = ["co_holders", "countable", "distinct", "weights"]
