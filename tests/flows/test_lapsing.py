"""What was delivered is looked at again a page at a time, and only for a reason."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import event, func, insert, select

from collab_layer.flows import lapsing
from collab_layer.graph.derived import Item, store
from collab_layer.graph.tables import deliveries
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER, SECOND

COUNT = 3 * lapsing.PAGE + 50


@pytest.fixture
def tools(layer):
    """A tenant with many items that were delivered to `user:b`, resting on `user:a`."""
    layer.observe("user:a", "item:x")
    layer.observe("user:b", "item:x")
    layer.grant("user:a", "user:b", "records")
    layer.drain()
    layer.attach(InMemoryBackend(), deliver=True)
    tools = layer._layer._core.tools
    [name] = tools.delivered_to("acme")
    with tools.store.database.write() as connection:
        items = [
            Item(
                id=f"d{n:031x}", owner=3, kind=FacetKind.UPDATE, key=f"k{n}", text="said", confidence=0.5,
                level=Level.RECORDS, links=(), sources=((f"i{n:x}", 1, 1.0),), made_by="rules",
                at=0, expires=tools.now() + 60 * SECOND if n == 1 else FOREVER,
            )
            for n in range(COUNT)
        ]  # fmt: skip
        store(connection, "acme", items)
        rows = [
            {"tenant": "acme", "item": item.id, "backend": name, "state": "delivered", "attempts": 0, "at": 0}
            for item in items
        ]
        connection.execute(insert(deliveries), rows)
    return tools


def states(tools):
    with tools.store.database.read() as connection:
        query = select(deliveries.c.state, func.count()).group_by(deliveries.c.state)
        return {state: count for state, count in connection.execute(query)}


def turn(tools, **how):
    [name] = tools.delivered_to("acme")
    return tools.lapsing.turn(tools.store, "acme", name, tools.now(), **how)


def round_of(tools, **how):
    turns = 1
    while turn(tools, **how):
        how = {}
        turns += 1
    return turns


def test_one_turn_looks_at_a_page(tools):
    assert round_of(tools) == 4
    assert states(tools) == {"delivered": COUNT}


def test_without_a_reason_nothing_is_looked_at(tools):
    round_of(tools)
    asked: Counter[bool] = Counter()
    event.listen(
        tools.store.database.engine,
        "before_cursor_execute",
        lambda *call: asked.update(["deliveries" in call[2].lower()]),
    )
    assert round_of(tools) == 1
    assert asked[True] == 0


def test_what_has_run_out_is_taken_back(tools, clock):
    round_of(tools)
    clock.advance(minutes=2)
    round_of(tools)
    assert states(tools) == {"delivered": COUNT - 1, "retracting": 1}


def test_a_change_of_policy_has_all_of_it_looked_at_again(tools, layer):
    round_of(tools)
    layer.grant("user:b", "user:a", "records")
    assert round_of(tools) == 4


def test_it_can_be_asked_for(tools):
    round_of(tools)
    assert round_of(tools, whole=True) == 4
