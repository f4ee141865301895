"""A prompt to a model's reply, within the tenant's budget; the only door to a language model.

load:   what the tenant has spent today, and a reservation for this question;
ask:    once, within the role's time;
save:   what it really cost.

It never raises for what a model did, nor because the books cannot be kept: a caller gets no
reply, and one sentence why. Then the rules stand in.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, replace
from typing import Any, Generic

from pydantic import BaseModel

from collab_layer.errors import ModelError, ModelReplyError, ModelTimeoutError, StoreError
from collab_layer.flows.tools import Asked, Tools
from collab_layer.graph import spending
from collab_layer.graph.spending import Account, Caps, Cost
from collab_layer.plugins.specs import Event
from collab_layer.ports.models import Answered, Reply
from collab_layer.types.asking import Prompt, Role, Usage
from collab_layer.types.tokens import estimate_tokens

log = logging.getLogger("collab_layer")

FEEDBACK_TOKENS = 200
"""What a client adds to say why a reply did not fit, at most."""


@dataclass(frozen=True, slots=True)
class Said(Generic[Reply]):
    """What came of a question.

    Attributes:
        value: The reply; None if there is none.
        usage: What it cost; None if nothing was sent.
        why: Why there is no reply, for a `degraded` list; None where there is one, and where no
            model is set up for the role.
    """

    value: Reply | None = None
    usage: Usage | None = None
    why: str | None = None


async def ask(tools: Tools, tenant: str, role: Role, prompt: Prompt, reply: type[Reply]) -> Said[Reply]:
    """Ask the model of a role, unless there is none or the tenant's budget of the day is used up."""
    asked = tools.models.get(role)
    if asked is None:
        return Said()
    account = Account.at(tenant, tools.now(), role, prompt.stage, asked.model.name)
    try:
        held = await tools.in_thread(_reserve, tools, account, asked, prompt, reply)
    except StoreError as error:
        held = f"its budget cannot be kept ({error.code})"
    if isinstance(held, str):
        return Said(why=f"the {role} model was not asked: {held}; rules stood in")
    if held.calls < asked.requests:
        prompt = replace(prompt, requests=held.calls)
    # What stands if this is cancelled: the most that it may have cost, since nobody knows.
    usage, value, why = _usage(asked, held), None, None
    try:
        answered = await _within(asked, held, prompt, reply)
        value, usage = answered.value, answered.usage
    except ModelError as error:
        log.warning("the rules stand in: %s", error)
        why = f"the {role} model gave no usable reply ({error.why}); rules stood in"
        usage = _usage(asked, Cost(error.calls, error.input_tokens, error.output_tokens))
    finally:
        await asyncio.shield(_settle(tools, account, _cost(usage) - held, value is None))
    usage = usage.model_copy(update={"stage": prompt.stage})
    tools.tell(Event("asked", tenant, "", _facts(role, usage, value is None)))
    return Said(value, usage if usage.calls else None, why)


async def _within(asked: Asked, held: Cost, prompt: Prompt, reply: type[Reply]) -> Answered[Reply]:
    """Ask, in the role's time; whatever a client does wrong becomes a `ModelError`."""
    name, most = asked.model.name, _facts_of(held)
    try:
        async with asyncio.timeout(asked.timeout_s):
            answered = await asked.model.complete(prompt, reply)
    except ModelError:
        raise
    except TimeoutError as error:
        raise ModelTimeoutError(name, f"no answer within {asked.timeout_s:g} s", **most) from error
    except Exception as error:  # a stranger's client may raise anything; its words may be the prompt's
        failure = ModelError(name, f"its client raised {type(error).__name__}", **most)
    else:
        if isinstance(answered.value, reply):
            return answered
        failure = ModelReplyError(name, f"its client gave no {reply.__name__}", **most)
    raise failure


def _reserve(tools: Tools, account: Account, asked: Asked, prompt: Prompt, reply: type[BaseModel]) -> Cost | str:
    """Take the most this question may cost out of the budget, with as many retries as fit."""
    first = prompt.tokens + estimate_tokens(json.dumps(reply.model_json_schema(), ensure_ascii=False))
    costs = [_most(first, prompt.max_tokens, requests) for requests in range(max(1, asked.requests), 0, -1)]
    caps = Caps(asked.calls_per_day, asked.tokens_per_day)
    with tools.store.database.write() as connection:
        return spending.reserve(connection, account, caps, costs)


def _most(first: int, reply: int, requests: int) -> Cost:
    """The most that so many requests cost: each repeats the question and all earlier replies, with what was wrong."""
    repeated = requests * (requests - 1) // 2
    return Cost(requests, requests * first + repeated * (reply + FEEDBACK_TOKENS), requests * reply)


async def _settle(tools: Tools, account: Account, difference: Cost, failed: bool) -> None:
    try:
        await tools.in_thread(_put_right, tools, account, difference, failed)
    except StoreError as error:  # the reservation stands: more than was spent, never less
        log.warning("what the %s model cost could not be put right: %s", account.role, error)


def _put_right(tools: Tools, account: Account, difference: Cost, failed: bool) -> None:
    with tools.store.database.write() as connection:
        spending.add(connection, account, difference, failed=int(failed))


def _cost(usage: Usage) -> Cost:
    return Cost(usage.calls, usage.input_tokens, usage.output_tokens)


def _usage(asked: Asked, cost: Cost) -> Usage:
    return Usage(model=asked.model.name, estimated=True, **_facts_of(cost))


def _facts_of(cost: Cost) -> dict[str, Any]:
    return {"calls": cost.calls, "input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}


def _facts(role: Role, usage: Usage, failed: bool) -> dict[str, Any]:
    return {"stage": usage.stage, "role": role, "failed": failed, **_facts_of(_cost(usage))}
