"""The newest records that links are replayed on are those that putting all in order gives."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collab_layer.graph.linked import BLOCK, SAMPLE, newest_readable


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 3_000))
@pytest.mark.parametrize("order", ["as told", "the oldest last", "any", "many at once"])
def test_the_newest_records_are_those_of_all_in_order(order, seed, size):
    random = np.random.default_rng(seed)
    at = random.integers(0, 10 if order == "many at once" else 2**40, size)
    if order in ("as told", "the oldest last"):
        at = np.sort(at)[:: 1 if order == "as told" else -1]
    cards = SimpleNamespace(at=at, id=random.permutation(size), has_vector=random.random(size) < 0.95)
    readable = random.random(size) < random.random()
    reading = SimpleNamespace(index=SimpleNamespace(cards=cards), readable=lambda focus: readable)

    standing = [row for row in range(size) if readable[row] and cards.has_vector[row]]
    settled = len(standing) // BLOCK * BLOCK
    expected = sorted(standing, key=lambda row: (cards.at[row], cards.id[row]))[:settled][-SAMPLE:]
    assert newest_readable(reading, 0).tolist() == expected
