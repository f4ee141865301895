"""Which earlier thread helps with a new question, and who can answer it?

In:   an archive of questions and answers; contestants with the two calls of a `Store`.
Out:  recall of earlier linked threads; the place of the accepted answerer among active users.
Never: a post that was not written yet when a question is asked; a link to the answer in its words.

The archive is replayed in the order of time: a question is asked, then it is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import log1p, log2

import numpy as np

from collab_layer.bench import metrics
from collab_layer.bench.layer_store import LayerStore
from collab_layer.bench.metered import Costs, entered
from collab_layer.bench.options import Options
from collab_layer.bench.phases import Phases
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report, Row
from collab_layer.bench.store_names import alone_of
from collab_layer.bench.stores import EVERYONE, THREAD, Item, Opens
from collab_layer.bench.threads_data import Post, ThreadSet, load_threads
from collab_layer.errors import DataSetError
from collab_layer.plugins.manager import DEFAULT_EMBEDDER
from collab_layer.stages.fit import Case, fit, fit_gated
from collab_layer.stages.rank import rank
from collab_layer.types.graph import Floats

PARTS = ("earlier", "who")
BUDGET = 1_200
QUERY_CHARS = 2_000
BURN_IN = 0.25
"""Share of the threads, by time, about which nothing is asked."""
ACTIVE, RECENT = timedelta(days=365), timedelta(days=60)
"""Who wrote within the first is a candidate; posts within the second count as recent."""
PRIOR = ("activity", "recent")
FEATURES = (*PRIOR, "votes")
WORDS, MEANINGS = 0.36, 0.42
"""Bars of recall at 5, for the built-in embedder and for one that knows paraphrases."""
MIN_WHO = 40
"""Cases without which nobody is ranked: half of them are for fitting."""


@dataclass(slots=True)
class _Heard:
    """What a replay of one contestant gave."""

    found: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    people: list[Case] = field(default_factory=list[Case])
    costs: Costs = field(default_factory=Costs)


async def measure(options: Options, progress: Progress) -> Report:
    """Replay the archive for every contestant.

    Raises:
        DataSetError: The folder cannot be used, or leaves nothing to ask.
        InputError: A part is unknown.
    """
    phases = Phases()
    parts = options.chosen(PARTS)
    data = load_threads(options.folder)
    begun = [post for post in data.posts if post.asks]
    asked = {post.thread for post in begun[int(BURN_IN * len(begun)) :]}
    linked = sorted(asked & data.earlier.keys())
    if not linked:
        raise DataSetError("after the first quarter of the archive no thread refers to an earlier one; it is too small")
    arms: dict[str, Opens] = {
        "own": lambda: LayerStore("own", embedder=options.embedder),
        "ours": lambda: LayerStore("pool", embedder=options.embedder),
        **options.stores,
    }
    heard = {arm: await _replay(data, asked, arm, opens, parts, progress) for arm, opens in arms.items()}
    rows = [Row("threads.cases", float(len(linked)), unit="threads")] if "earlier" in parts else []
    if "earlier" in parts:
        rows += _earlier_rows(data, linked, heard)
    if "who" in parts:
        rows += _who_rows(heard["ours"].people)
    for arm, one in heard.items():
        rows += one.costs.rows(f"threads.{arm}")
    rows = [_barred(row, options.embedder.id) for row in rows] if data.name == "stackexchange" else rows
    rows += phases.rows()
    name = options.folder.resolve().name
    return Report(f"collab bench tasks threads --data {name}", data.sha256, options.seed, options.embedder.id, rows)


async def _replay(
    data: ThreadSet, asked: set[str], arm: str, opens: Opens, parts: Sequence[str], progress: Progress
) -> _Heard:
    heard, told, wrote = _Heard(), dict[str, Post](), dict[str, list[datetime]]()
    people = "who" in parts and arm == "ours"
    async with entered(opens, heard.costs) as store:
        for at, post in enumerate(data.posts):
            if post.asks and post.thread in asked:
                wanted = "earlier" in parts and post.thread in data.earlier
                answerer = data.accepted.get(post.thread) if people else None
                if wanted or answerer is not None:
                    items = await store.context(f"user:{post.author}", post.text[:QUERY_CHARS], post.at, BUDGET)
                    heard.found[post.thread] = threads_of(items, told)
                    case = None if answerer is None else _candidates(post, answerer, items, told, wrote)
                    heard.people += [] if case is None else [case]
            id_ = await store.add(f"user:{post.author}", post.text, [THREAD + post.thread], post.at, EVERYONE)
            told[id_] = post
            wrote.setdefault(post.author, []).append(post.at)
            progress(f"replaying {arm}", at + 1, len(data.posts))
    return heard


def threads_of(items: Sequence[Item], told: Mapping[str, Post]) -> list[str]:
    """Threads that a context repeats, each at its first place."""
    return list(dict.fromkeys(told[one].thread for item in items for one in item.sources if one in told))


def _candidates(
    post: Post, answerer: str, items: Sequence[Item], told: Mapping[str, Post], wrote: Mapping[str, Sequence[datetime]]
) -> Case | None:
    """Active users as columns, who answered in row 0; None where that one was not active or asked himself."""
    since = post.at - ACTIVE
    active = [who for who, times in sorted(wrote.items()) if times[-1] >= since and who != post.author]
    if answerer not in active or len(active) < 2:
        return None
    active.sort(key=lambda who: who != answerer)
    votes: dict[str, float] = {}
    for place, source in enumerate(dict.fromkeys(one for item in items for one in item.sources if one in told), 1):
        who = told[source].author
        votes[who] = votes.get(who, 0.0) + 1 / log2(1 + place)
    recent = post.at - RECENT
    return Case(
        {
            "activity": np.array([log1p(len(wrote[who])) for who in active]),
            "recent": np.array([log1p(sum(at >= recent for at in wrote[who])) for who in active]),
            "votes": np.array([votes.get(who, 0.0) for who in active]),
        },
        0,
    )


# -- rows ---------------------------------------------------------------------------------


def _earlier_rows(data: ThreadSet, linked: Sequence[str], heard: Mapping[str, _Heard]) -> list[Row]:
    rows: list[Row] = []
    recall: dict[str, Floats] = {}
    for arm, one in heard.items():
        found = [one.found.get(thread, []) for thread in linked]
        right = [data.earlier[thread] for thread in linked]
        for depth in (5, 10):
            share = [len(set(got[:depth]) & want) / len(want) for got, want in zip(found, right, strict=True)]
            rows.append(_row(f"threads.earlier.{arm}.r{depth}", np.array(share)))
            if depth == 5:
                recall[arm] = np.array(share)
        rows.append(
            _row(
                f"threads.earlier.{arm}.mrr", np.array([_reciprocal(*pair) for pair in zip(found, right, strict=True)])
            )
        )
    for arm in heard:
        if arm != (alone := alone_of(arm, heard)):
            gain = recall[arm] - recall[alone]
            rows.append(_row(f"threads.earlier.{arm}.r5_over_{alone}", gain))
            rows.append(_row(f"threads.earlier.{arm}.help", (gain > 0).astype(float)))
            rows.append(_row(f"threads.earlier.{arm}.harm", (gain < 0).astype(float)))
    return rows


def _reciprocal(found: Sequence[str], right: frozenset[str]) -> float:
    return next((1 / place for place, thread in enumerate(found, start=1) if thread in right), 0.0)


def _who_rows(cases: Sequence[Case]) -> list[Row]:
    """Fit on the earlier half, score the later one; the gate decides whether what they wrote counts."""
    rows = [Row("threads.who.cases", float(len(cases)), unit="questions")]
    if len(cases) < MIN_WHO:
        return rows
    past, tested = cases[: len(cases) // 2], cases[len(cases) // 2 :]
    gated = fit_gated(past, features=FEATURES, own=PRIOR)
    weights = {
        "prior": fit(past, features=PRIOR),
        "votes": {"votes": 1.0},
        "fitted": fit(past, features=FEATURES),
        "ours": gated.weights,
    }
    place = {who: np.array([_place(case, used) for case in tested]) for who, used in weights.items()}
    for who, found in place.items():
        rows.append(_row(f"threads.who.{who}.mrr", 1 / found))
        rows.append(_row(f"threads.who.{who}.h1", (found == 1).astype(float)))
        if who != "prior":
            rows.append(_row(f"threads.who.{who}.mrr_over_prior", 1 / found - 1 / place["prior"]))
    return [*rows, Row("threads.who.ours.gate_open", float(gated.open), unit="0 or 1")]


def _place(case: Case, weights: Mapping[str, float]) -> int:
    scores = rank(case.columns, weights)
    return int(metrics.places(scores[None, :])[0])


def _row(name: str, values: Floats) -> Row:
    found = metrics.mean(values, 0)
    return Row.of(name, found)


def _barred(row: Row, embedder: str) -> Row:
    match row.name:
        case "threads.earlier.ours.r5":
            return row.against(">=", WORDS if embedder.startswith(DEFAULT_EMBEDDER) else MEANINGS)
        case "threads.who.ours.mrr_over_prior":
            return row.against(">=", 0.0)
        case _:
            return row


__all__ = ["measure", "threads_of"]
