"""Peers found by codes are those that looking at every mean memory finds, whatever is kept and whatever changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.graph import centroids
from collab_layer.graph.centroids import Centroids

DIM = 16


class Memories:
    """Means that are what they are just now, counted as they are made."""

    def __init__(self, random: np.random.Generator, size: int) -> None:
        self.random, self.made = random, 0
        self.vectors = np.zeros((size, DIM), np.float32)
        self.have = np.zeros(size, np.bool_)
        self.change(np.arange(size))

    def change(self, ids: np.ndarray) -> None:
        wide = self.random.normal(size=(len(ids), DIM)) * self.random.choice([0.05, 1.0], (len(ids), 1)) + 0.5
        self.vectors[ids] = wide / np.linalg.norm(wide, axis=1, keepdims=True)
        self.have[ids] = self.random.random(len(ids)) < 0.8

    def make(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.made += len(ids)
        return self.vectors[ids[self.have[ids]]], self.have[ids]

    def best(self, ids: np.ndarray, vector: np.ndarray, count: int, floor: float) -> list[int]:
        cosine = np.where(self.have[ids], np.einsum("ij,j->i", self.vectors[ids], vector), -2.0)
        order = np.lexsort((ids, -cosine))[:count]
        return ids[order[cosine[order] >= floor]].tolist()


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 700),
    count=st.integers(1, 20),
    floor=st.sampled_from([-1.0, 0.15, 0.9]),
)
def test_the_nearest_by_codes_are_those_of_all_after_any_changes(seed, size, count, floor):
    random = np.random.default_rng(seed)
    memories, kept = Memories(random, size), Centroids(DIM)
    kept.grow(size)
    for turn in range(4):
        ids = np.flatnonzero(random.random(size) < 0.8).astype(np.int64)
        vector = random.normal(size=DIM).astype(np.float32)
        vector /= np.linalg.norm(vector)
        at, cosine = kept.near(ids, memories.make, vector, count, floor)
        order = np.lexsort((ids[at], -cosine))[:count]
        assert ids[at[order[cosine[order] >= floor]]].tolist() == memories.best(ids, vector, count, floor)
        view = kept.of(ids, memories.make)
        there = view.row >= 0
        assert np.array_equal(there, memories.have[ids])
        assert np.array_equal(view.matrix[view.row[there]], memories.vectors[ids[there]])
        changed = np.flatnonzero(random.random(size) < 0.3).astype(np.int64)
        memories.change(changed)
        kept.forget(changed if turn != 2 else None)
        if turn == 2:
            memories.change(np.arange(size))


def test_no_more_vectors_are_kept_than_so_many_and_those_handed_out_stay(monkeypatch):
    monkeypatch.setattr(centroids, "KEPT", 50)
    memories, kept = Memories(np.random.default_rng(1), 400), Centroids(DIM)
    kept.grow(400)
    memories.have[:] = True
    first = kept.of(np.arange(40), memories.make)
    for start in range(40, 400, 20):
        kept.of(np.arange(start, start + 20), memories.make)
    assert len(kept._vector.view) <= 50
    assert np.array_equal(first.matrix[first.row], memories.vectors[:40])
    made = memories.made
    kept.of(np.arange(380, 400), memories.make)
    assert memories.made == made, "those asked for last are not made again"


@pytest.mark.parametrize("size", [3_000])
def test_looking_for_peers_makes_every_mean_once_and_few_again(size):
    memories, kept = Memories(np.random.default_rng(2), size), Centroids(DIM)
    kept.grow(size)
    for _ in range(5):
        vector = memories.random.normal(size=DIM).astype(np.float32)
        kept.near(np.arange(size), memories.make, vector / np.linalg.norm(vector), 8, 0.15)
    assert memories.made < 1.5 * size
