"""The curation presets: rule trees as data (grammar: docs/rules.md).

Out:  `DOMAINS`, the default first.
Pure: data only; importing this needs neither numpy nor a compiled rule.

The four MemRec domains keep the paper's factors and thresholds, with two changes: a decay
counts only the days beyond its threshold (the printed shapes fall from 1 to 0.08-0.49 over
night), and similarity counts only where it is positive, so that no score turns negative.
"""

from __future__ import annotations

from typing import Any

from collab_layer.plugins.specs import DomainSpec

_MEMREC = "MemRec (arXiv 2601.08816), rules of the domain, with continuous decay"

Tree = dict[str, Any]


def _when(feature: str, op: str, value: float, *more: Tree) -> Tree:
    condition = {"feature": feature, "op": op, "value": value}
    return {"all": [condition, *more]} if more else condition


def _decay(rate: float, over: float) -> Tree:
    return {"then": [{"decay": {"feature": "recency_days", "rate": rate, "over": over}}]}


def _similar(scale: float) -> Tree:
    """Multiply by 1 + scale x max(0, memory similarity)."""
    return {"multiply": {"feature": "memory_similarity", "floor": 0, "scale": scale, "bias": 1}}


_OVERLAP: Tree = {
    "name": "overlap",
    "version": 1,
    "note": "likeness by shared targets, shrunk where few are shared, raised by similar memories",
    "score": [
        {
            "product": [
                {"feature": "idf_cosine"},
                {"shrink": {"feature": "co_interaction_count", "by": 2}},
                {"feature": "memory_similarity", "floor": 0, "bias": 1},
            ]
        },
        # Where nothing is shared by name: owners found by memory vectors, members of the same team.
        {"feature": "peer", "floor": 0, "weight": 0.1},
        {"feature": "group", "weight": 0.05},
    ],
}

_BOOKS: Tree = {
    "name": "books",
    "version": 1,
    "note": "stable tastes, sparse graph",
    "score": [{"feature": "edge_weight"}],
    "rules": [
        {"when": _when("metadata_overlap", ">", 0.6), "then": [{"multiply": 2.5}]},
        {"when": _when("co_interaction_count", ">", 3), "then": [{"multiply": 1.8}]},
        {
            "when": _when("co_interaction_count", ">", 3, _when("memory_similarity", ">", 0.5)),
            "then": [{"multiply": 1.5}],
        },
        _decay(0.004, 180),
        {"when": _when("is_owner", "==", 0), "then": [_similar(1.2)]},
        {"when": _when("is_owner", "==", 1), "then": [_similar(0.8)]},
    ],
}

_GOODREADS: Tree = {
    "name": "goodreads",
    "version": 1,
    "note": "dense graph: shared books count most, very frequent ones are damped",
    "score": [{"feature": "edge_weight"}],
    "rules": [
        {"when": _when("co_interaction_count", ">", 10), "then": [{"multiply": 2.0}]},
        {"when": _when("co_interaction_count", ">", 15), "then": [{"multiply": 0.7}, {"multiply": 1.5}]},
        {"when": _when("metadata_overlap", ">", 0.8), "then": [{"multiply": 3.0}]},
        {"when": _when("co_interaction_count", ">", 10), "then": [_similar(1.5)]},
        {"when": _when("co_interaction_count", "<=", 10), "then": [_similar(1.0)]},
        _decay(0.002, 365),
    ],
}

_MOVIETV: Tree = {
    "name": "movietv",
    "version": 1,
    "note": "thin graph: topics stand in where fewer than 3 titles are shared; interest fades within months",
    "score": [{"feature": "edge_weight"}],
    "rules": [
        {"when": _when("co_interaction_count", ">=", 3), "then": [{"multiply": 2.5}]},
        _decay(0.018, 60),
        {**_decay(0.007, 180), "note": "0.018 up to 180 days, 0.025 beyond"},
        {**_decay(0.0033, 365), "note": "the paper's step to 0.3 after a year, spread over the next year"},
        {
            "when": _when("co_interaction_count", "<", 3),
            "then": [{"add": {"feature": "metadata_overlap", "scale": 2.8}}, _similar(1.5)],
        },
        {"when": _when("co_interaction_count", ">=", 3), "then": [{"add": 1.0}, _similar(1.8)]},
        {"when": _when("metadata_overlap", ">", 0.6), "then": [{"multiply": 1.5}]},
    ],
}

_YELP: Tree = {
    "name": "yelp",
    "version": 1,
    "note": "categories decide, places change quickly",
    "score": [{"feature": "edge_weight"}],
    "rules": [
        {"when": _when("co_interaction_count", ">=", 2), "then": [{"multiply": 2.0}]},
        {"when": _when("co_interaction_count", "<", 2), "then": [{"multiply": 0.5}]},
        {"when": _when("metadata_overlap", ">", 0.85), "then": [{"multiply": 4.5}]},
        {
            "when": _when("metadata_overlap", ">", 0.7, _when("metadata_overlap", "<=", 0.85)),
            "then": [{"multiply": 3.5}],
        },
        {"when": _when("metadata_overlap", "<", 0.4), "then": [{"multiply": 0.2}]},
        {"when": _when("metadata_overlap", ">", 0.7), "then": [_similar(2.2)]},
        {"when": _when("metadata_overlap", "<=", 0.7), "then": [_similar(1.0)]},
        _decay(0.028, 90),
        {**_decay(0.0077, 180), "note": "the paper's halving after 180 days, spread over the next 90"},
    ],
}

_GENERATIVE_AGENTS: Tree = {
    "name": "generative-agents",
    "version": 1,
    "note": "recency 0.995 per hour, importance and relevance, each in [0, 1], equal weights",
    "score": [
        {"decay": {"feature": "recency_days", "rate": 0.12030100370}},
        {"feature": "importance"},
        {"feature": "query_similarity", "floor": 0},
    ],
}

_TICKETS: Tree = {
    "name": "tickets",
    "version": 1,
    "note": "colleagues with the same topics or in the same group; how much they wrote does not count",
    "score": [
        {"feature": "metadata_overlap"},
        {"feature": "group", "weight": 0.5},
        {"feature": "query_similarity", "floor": 0, "weight": 0.5},
    ],
    "rules": [_decay(0.002, 180)],
}

DOMAINS: tuple[DomainSpec, ...] = (
    DomainSpec(
        "overlap",
        "default: idf-cosine of shared targets, shrunk by co/(co+2), raised by similar memories",
        _OVERLAP,
        "measured on MovieLens and Book-Crossing; shrinkage: Bell and Koren, ICDM 2007",
    ),
    DomainSpec("books", "stable tastes, sparse graph; slow decay after half a year", _BOOKS, _MEMREC),
    DomainSpec("goodreads", "dense graph; shared books count most, slow decay after a year", _GOODREADS, _MEMREC),
    DomainSpec("movietv", "thin graph; topics stand in for shared titles, fast decay", _MOVIETV, _MEMREC),
    DomainSpec("yelp", "categories decide; fast decay after three months", _YELP, _MEMREC),
    DomainSpec(
        "generative-agents",
        "recency, importance and relevance with equal weights",
        _GENERATIVE_AGENTS,
        "Park et al., Generative Agents, UIST 2023; relevance and importance are ours (no model is asked)",
    ),
    DomainSpec(
        "tickets",
        "shared topics and group membership, gentle decay, no weight for activity",
        _TICKETS,
        "own design: for reuse between colleagues, owners get no popularity weight",
    ),
)
"""All presets; `overlap` is the default."""

__all__ = ["DOMAINS"]
