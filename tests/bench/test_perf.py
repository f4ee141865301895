"""The performance measurement, small: same work, equal answers, and ratios instead of times."""

import asyncio
import json
import subprocess
import sys

import numpy as np
import pytest

from collab_layer.bench.perf import fleet
from collab_layer.bench.perf.compare import changes
from collab_layer.bench.perf.contestants import Dicts
from collab_layer.bench.perf.graphs import generate
from collab_layer.bench.perf.run import Plan, measure
from collab_layer.bench.report import Row, peak_rss_mb
from collab_layer.errors import InputError
from collab_layer.sync import CollabLayer


def _quiet(what: str, done: int, total: int) -> None:
    pass


pytestmark = pytest.mark.timeout(400)  # one measurement of several seconds, whatever else the machine does


@pytest.fixture(scope="module")
def small():
    return asyncio.run(measure(Plan((1_000, 8_000), seed=3, writes=40, calls=16, tries=1), _quiet))


def test_a_seed_gives_one_graph_of_distinct_pairs_with_a_hub():
    graph, again, other = generate(5_000, 1), generate(5_000, 1), generate(5_000, 2)
    assert np.array_equal(graph.owner, again.owner)
    assert np.array_equal(graph.at, again.at)
    assert not np.array_equal(graph.owner, other.owner)
    assert len(set(zip(graph.owner.tolist(), graph.thing.tolist(), strict=True))) == len(graph) == 5_000
    assert np.bincount(graph.thing)[0] == graph.owners // 4
    assert (np.diff(graph.at) >= 0).all()


def test_the_prune_gives_what_full_scoring_gives(small):
    equal = [row for row in small.rows if row.name.endswith("equal_to_full")]
    assert len(equal) == 6
    assert all(row.value == 1 for row in equal)


def test_eight_times_the_edges_do_not_cost_three_times_as_much(small):
    (growth,) = [row for row in small.rows if row.name == "perf.curate.growth.typical.ratio"]
    assert growth.value <= 3


def test_a_batch_and_callers_at_once_are_cheaper_than_one_by_one(small):
    at = {row.name: row.value for row in small.rows}
    assert at["perf.observe.batched.per_cpu_s"] > 2 * at["perf.observe.single.per_cpu_s"]
    assert at["perf.observe.concurrent.per_cpu_s"] > at["perf.observe.single.per_cpu_s"]


def test_a_cached_answer_costs_a_part_of_a_fresh_one(small):
    at = {row.name: row.value for row in small.rows}
    for shape in ("taste", "text"):
        fresh, cached = (at[f"perf.context.{shape}.{kind}.cpu_p50_ms"] for kind in ("fresh", "cached"))
        assert cached < fresh / 2


def test_what_the_layer_adds_to_a_search_in_mem0_is_measured_beside_the_search_alone(small):
    pytest.importorskip("chromadb")
    at = {row.name.removeprefix("perf.mem0.search."): row for row in small.rows}
    assert at["with_layer.cpu_p50_ms"].value > at["alone.cpu_p50_ms"].value > 0
    assert at["added.cpu_p95_ms"].bar == "<= 25"
    assert at["alone.cpu_p95_ms"].bar is None


def test_every_figure_of_a_report_is_a_number_once(small):
    told = json.loads(json.dumps(small.to_json()))
    names = [row["name"] for row in told["rows"]]
    assert len(set(names)) == len(names)
    assert all(isinstance(row["value"], float) for row in told["rows"])
    assert told["embedder"].startswith("hashing")


def test_two_runs_are_compared_as_ratios(tmp_path):
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"rows": [{"name": "a", "value": 2.0}, {"name": "gone", "value": 1}]}))
    assert [(row.name, row.value) for row in changes([Row("a", 3.0), Row("new", 1.0)], old)] == [("a.change", 1.5)]


@pytest.mark.parametrize("text", ["", "[]", '{"rows": 3}', '{"rows": [1]}'])
def test_what_is_no_earlier_run_is_refused(tmp_path, text):
    old = tmp_path / "old.json"
    old.write_text(text)
    with pytest.raises(InputError, match="no output of"):
        changes([], old)


@pytest.mark.parametrize("sizes", [(), (999,), (5_000, -1)])
def test_a_size_that_makes_no_graph_is_refused(sizes):
    with pytest.raises(InputError, match="1000 edges"):
        asyncio.run(measure(Plan(sizes), _quiet))


def test_a_database_that_holds_something_is_not_filled(tmp_path):
    url = str(tmp_path / "mine.db")
    with CollabLayer.open(url, tenant="perf-1000") as layer:
        layer.observe("user:anna", "item:a")
    with pytest.raises(InputError, match="not empty"):
        asyncio.run(measure(Plan((1_000,), writes=0, url=url), _quiet))


def test_the_papers_pruner_keeps_its_shares_of_owners_and_things():
    dicts = Dicts({1: [10, 11, 12], 2: [10, 11], 3: [12]}, {10: {1, 2}, 11: {1, 2}, 12: {1, 3}})
    kinds = [kind for kind, _ in dicts.curate(1)]
    assert sorted(kinds) == ["owner", "owner", "thing", "thing", "thing"]


def test_a_plot_is_drawn_where_matplotlib_is(small, tmp_path):
    pytest.importorskip("matplotlib")
    from collab_layer.bench.perf.plot import draw

    draw(small.rows, tmp_path / "curate.svg")
    assert "<svg" in (tmp_path / "curate.svg").read_text()
    with pytest.raises(InputError, match="cannot be drawn"):
        draw(small.rows, tmp_path / "curate.nonsense")


@pytest.mark.slow
def test_two_processes_that_wait_for_a_model_are_faster_than_one(tmp_path):
    kind = fleet.Kind("waits", wait_s=1.0, bar=1.5)  # so long that a busy machine is no matter
    rows = list(fleet.measure(str(tmp_path / "fleet.db"), 2, 1, _quiet, jobs=12, kinds=[kind]))
    assert [row.name.rpartition(".")[2] for row in rows] == ["jobs_per_s", "cpu_ms", "jobs_per_s", "cpu_ms", "ratio"]
    assert rows[-1].value > 1.2
    assert rows[-1].ok is None, "SQLite has one writer: no bar"


def test_the_memory_of_a_process_is_its_own_and_not_that_of_who_started_it():
    held = bytearray(b"x") * (200 * 2**20)
    code = "from collab_layer.bench.report import peak_rss_mb; print(peak_rss_mb())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(held) / 2**20 < peak_rss_mb()
    assert float(done.stdout) < peak_rss_mb() - 50


def test_how_fast_the_machine_was_is_told_at_each_moment(small):
    told = {row.name.removeprefix("perf.machine."): row for row in small.rows if row.name.startswith("perf.machine.")}
    moments = ("first", "reading", "writing", "last")
    assert set(told) == {f"{moment}.{kind}_ms" for moment in moments for kind in ("python", "memory")}
    assert all(row.value > 0 and row.bar is None for row in told.values())
