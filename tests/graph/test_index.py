"""The index of a tenant is a function of what is stored, not of when it was looked at."""

from __future__ import annotations

import numpy as np
import pytest

from collab_layer.config import Settings
from collab_layer.graph import centring
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.past import PastIndex
from collab_layer.graph.store import GraphStore
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.types.time import micros

WORDS = ("dune", "emma", "worm", "spice", "ball", "letter", "desert", "town", "harvester", "carriage")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def layer(sqlite_url, clock):
    with CollabLayer.open(sqlite_url, settings=Settings(worker=False), clock=clock) as opened:
        yield opened


def stored(layer) -> GraphStore:
    return layer._layer._core.tools.store


def looked(layer, now: int) -> TenantIndex:
    store = stored(layer)
    index = store.index("default")
    with store.database.read() as connection, index.lock:
        index.refresh(connection, now)
    return index


def fresh(layer, now: int) -> TenantIndex:
    """As another process sees it, that looks for the first time."""
    store = stored(layer)
    index = TenantIndex("default", store.embedder, store.dim)
    with store.database.read() as connection:
        index.refresh(connection, now)
    return index


def same(one: TenantIndex, other: TenantIndex) -> None:
    ids = np.array(sorted(one._row), np.int64)
    assert sorted(other._row) == ids.tolist()
    assert np.array_equal(one._vectors.mean.vector, other._vectors.mean.vector)
    assert np.array_equal(one.vectors(one.rows_of_cards(ids)), other.vectors(other.rows_of_cards(ids)))
    owners = one.owners()
    near, far = one.centroids(owners), other.centroids(owners)
    for a, b in zip(near.row, far.row, strict=True):
        assert (a < 0) == (b < 0)
        assert a < 0 or np.allclose(near.matrix[a], far.matrix[b], rtol=0, atol=1e-7)


def test_every_process_has_the_same_vectors_whenever_it_looked(layer, clock):
    said: list[str] = []
    for n in range(120):
        text = " ".join(WORDS[(n * k + k) % 10] for k in range(1, 5)) + f" {n}"
        at = clock.advance(minutes=1)
        earlier = said[n // 2] if n % 7 == 3 else None
        said += layer.observe(f"user:{n % 9}", text=text, at=at, replaces=earlier if n % 9 == (n // 2) % 9 else None)
        if n % 11 == 0:
            layer.drain()
            looked(layer, micros(clock()))
    layer.drain()
    now = micros(clock())
    same(looked(layer, now), fresh(layer, now))


def test_the_past_of_the_index_is_a_fresh_index_of_what_was_told_by_then(tmp_path, clock):
    urls = [str(tmp_path / name) for name in ("all.db", "some.db")]
    settings = Settings(worker=False)
    with (
        CollabLayer.open(urls[0], settings=settings, clock=clock) as all_,
        CollabLayer.open(urls[1], settings=settings, clock=clock) as some,
    ):
        start = clock()
        for n in range(40):
            text = " ".join(WORDS[(n * k + k) % 10] for k in range(1, 4))
            at = clock.advance(hours=1)
            for layer in (all_, some) if n < 25 else (all_,):
                layer.observe(f"user:{n % 5}", text=text, at=at)
        for layer in (all_, some):
            layer.drain()
        then, now = micros(start) + 25 * 3_600_000_000, micros(clock())
        past, present = PastIndex(looked(all_, now), then), looked(some, now)
        assert np.array_equal(past._mean.vector, present._vectors.mean.vector)
        owners = present.owners()
        assert past.owners().tolist() == owners.tolist()
        near, far = past.centroids(owners), present.centroids(owners)
        assert np.array_equal(near.matrix[near.row], far.matrix[far.row])
        assert int(past.cards.alive.sum()) == int(present.cards.alive.sum()) == 25
        assert dict(past.known) == dict(present.known)
        assert int(looked(all_, now).cards.alive.sum()) == 40, "looking back changes nothing"


def test_the_mean_is_that_of_a_set_and_rarely_another(layer):
    random = np.random.default_rng(7)
    raw = random.normal(size=(3000, 16)).astype(np.float16)
    keys = np.array([centring.key_of(row.tobytes(), "user:a", n) for n, row in enumerate(raw)], np.uint64)
    mean, changes = centring.Mean(16), 0
    for size in range(1, 3001):
        held = np.zeros(3000, np.bool_)
        held[:size] = True
        if mean.concerns([int(keys[size - 1])]):
            changes += mean.update(raw, keys, held)
    other = centring.Mean(16)
    order = random.permutation(3000)
    other.update(raw[order], keys[order], np.ones(3000, np.bool_))
    assert np.array_equal(mean.vector, other.vector)
    assert changes < centring.SAMPLE * (1.5 + np.log(3000 / centring.SAMPLE))
    exact = raw.astype(np.float64).mean(axis=0)
    assert float(np.linalg.norm(mean.vector - exact)) < 4 * 4 / np.sqrt(centring.SAMPLE)


def test_names_are_those_of_the_earliest_mention_whatever_was_told_first(layer, clock):
    start = clock()
    clock.advance(days=3)
    layer.observe("user:a", text="Go Module trouble", at=clock())
    layer.drain()
    layer.observe("user:b", text="The Go modules are broken", at=start)
    layer.drain()
    index = looked(layer, micros(clock()))
    assert index.known_names.first("topic:go-modul") == (micros(start), "Go modules")
