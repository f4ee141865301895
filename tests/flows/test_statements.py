"""How often a read asks the database, counted: each time is a round trip on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from collab_layer.flows.made import Made, Run, pack
from collab_layer.types.entity import Entity
from collab_layer.types.facet import Evidence, Facet
from collab_layer.types.prompt import OVERHEAD_TOKENS

CACHED, FRESH = 3, 24
"""Statements at most; BEGIN and COMMIT are not counted, nor is what the log writes later."""


@pytest.fixture
def shared(layer):
    for who in ("a", "b", "c", "d"):
        for n in range(4):
            layer.observe(f"user:{who}", f"item:{n}", verb="liked", text=f"Number {n} is about desert planets, {who}")
    layer.grant("user:a", "tenant", "records")
    layer.grant("user:b", "tenant", "records")
    layer.drain()
    return layer


@contextmanager
def counted(layer) -> Iterator[list[str]]:
    engine = layer._layer._core.tools.store.database.engine
    layer.injections()  # what waits in the log is written
    said: list[str] = []

    def note(connection, cursor, statement, *rest) -> None:
        if statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")) and "injec" not in statement:
            said.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield said
    event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("query", [None, "Which number is about desert planets?"])
def test_a_context_asks_few_things_and_a_cached_one_only_whether_anything_changed(shared, query):
    shared.context("user:d", query)  # so that what every read needs is known
    with counted(shared) as said:
        assert not shared.context("user:c", query).cached
    assert 0 < len(said) <= FRESH
    with counted(shared) as said:
        assert shared.context("user:c", query).cached
    assert 0 < len(said) <= CACHED


def facet(number: int, text: str, quote: str | None = None) -> Facet:
    behind = Evidence(source="c1", owner=Entity("user", "анна"), quote=quote)
    return Facet(id=f"d{number:031x}", text=text, confidence=0.5, contributors=1, evidence=(behind,))


def test_what_finds_no_room_is_never_made_in_full():
    made: list[int] = []

    def later(number: int) -> Made:
        def make() -> tuple[Facet, None]:
            made.append(number)
            return facet(number, text(number), quote="сказано  так\n" * (number % 2)), None

        return Made(text(number), frozenset(), make)

    def text(number: int) -> str:
        return f'Line {number} "says" é {"что-то " * (number % 7)}' + "  spaced\n" * (number % 3)

    every = [later(number) for number in range(40)]
    budget = OVERHEAD_TOKENS + 200
    shown, tokens = pack([Run(every)], budget)
    some = list(made)
    assert shown
    assert tokens <= budget
    assert len(some) < 25
    assert all(one.least <= one.cost for one in every)
    assert pack([Run(every)], budget) == (shown, tokens), "what was left out for its text alone would not have fitted"
    left = [one for one in every if one not in shown]
    spare = budget - tokens
    assert all(one.cost > spare for one in left)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([3, 5, 40, 60, 70, 90, 160]), max_size=30), st.integers(0, 400))
def test_what_is_drawn_no_further_than_there_is_room_is_told_as_if_all_were_looked_at(lengths, budget):
    drawn: list[int] = []
    every = [Made.ready(facet(n, f"{n} ".ljust(length, "x"))) for n, length in enumerate(lengths)]

    def drawing() -> Iterator[Made]:
        for n, one in enumerate(every):
            drawn.append(n)
            yield one

    least = min((one.least for one in every), default=0)
    lazily = Run(drawing(), least)
    shown = pack([lazily], OVERHEAD_TOKENS + budget)
    assert shown == pack([Run(every)], OVERHEAD_TOKENS + budget)
    full = [at for at in range(len(every)) if sum(one.cost for one in shown[0] if one in every[:at]) + least > budget]
    assert len(drawn) <= (full[0] if full else len(every))
    assert pack([lazily], OVERHEAD_TOKENS + budget, {shown[0][0].facet.id} if shown[0] else ()) == pack(
        [Run(one for one in every if one not in shown[0][:1])], OVERHEAD_TOKENS + budget
    )
