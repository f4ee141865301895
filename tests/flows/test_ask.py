"""Asking a model: within the tenant's budget, whatever it does, and never above it.

`models(ask=True)` is the shortest way through the one door to a model; it asks a tiny
question of each role that has one.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator

import pytest

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.config import RoleSettings, Settings
from collab_layer.errors import InputError, ModelBusyError, ModelDownError, ModelReplyError, NotPermittedError
from collab_layer.ports.models import Answered
from collab_layer.testing import FakeOpenAI, ScriptedModel
from collab_layer.testing.openai_server import HttpAnswer, completion, problem
from collab_layer.types.asking import Prompt, RoleHealth, Spent, Usage

HERE = {"here": True}


def settings(**memory) -> Settings:
    return Settings(worker=False, memory=RoleSettings(**memory))


def always(_: Prompt) -> dict[str, bool]:
    return HERE


def memory_of(layer: CollabLayer) -> RoleHealth:
    """Ask the memory model whether it is there."""
    return next(row for row in layer.models(ask=True) if row.role == "memory")


def only(rows: list[Spent]) -> Spent:
    assert len(rows) == 1, rows
    return rows[0]


class Waiting:
    """A model that never answers; `asked` is set when it is asked."""

    name = "waiting"

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def complete(self, prompt, reply, /):
        self.asked.set()
        await asyncio.Event().wait()


class Counting:
    """A model that takes a moment, and counts who came."""

    name = "counting"

    def __init__(self) -> None:
        self.sent = 0

    async def complete(self, prompt, reply, /):
        self.sent += 1
        await asyncio.sleep(0.02)
        return Answered(reply(here=True), Usage(model=self.name, input_tokens=7, output_tokens=3))


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


# -- what is counted -------------------------------------------------------------------------


def test_without_a_model_the_rules_do_the_work_and_nothing_is_counted(database_url):
    with CollabLayer.open(database_url, settings=settings()) as layer:
        assert {(row.role, row.condition) for row in layer.models(ask=True)} == {
            ("memory", "rules"),
            ("reasoning", "rules"),
        }
        assert layer.usage(400) == []


def test_a_model_is_not_asked_unless_told_to(database_url):
    model = ScriptedModel(always, name="scripted:one")
    with CollabLayer.open(database_url, memory_model=model, settings=settings()) as layer:
        row = layer.models()[0]
        assert (row.role, row.condition, row.model) == ("memory", "set", "scripted:one")
        assert model.prompts == []
        assert layer.usage() == []


def test_what_a_question_cost_is_in_the_books(database_url, clock):
    model = Counting()
    with CollabLayer.open(database_url, memory_model=model, settings=settings(), clock=clock) as layer:
        assert memory_of(layer).condition == "ok"
        row = only(layer.usage())
        assert (row.day, row.role, row.stage, row.model) == ("2026-01-01", "memory", "check", "counting")
        assert (row.calls, row.failed, row.input_tokens, row.output_tokens) == (1, 0, 7, 3)


def test_both_roles_have_their_own_books_and_their_own_caps(database_url):
    both = Settings(worker=False, memory=RoleSettings(calls_per_day=1), reasoning=RoleSettings(calls_per_day=2))
    light, heavy = ScriptedModel(always, name="light"), ScriptedModel(always, name="heavy")
    with CollabLayer.open(database_url, memory_model=light, reasoning_model=heavy, settings=both) as layer:
        for _ in range(3):
            layer.models(ask=True)
        assert {(row.role, row.model, row.calls) for row in layer.usage()} == {
            ("memory", "light", 1),
            ("reasoning", "heavy", 2),
        }


def test_two_tenants_spend_apart(database_url):
    model = ScriptedModel(always)
    capped = settings(calls_per_day=1)
    with CollabLayer.open(database_url, tenant="acme", memory_model=model, settings=capped) as acme:
        other = acme.for_tenant("other")
        assert memory_of(acme).condition == memory_of(other).condition == "ok"
        assert memory_of(acme).condition == memory_of(other).condition == "down"
        assert only(acme.usage()).calls == only(other.usage()).calls == 1
        assert acme.for_tenant("third").usage(400) == []


def test_spending_is_the_operators_to_see(database_url):
    with CollabLayer.open(database_url, settings=settings()) as layer:
        bob = layer.as_("user:bob")
        for look in (bob.usage, bob.models):
            with pytest.raises(NotPermittedError):
                look()


@pytest.mark.parametrize("days", [0, -1, 401])
def test_usage_looks_back_1_to_400_days(sqlite_url, days):
    with CollabLayer.open(sqlite_url, settings=settings()) as layer, pytest.raises(InputError, match="400"):
        layer.usage(days)


# -- caps ------------------------------------------------------------------------------------


def test_a_used_up_cap_of_calls_fails_softly_and_says_so(database_url):
    model = ScriptedModel(always)
    with CollabLayer.open(database_url, memory_model=model, settings=settings(calls_per_day=2)) as layer:
        assert [memory_of(layer).condition for _ in range(2)] == ["ok", "ok"]
        row = memory_of(layer)
        assert row.condition == "down"
        assert row.detail == "the memory model was not asked: 2 of 2 calls of today are used; rules stood in"
        assert len(model.prompts) == only(layer.usage()).calls == 2


def test_a_cap_of_tokens_holds_what_a_question_may_cost_at_most(database_url):
    model = ScriptedModel(always)
    with CollabLayer.open(database_url, memory_model=model, settings=settings(tokens_per_day=60)) as layer:
        row = memory_of(layer)
        assert "0 of 60 tokens of today are used" in row.detail
        assert model.prompts == []
        assert layer.usage() == []


def test_a_cap_of_tokens_counts_what_was_spent_and_not_what_was_held(database_url):
    model = Counting()
    with CollabLayer.open(database_url, memory_model=model, settings=settings(tokens_per_day=200)) as layer:
        asked = 0
        while memory_of(layer).condition == "ok":
            asked += 1
        row = only(layer.usage())
        assert row.input_tokens + row.output_tokens == 10 * asked <= 200
        assert asked > 3  # were the reservations left in the books, it would be one


def test_a_cap_of_none_at_all_never_asks(database_url):
    model = ScriptedModel(always)
    with CollabLayer.open(database_url, memory_model=model, settings=settings(calls_per_day=0)) as layer:
        assert memory_of(layer).condition == "down"
        assert model.prompts == []


def test_a_new_day_has_a_new_budget(database_url, clock):
    capped, model = settings(calls_per_day=1), ScriptedModel(always)
    with CollabLayer.open(database_url, memory_model=model, settings=capped, clock=clock) as layer:
        assert [memory_of(layer).condition for _ in range(2)] == ["ok", "down"]
        clock.advance(hours=23, minutes=59, seconds=59)
        assert memory_of(layer).condition == "down"
        clock.advance(seconds=1)
        assert [memory_of(layer).condition for _ in range(2)] == ["ok", "down"]
        assert [(row.day, row.calls) for row in layer.usage(2)] == [("2026-01-02", 1), ("2026-01-01", 1)]
        assert only(layer.usage()).day == "2026-01-02"


def test_a_question_over_midnight_is_settled_on_the_day_it_was_asked(database_url, clock):
    clock.advance(hours=23, minutes=59)

    def answer(_: Prompt) -> dict[str, bool]:
        clock.advance(minutes=2)
        return HERE

    with CollabLayer.open(database_url, memory_model=ScriptedModel(answer), settings=settings(), clock=clock) as layer:
        assert memory_of(layer).condition == "ok"
        row = only(layer.usage(7))
        assert (row.day, row.calls) == ("2026-01-01", 1)
        assert row.output_tokens < 60  # the reservation is gone


# -- whatever the model does -----------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ModelReplyError("scripted", "it was cut off", calls=2, input_tokens=50, output_tokens=40),
        ModelDownError("scripted", "it cannot be reached", calls=2, input_tokens=50, output_tokens=40),
        ModelBusyError("scripted", "it asks to wait", after_s=9, calls=2, input_tokens=50, output_tokens=40),
    ],
    ids=lambda error: error.code,
)
def test_a_failure_is_settled_at_what_it_cost(database_url, error):
    with CollabLayer.open(database_url, memory_model=ScriptedModel([error]), settings=settings()) as layer:
        row = memory_of(layer)
        assert row.condition == "down"
        assert row.detail == f"the memory model gave no usable reply ({error.why}); rules stood in"
        spent = only(layer.usage())
        assert (spent.calls, spent.failed, spent.input_tokens, spent.output_tokens) == (2, 1, 50, 40)


def test_a_model_that_nobody_reached_costs_no_call(database_url):
    down = ScriptedModel([ModelDownError("scripted", "it cannot be reached")])
    with CollabLayer.open(database_url, memory_model=down, settings=settings(calls_per_day=1)) as layer:
        memory_of(layer)
        spent = only(layer.usage())
        assert (spent.calls, spent.failed, spent.input_tokens, spent.output_tokens) == (0, 1, 0, 0)


def test_a_model_that_never_answers_is_left_after_its_time_and_paid_for(database_url):
    with CollabLayer.open(database_url, memory_model=Waiting(), settings=settings(timeout_s=0.2)) as layer:
        assert "no answer within 0.2 s" in memory_of(layer).detail
        spent = only(layer.usage())
        assert (spent.calls, spent.failed) == (1, 1)
        assert spent.input_tokens > 0
        assert spent.output_tokens == 60  # nobody knows, so all that it might have been


class Rude:
    """A client that raises what no client should, and says what no error should."""

    name = "rude"

    async def complete(self, prompt, reply, /):
        raise RuntimeError(f"canary {prompt.data}")


class Wrong:
    """A client that gives something else."""

    name = "wrong"

    async def complete(self, prompt, reply, /):
        return Answered(prompt, Usage(model=self.name))


@pytest.mark.parametrize(
    ("model", "words"), [(Rude(), "its client raised RuntimeError"), (Wrong(), "its client gave no Here")]
)
def test_a_strangers_client_that_misbehaves_is_a_failure_like_any_other(database_url, model, words, caplog):
    with CollabLayer.open(database_url, memory_model=model, settings=settings()) as layer:
        row = memory_of(layer)
        assert words in row.detail
        assert "canary" not in row.detail + caplog.text
        assert (only(layer.usage()).calls, only(layer.usage()).failed) == (1, 1)


async def cancelled_question(url: str) -> list[Spent]:
    model = Waiting()
    async with await AsyncCollabLayer.open(url, memory_model=model, settings=settings()) as layer:
        asking = asyncio.ensure_future(layer.models(ask=True))
        await asyncio.to_thread(model.asked.wait, 10)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return await layer.usage()


def test_a_cancelled_question_counts_as_the_most_it_may_have_cost(database_url):
    spent = only(asyncio.run(cancelled_question(database_url)))
    assert (spent.calls, spent.failed, spent.output_tokens) == (1, 1, 60)
    assert spent.input_tokens > 0


# -- never above -----------------------------------------------------------------------------


async def crowd(url: str, model: Counting, layers: int, questions: int, cap: int) -> tuple[int, int]:
    """Ask at once through several layers of one database; how many were answered, and calls in the books."""
    opened = [
        await AsyncCollabLayer.open(url, memory_model=model, settings=settings(calls_per_day=cap))
        for _ in range(layers)
    ]
    asking = [layer.models(ask=True) for layer in opened for _ in range(questions)]
    rows = [row for rows in await asyncio.gather(*asking) for row in rows if row.role == "memory"]
    (spent,) = await opened[0].usage()
    for layer in opened:
        await layer.aclose()
    return sum(row.condition == "ok" for row in rows), spent.calls


def test_a_crowd_does_not_overrun_a_cap(database_url):
    model = Counting()
    assert asyncio.run(crowd(database_url, model, layers=1, questions=20, cap=5)) == (5, 5)
    assert model.sent == 5


def test_a_crowd_in_several_processes_does_not_overrun_a_cap(database_url):
    # Each layer has an engine, a pool and locks of its own, as a process has.
    model = Counting()
    assert asyncio.run(crowd(database_url, model, layers=4, questions=10, cap=5)) == (5, 5)
    assert model.sent == 5


async def retrying_crowd(url: str, base_url: str, cap: int) -> list[Spent]:
    capped = settings(base_url=base_url, calls_per_day=cap, retries=2, timeout_s=20)
    async with await AsyncCollabLayer.open(url, memory_model="openai:small", settings=capped) as layer:
        await asyncio.gather(*(layer.models(ask=True) for _ in range(20)))
        return await layer.usage()


def test_retries_do_not_overrun_a_cap_either(database_url, server):
    server.will(completion("this is no JSON"))
    spent = only(asyncio.run(retrying_crowd(database_url, server.url, cap=5)))
    assert len(server.requests) == spent.calls == 5
    assert spent.failed == 2  # three requests for one question, the last two for the next


def test_a_nearly_used_up_cap_leaves_fewer_retries(database_url, server):
    server.will(completion("this is no JSON"))
    capped = settings(base_url=server.url, calls_per_day=2, retries=4)
    with CollabLayer.open(database_url, memory_model="openai:small", settings=capped) as layer:
        assert "in 2 requests" in memory_of(layer).detail
        assert "2 of 2 calls of today are used" in memory_of(layer).detail
        assert len(server.requests) == 2


def test_every_request_of_a_retried_question_is_in_the_books(database_url, server):
    server.will(problem(500), completion("no"), completion(json.dumps(HERE)))
    opened = settings(base_url=server.url, retries=2)
    with CollabLayer.open(database_url, memory_model="openai:small", settings=opened) as layer:
        assert memory_of(layer).condition == "ok"
        spent = only(layer.usage())
        assert (spent.calls, spent.failed, spent.input_tokens, spent.output_tokens) == (3, 0, 22, 14)


def test_the_client_keeps_the_time_so_that_every_request_is_known(database_url, server):
    server.will(problem(500), HttpAnswer(stall=True))
    opened = settings(base_url=server.url, retries=2, timeout_s=1.5)
    with CollabLayer.open(database_url, memory_model="openai:small", settings=opened) as layer:
        assert "no answer within 1.5 s" in memory_of(layer).detail
        assert only(layer.usage()).calls == 2


# -- when the books cannot be kept -----------------------------------------------------------


@pytest.mark.slow
def test_a_budget_that_cannot_be_booked_asks_nobody(tmp_path):
    model = ScriptedModel(always)
    with CollabLayer.open(str(tmp_path / "collab.db"), memory_model=model, settings=settings()) as layer:
        holder = sqlite3.connect(tmp_path / "collab.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        assert "its budget cannot be kept (store_busy)" in memory_of(layer).detail
        holder.close()
        assert model.prompts == []
        assert memory_of(layer).condition == "ok"


@pytest.mark.slow
def test_a_reply_is_not_lost_because_its_cost_cannot_be_put_right(tmp_path):
    path = tmp_path / "collab.db"
    holders: list[sqlite3.Connection] = []

    def answer(_: Prompt) -> dict[str, bool]:
        holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        holders.append(holder)
        return HERE

    with CollabLayer.open(str(path), memory_model=ScriptedModel(answer), settings=settings()) as layer:
        assert memory_of(layer).condition == "ok"
        holders[0].close()
        spent = only(layer.usage())
        assert (spent.calls, spent.failed, spent.output_tokens) == (1, 0, 60)  # the reservation stands
