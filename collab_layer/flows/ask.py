"""A prompt to a model's reply, within the tenant's budget; the only door to a language model.

load:   what the tenant has spent today, and a reservation for this question;
ask:    once, within the role's time;
save:   what it really cost.

It never raises for what a model did: a caller gets no reply, and one sentence why. Then the
rules stand in.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Generic

from collab_layer.errors import ModelError, ModelTimeoutError
from collab_layer.flows.tools import Asked, Tools
from collab_layer.graph import spending
from collab_layer.graph.spending import Account
from collab_layer.plugins.specs import Event
from collab_layer.ports.models import Answered, Reply
from collab_layer.types.asking import Prompt, Role, Usage

log = logging.getLogger("collab_layer")


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
    over = await tools.in_thread(_reserve, tools, account, asked, prompt)
    if over is not None:
        return Said(why=f"the {role} model was not asked: {over}; rules stood in")
    # What stands if this is cancelled: it was sent, and how long the answer was nobody knows.
    usage = Usage(stage=prompt.stage, model=asked.model.name, input_tokens=prompt.tokens, estimated=True)
    value, why = None, None
    try:
        answered = await _within(asked, prompt, reply)
        value, usage = answered.value, answered.usage.model_copy(update={"stage": prompt.stage})
    except ModelError as error:
        log.warning("the rules stand in: %s", error)
        why = f"the {role} model gave no usable reply ({error.why}); rules stood in"
        usage = usage.model_copy(
            update={"calls": error.calls, "input_tokens": error.input_tokens, "output_tokens": error.output_tokens}
        )
    finally:
        await asyncio.shield(tools.in_thread(_settle, tools, account, prompt, usage, value is None))
    facts = {"stage": prompt.stage, "role": role, "calls": usage.calls}
    facts |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "failed": value is None}
    tools.tell(Event("asked", tenant, "", facts))
    return Said(value, usage if usage.calls else None, why)


async def _within(asked: Asked, prompt: Prompt, reply: type[Reply]) -> Answered[Reply]:
    try:
        async with asyncio.timeout(asked.timeout_s):
            return await asked.model.complete(prompt, reply)
    except TimeoutError as error:
        why = f"no answer within {asked.timeout_s:g} s"
        # It was sent, and is paid for; how long the answer would have been nobody knows.
        raise ModelTimeoutError(asked.model.name, why, calls=1, input_tokens=prompt.tokens) from error


def _reserve(tools: Tools, account: Account, asked: Asked, prompt: Prompt) -> str | None:
    """Take the most this question may cost out of the budget; or say which cap it would overrun."""
    with tools.store.database.write() as connection:
        calls, tokens = spending.spent(connection, account)
        if asked.calls_per_day is not None and calls + 1 > asked.calls_per_day:
            return f"{calls} of {asked.calls_per_day} calls of today are used"
        if asked.tokens_per_day is not None and tokens + prompt.tokens + prompt.max_tokens > asked.tokens_per_day:
            return f"{tokens} of {asked.tokens_per_day} tokens of today are used"
        spending.add(connection, account, calls=1, failed=0, tokens=(prompt.tokens, prompt.max_tokens))
    return None


def _settle(tools: Tools, account: Account, prompt: Prompt, usage: Usage, failed: bool) -> None:
    with tools.store.database.write() as connection:
        tokens = (usage.input_tokens - prompt.tokens, usage.output_tokens - prompt.max_tokens)
        spending.add(connection, account, calls=usage.calls - 1, failed=int(failed), tokens=tokens)
