"""A tenant's budget over a real, small model."""

from __future__ import annotations

import pytest

from collab_layer import CollabLayer

pytestmark = [pytest.mark.llm, pytest.mark.timeout(300)]


def test_what_the_model_says_it_cost_is_in_the_books_of_both_roles(sqlite_url, both_roles):
    with CollabLayer.open(sqlite_url, settings=both_roles()) as layer:
        rows = layer.models(ask=True)
        assert {row.condition for row in rows} <= {"ok", "down"}
        spent = layer.usage()
        assert {row.role for row in spent} == {"memory", "reasoning"}
        for row in spent:
            assert row.calls >= 1
            assert row.input_tokens > 10
            assert row.output_tokens > 0
            assert row.failed == (rows[0 if row.role == "memory" else 1].condition == "down")


def test_a_cap_of_calls_keeps_the_model_from_being_asked(sqlite_url, both_roles):
    with CollabLayer.open(sqlite_url, settings=both_roles(calls_per_day=1, retries=0)) as layer:
        layer.models(ask=True)
        before = layer.usage()
        assert all("1 of 1 calls of today are used" in row.detail for row in layer.models(ask=True))
        assert layer.usage() == before
        assert layer.for_tenant("other").usage() == []
        assert {row.condition for row in layer.for_tenant("other").models(ask=True)} <= {"ok", "down"}


def test_a_cap_of_tokens_is_never_overrun_by_a_question(sqlite_url, both_roles):
    with CollabLayer.open(sqlite_url, settings=both_roles(tokens_per_day=250, retries=0)) as layer:
        for _ in range(6):
            rows = layer.models(ask=True)
        assert all("of 250 tokens of today are used" in row.detail for row in rows)
        for row in layer.usage():
            assert 0 < row.input_tokens + row.output_tokens <= 250
