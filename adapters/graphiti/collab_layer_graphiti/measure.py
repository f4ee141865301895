"""How long reads and writes take over a real FalkorDB, beside Graphiti's own calls on the same graph.

In:   numbers of facts; a seed.
Out:  a Markdown table, or with `--json` one row per figure; status 1 if a row of ours was wrong.

    python -m collab_layer_graphiti.measure --facts 100 1000 10000

All facts belong to one owner, the worst case for a store that reads by owner. The graph has
Graphiti's own indices. Vectors have 384 numbers, by a hashing embedder.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import logging
import os
import random
import statistics
import sys
import time
import uuid
import warnings
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")
os.environ.setdefault("EMBEDDING_DIM", "384")
with warnings.catch_warnings():  # Graphiti still has a pydantic class of the old kind
    warnings.simplefilter("ignore")
    from graphiti_core.driver.falkordb_driver import FalkorDriver
    from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters

from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
from collab_layer.types.update import Source, Update
from collab_layer_graphiti.backend import GraphitiBackend
from collab_layer_graphiti.facts import Fact
from collab_layer_graphiti.mapping import group_of
from collab_layer_graphiti.server import FalkorServer
from collab_layer_graphiti.testing import HashEmbedder, open_graphiti

OWNER = Entity("user", "ann")
START = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 700
QUERY = "parser fails on quotes"
WORDS = (
    "parser fails quotes cookie domain login loop certificate rotate deploy queue retry cache index "
    "парсер кавычки сертификат очередь кэш отказ сервис база"
)


class Figure(NamedTuple):
    """One measured figure; `bar` and `ok` where there is one to keep."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    bar: float | None = None
    ok: bool | None = None


def made_facts(count: int, seed: int) -> list[Fact]:
    """Facts over two years, a third of them ended."""
    rng = random.Random(seed)
    facts: list[Fact] = []
    for number in range(count):
        begin = START + timedelta(days=rng.randrange(DAYS))
        end = begin + timedelta(days=rng.randrange(1, 200)) if rng.random() < 1 / 3 else None
        text = f"{' '.join(rng.choices(WORDS.split(), k=8))} {number}"
        facts.append(Fact(text=text, valid_at=begin, invalid_at=end, key=str(number)))
    return facts


def held(facts: Sequence[Fact], at: datetime) -> set[str]:
    """The facts that hold at a time, by a look at each."""
    return {
        one.text
        for one in facts
        if one.valid_at is not None and one.valid_at <= at and (one.invalid_at is None or at < one.invalid_at)
    }


def wrong(records: Sequence[MemoryRecord], truth: set[str], *, whole: bool) -> int:
    """Rows that should not be there and, where all are asked for, rows that are missing."""
    found = {record.text for record in records}
    return len(found - truth) + (len(truth - found) if whole else 0)


async def timed(call: Callable[[], Awaitable[Any]], times: int) -> list[float]:
    """Milliseconds of each call, after one that is not counted."""
    await call()
    out: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        await call()
        out.append((time.perf_counter() - began) * 1000)
    return out


def figure(name: str, took: Sequence[float]) -> Figure:
    """Median, fastest and slowest, in milliseconds."""
    return Figure(f"{name}.p50", statistics.median(took), min(took), max(took), "ms")


