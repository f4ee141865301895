"""Which model answers in which role, whether it does, and what was spent on it.

load:   the models that are set up, or a tenant's books;
ask:    one tiny question per role, only if told to; counted like any other;
save:   nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from pydantic import BaseModel

from collab_layer.flows.ask import ask
from collab_layer.flows.tools import Tools
from collab_layer.graph import spending
from collab_layer.types.asking import Prompt, Role, RoleHealth, Spent

NONE_SET = "no model is set; the rules do its work"


class Here(BaseModel):
    """The reply to the tiny question."""

    here: bool


QUESTION = Prompt("check", "Reply with one JSON object and nothing else.", 'Say {"here": true}.', max_tokens=60)


async def check(tools: Tools, tenant: str, *, asking: bool) -> list[RoleHealth]:
    """How each role is set up; with `asking`, also whether its model answers."""
    return [await _check(tools, tenant, role, asking) for role in get_args(Role)]


async def _check(tools: Tools, tenant: str, role: Role, asking: bool) -> RoleHealth:
    asked = tools.models.get(role)
    if asked is None:
        return RoleHealth(role=role, condition="rules", detail=NONE_SET)
    name = asked.model.name
    if not asking:
        return RoleHealth(role=role, model=name, condition="set", detail=name)
    said = await ask(tools, tenant, role, QUESTION, Here)
    if said.value is None:
        return RoleHealth(role=role, model=name, condition="down", detail=said.why or "")
    return RoleHealth(role=role, model=name, condition="ok", detail=f"{name} answers")


async def usage(tools: Tools, tenant: str, days: int) -> Sequence[Spent]:
    """What the tenant spent in the last days, today included, newest first."""
    return await tools.in_thread(_listed, tools, tenant, days)


def _listed(tools: Tools, tenant: str, days: int) -> Sequence[Spent]:
    with tools.store.database.read() as connection:
        return spending.listed(connection, tenant, tools.now(), days)
