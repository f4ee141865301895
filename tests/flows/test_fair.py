"""An entity with thousands of interactions pending keeps nobody waiting, and is not kept waiting for ever."""

from __future__ import annotations

import time

import pytest

from collab_layer.config import Settings
from collab_layer.flows import work
from collab_layer.graph.outbox import MAX_BATCH
from collab_layer.sync import CollabLayer
from collab_layer.types.interaction import Interaction

HOT = 5 * MAX_BATCH


@pytest.fixture
def layer(database_url):
    with CollabLayer.open(database_url, settings=Settings(worker=False)) as layer:
        yield layer


def told(who, count, first=0):
    numbers = range(first, first + count)
    return [Interaction(actor=who, target=f"item:i{n % 40}", text=f"Note {n} on settings") for n in numbers]


def step(layer):
    return layer._loop.run(work.step(layer._layer._core.tools, "default"))


def test_one_with_thousands_pending_lets_another_go_next(layer):
    layer.observe(told("user:hot", HOT))
    layer.observe(told("user:cold", 1))
    begun, ends, settled = time.perf_counter(), [], []
    while (done := step(layer)) is not None:
        ends.append(time.perf_counter() - begun)
        settled.append(done.settled)
    assert settled == [MAX_BATCH, 1, *[MAX_BATCH] * 4]
    assert ends[1] < 0.6 * ends[-1], "the other one waited for more than its turn"


def test_one_that_never_stops_telling_does_not_push_others_back_nor_is_pushed_back(layer):
    layer.observe(told("user:hot", HOT))
    for n in range(4):
        layer.observe(told(f"user:cold{n}", 1))
    order = []
    for turn in range(10):
        layer.observe(told("user:hot", 50, HOT + 50 * turn))
        layer.observe(told(f"user:late{turn}", 1))
        order.append(step(layer).settled)
    assert order[0] == MAX_BATCH
    second = next(turn for turn, settled in enumerate(order[1:], 1) if settled > len(order))
    assert sum(order[1:second]) >= 4, "those who came first go before the hot one's second turn"
    assert sum(order[1:second]) < 4 + second, "it has its second turn though others keep coming"
