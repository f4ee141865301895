"""Curation over a filled graph: what it costs, against other ways to the same, and what the caps leave out.

In:   an open store, the graph that was filled into it.
Out:  rows `perf.curate.<edges>.<case>.<figure>`.

The cases: owners drawn at random; the most active owners; owners that have the hub among their newest
things. Measured is reading the pool and choosing from it, in the calling thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from collab_layer.bench.perf.contestants import Dicts, full, in_sql
from collab_layer.bench.perf.graphs import Graph
from collab_layer.bench.perf.timing import Watch, held_to, size_name
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Row
from collab_layer.graph.reader import HOLDERS_CAP, OWN_CAP, neighborhood
from collab_layer.graph.store import GraphStore
from collab_layer.stages.curate import curate
from collab_layer.stages.rules import Scorer
from collab_layer.types.entity import Entity
from collab_layer.types.graph import Ids, Neighborhood, Selection
from collab_layer.types.scope import Scope

COMPARED, RECALLED = 60, 20
"""Owners of a case at most, that other ways are tried for, and that the whole pool is read for."""
CPU_P99_MS = 10.0
_ALL = 1 << 30


@dataclass(frozen=True, slots=True)
class Bench:
    """A filled store, and the rules that choose.

    Attributes:
        now: The present, microseconds.
        calls: Owners drawn at random; a fifth of them for the most active, two thirds for the hub.
    """

    store: GraphStore
    tenant: str
    graph: Graph
    scorer: Scorer
    now: int
    calls: int = 300

    def read(self, owner: int, *, capped: bool = True) -> tuple[Neighborhood, Selection]:
        """The pool of an owner, and the selection."""
        own, holders = (OWN_CAP, HOLDERS_CAP) if capped else (_ALL, _ALL)
        with self.store.reading(Scope(tenant=self.tenant), Entity("user", f"u{owner}"), self.now) as opened:
            hood = neighborhood(opened.reading, opened.focus, own_cap=own, holders_cap=holders)
            return hood, curate(hood, self.scorer)


def cases(graph: Graph, seed: int, calls: int) -> Mapping[str, Ids]:
    """Owners of each case."""
    random = np.random.default_rng(seed)
    hub = graph.holding_hub(OWN_CAP)
    return {
        "typical": random.choice(graph.owners, min(calls, graph.owners), replace=False),
        "hub_user": np.argsort(-graph.activity(), kind="stable")[: min(calls // 5, graph.owners)],
        "hub_item": random.choice(hub, min(2 * calls // 3, len(hub)), replace=False),
    }


def measure(bench: Bench, seed: int, tell: Progress) -> Iterator[Row]:
    """All rows of one size."""
    name = f"perf.curate.{size_name(len(bench.graph))}"
    dicts = Dicts.of(bench.graph)
    for case, owners in cases(bench.graph, seed, bench.calls).items():
        for owner in owners.tolist():  # once before, so that what is measured is not the first read of the file
            bench.read(owner)
        watch, pools, scored = Watch(), 0, 0
        for at, owner in enumerate(owners.tolist()):
            hood, selection = watch.time(lambda owner=owner: bench.read(owner))
            pools, scored = pools + len(hood), scored + selection.scored
            tell(f"curate {case}", at + 1, len(owners))
        yield from held_to(watch.sample.rows(f"{name}.{case}"), ".cpu_p99_ms", CPU_P99_MS)
        yield Row(f"{name}.{case}.pool", pools / len(owners), unit="candidates")
        yield Row(f"{name}.{case}.scored_exactly", scored / max(pools, 1))
        yield from compare(bench, f"{name}.{case}", owners[:COMPARED], watch.sample.of(50), dicts)
        yield _recall(bench, f"{name}.{case}", owners[:RECALLED])


def compare(bench: Bench, name: str, owners: Ids, ours_ms: float, dicts: Dicts) -> Iterator[Row]:
    """The same owners by other ways, as times of our own median."""
    pruned, scored, other, sql = Watch(), Watch(), Watch(), Watch()
    same = 0
    for owner in owners.tolist():
        hood, _ = bench.read(owner)
        selection = pruned.time(lambda hood=hood: curate(hood, bench.scorer))
        every = scored.time(lambda hood=hood: full(hood, bench.scorer))
        same += np.array_equal(selection.ids, every)
        other.time(lambda owner=owner: dicts.curate(owner))
        with bench.store.database.read() as connection:
            sql.time(lambda owner=owner: in_sql(connection, bench.tenant, owner + 1, bench.now))
    yield Row(f"{name}.equal_to_full", same / len(owners)).against(">=", 1)
    yield Row(f"{name}.pruned.cpu_p50_ms", pruned.sample.of(50), unit="ms")
    yield Row(f"{name}.full.cpu_p50_ms", scored.sample.of(50), unit="ms")
    yield Row(f"{name}.full.ratio", scored.sample.of(50) / pruned.sample.of(50), unit="x")
    for label, watch in (("dicts", other), ("sql", sql)):
        yield Row(f"{name}.{label}.cpu_p50_ms", watch.sample.of(50), unit="ms")
        yield Row(f"{name}.{label}.ratio", watch.sample.of(50) / ours_ms, unit="x")


def _recall(bench: Bench, name: str, owners: Ids) -> Row:
    """How many of the 16 of the whole pool the capped pool finds."""
    shares = [
        np.isin(bench.read(owner, capped=False)[1].ids, bench.read(owner)[1].ids).mean() for owner in owners.tolist()
    ]
    return Row(f"{name}.recall_of_uncapped", float(np.mean(shares)))


__all__ = ["Bench", "cases", "measure"]
