"""Cards found by their codes are those that the whole scan finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.graph.centring import CentredVectors, widened


def direction_of(vectors: CentredVectors, asked: np.ndarray) -> np.ndarray:
    """A vector about the mean."""
    return vectors.mean.centred(asked[None, :])[0]


def nearest_of_all(vectors: CentredVectors, asked: np.ndarray, among: np.ndarray, count: int) -> list[int]:
    """By looking at every card."""
    rows = np.flatnonzero(among & vectors.have)
    cosine = np.einsum("ij,j->i", vectors.of(rows), direction_of(vectors, asked))
    order = np.lexsort((vectors.raw[1][rows], -cosine))[:count]
    return sorted(rows[order[cosine[order] > 0]].tolist())


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(0, 400),
    count=st.integers(1, 40),
    spread=st.sampled_from([1e-3, 0.05, 1.0, 30.0]),
    sparse=st.booleans(),
)
def test_the_nearest_by_codes_are_those_of_the_whole_scan(seed, size, count, spread, sparse):
    random, dim = np.random.default_rng(seed), 32
    raw = random.normal(size=dim) * (spread < 1) + random.normal(size=(size, dim)) * spread
    if sparse:
        raw *= random.random((size, dim)) < 0.2
    raw[random.random(size) < 0.1] = 0
    raw = (
        raw[random.integers(0, max(size, 1), size)] if size else raw
    )  # some are the same, or the same but for their key
    vectors = CentredVectors(dim)
    keys = random.integers(0, 2**63, size).astype(np.uint64)
    for start in range(0, size, 150):
        part = slice(start, start + 150)
        vectors.add(raw[part].astype(np.float16), keys[part], random.random(len(raw[part])) < 0.9)
        vectors.settle((), lambda: vectors.have.copy())
        among = random.random(len(vectors.have)) < 0.7
        asked = random.normal(size=dim) if random.random() < 0.5 else raw[random.integers(0, size)] + 0.0
        asked = np.asarray(asked, np.float32) * (random.random(dim) < random.choice([0.3, 1]))
        beside = np.flatnonzero(random.random(len(vectors.have)) < random.choice([0, 0.02, 0.5]))
        rows, cosine = vectors.nearest(asked, among, count, beside)
        assert rows.tolist() == sorted({*nearest_of_all(vectors, asked, among, count), *beside.tolist()})
        assert cosine.tolist() == np.einsum("ij,j->i", vectors.of(rows), direction_of(vectors, asked)).tolist()


def test_most_cards_are_left_out_by_their_codes_alone():
    random = np.random.default_rng(3)
    raw = random.normal(size=(20_000, 64)).astype(np.float16)
    vectors, every = CentredVectors(64), np.ones(len(raw), np.bool_)
    vectors.add(raw, random.integers(0, 2**63, len(raw)).astype(np.uint64), every)
    vectors.settle((), lambda: every)
    asked = raw[0].astype(np.float32)
    _, last = vectors.nearest(asked, every, 64, np.zeros(0, np.int64))
    above = vectors.mean.cosines_at_most(vectors._codes, asked)
    assert np.count_nonzero(above >= last.min()) < 2 * 64


def test_stored_numbers_are_widened_to_the_same_values():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    stored = every[np.isfinite(every)]
    assert np.array_equal(widened(stored).view(np.int32), stored.astype(np.float32).view(np.int32))