class Bench:
    """One size of graph on one server.

    Args:
        server: That runs.
        count: Facts.
        seed: Of the facts and of the times asked about.
        times: How often each read is measured.
    """

    def __init__(self, server: FalkorServer, count: int, seed: int, times: int) -> None:
        self.count, self.times = count, times
        self.facts = made_facts(count, seed)
        self.rng = random.Random(seed + 1)
        self.server = server
        # Graphiti reads a group from the graph of its name; ours reads any graph.
        graph = group_of(OWNER)
        self.words = GraphitiBackend(server.url, graph=graph, timeout_s=120)
        self.store = GraphitiBackend(server.url, graph=graph, write=True, embedder=HashEmbedder(), timeout_s=120)
        self.figures: list[Figure] = []

    def add(self, name: str, took: Sequence[float]) -> None:
        """Keep a figure under the size's name."""
        self.figures.append(figure(f"graphiti.{self.count}.{name}", took))

    def at(self) -> datetime:
        """A time within the facts' two years."""
        return START + timedelta(days=self.rng.randrange(DAYS), hours=12)

    async def run(self) -> list[Figure]:
        """Measure all of it."""
        driver = FalkorDriver(host="127.0.0.1", port=self.server.port, database=group_of(OWNER))
        await driver.build_indices_and_constraints()
        try:
            await self._fill()
            await self._reads()
            await self._right()
            await self._graphitis(driver)
            await self._writes()
        finally:
            await driver.close()
            await self.words.aclose()
            await self.store.aclose()
        return self.figures

    async def _fill(self) -> None:
        began = time.perf_counter()
        for start in range(0, self.count, 200):
            await self.store.remember(OWNER, self.facts[start : start + 200])
        rate = self.count / (time.perf_counter() - began)
        self.figures.append(Figure(f"graphiti.{self.count}.remember", rate, rate, rate, "facts/s"))

    async def _reads(self) -> None:
        store, words, times = self.store, self.words, self.times
        refs = [record.ref for record in (await store.records(OWNER, limit=16)).records]
        self.add("read_16", await timed(lambda: store.read(refs), times))
        self.add("records_page_100", await timed(lambda: store.records(OWNER, limit=100), times))
        self.add("records_all", await timed(self._all_records, 3))
        self.add("records_as_of", await timed(lambda: store.records_as_of(OWNER, self.at()), max(3, times // 4)))
        self.add("owners", await timed(store.owners, times))
        self.add("search_words", await timed(lambda: words.search(OWNER, QUERY), times))
        self.add("search_words_as_of", await timed(lambda: words.search(OWNER, QUERY, at=self.at()), times))
        self.add("search_hybrid", await timed(lambda: store.search(OWNER, QUERY), times))
        self.add("search_hybrid_as_of", await timed(lambda: store.search(OWNER, QUERY, at=self.at()), times))

    async def _all_records(self) -> int:
        page, count = await self.store.records(OWNER), 0
        while True:
            count += len(page.records)
            if page.after is None:
                return count
            page = await self.store.records(OWNER, after=page.after)

    async def _right(self) -> None:
        """Every as-of answer is compared with a look at each fact."""
        bad = 0
        for _ in range(8):
            at = self.at()
            truth = held(self.facts, at)
            bad += wrong(await self.store.records_as_of(OWNER, at), truth, whole=True)
            bad += wrong(await self.store.search(OWNER, QUERY, at=at), truth, whole=False)
        self.figures.append(Figure(f"graphiti.{self.count}.wrong_rows", bad, bad, bad, "rows", 0, bad == 0))

    async def _graphitis(self, driver: FalkorDriver) -> None:
        """Graphiti's own hybrid search over the same graph, without and with a time."""
        graphiti, group = open_graphiti(driver), [group_of(OWNER)]
        self.add("own_search", await timed(lambda: graphiti.search(QUERY, group_ids=group), self.times))
        bad, took = 0, list[float]()
        for _ in range(8):
            at = self.at()
            began = time.perf_counter()
            found = await graphiti.search(QUERY, group_ids=group, search_filter=as_of(at))
            took.append((time.perf_counter() - began) * 1000)
            bad += len({edge.fact for edge in found} - held(self.facts, at))
        self.add("own_search_as_of", took)
        self.figures.append(Figure(f"graphiti.{self.count}.own_wrong_rows", bad, bad, bad, "rows"))

    async def _writes(self) -> None:
        store = self.store
        self.add("write_1", await timed(lambda: store.write([update()]), self.times))
        self.add("write_20", await timed(lambda: store.write([update() for _ in range(20)]), self.times))
        keys = [update() for _ in range(self.times + 1)]
        await store.write(keys)
        self.add("retract_1", await timed(lambda: store.retract([keys.pop().id]), self.times))
        refs = [MemoryRef(backend=store.name, id=record.ref.id) for record in (await store.records(OWNER)).records]
        self.add("erase_1", await timed(lambda: store.erase([refs.pop()]), 2))


def as_of(at: datetime) -> SearchFilters:
    """Graphiti's filter for what holds at a time."""
    later = DateFilter(date=at, comparison_operator=ComparisonOperator.greater_than)
    never = DateFilter(comparison_operator=ComparisonOperator.is_null)
    before = DateFilter(date=at, comparison_operator=ComparisonOperator.less_than_equal)
    return SearchFilters(valid_at=[[before]], invalid_at=[[later], [never]])


def update() -> Update:
    """A derived item under a key of its own."""
    source = Source(id="i1", principal=Entity("user", "bob"), weight=1)
    return Update(
        id=uuid.uuid4().hex, owner=OWNER, text="Peers pin the parser version", confidence=0.5, sources=(source,)
    )


def table(figures: Sequence[Figure], sizes: Sequence[int]) -> str:
    """One row per call, one column per size; medians, and in brackets the fastest."""
    by_name: dict[str, dict[int, Figure]] = {}
    for one in figures:
        _, size, rest = one.name.split(".", 2)
        by_name.setdefault(rest.removesuffix(".p50"), {})[int(size)] = one
    head = ["call", "unit", *(f"{size:,} facts" for size in sizes)]
    lines = [head, ["---"] * len(head)]
    for name, row in by_name.items():
        lines.append([f"`{name}`", next(iter(row.values())).unit, *(_cell(row[size]) for size in sizes)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(one: Figure) -> str:
    return f"{_short(one.value)} ({_short(one.low)})" if one.unit == "ms" else f"{one.value:,.0f}"


def _short(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print; 0 if every bar was kept."""
    parser = argparse.ArgumentParser(prog="python -m collab_layer_graphiti.measure", description=__doc__)
    parser.add_argument("--facts", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--times", type=int, default=20, help="how often each read is measured")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    logging.getLogger("graphiti_core").setLevel(logging.CRITICAL)
    figures: list[Figure] = []
    for count in asked.facts:
        with FalkorServer() as server:
            figures += asyncio.run(Bench(server, count, asked.seed, asked.times).run())
    if asked.json:
        facts = "\n".join(one.model_dump_json() for count in asked.facts for one in made_facts(count, asked.seed))
        answer = {
            "command": "python -m collab_layer_graphiti.measure",
            "data_sha256": hashlib.sha256(facts.encode()).hexdigest(),
            "seed": asked.seed,
            "embedder": "HashEmbedder/384",
            "rows": [one._asdict() for one in figures],
        }
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print(table(figures, asked.facts))
    return int(any(one.ok is False for one in figures))


if __name__ == "__main__":
    sys.exit(main())
