"""Earlier choices of a tenant's owners to ranking weights, and to what neighbours changed.

load:   past choices, each read as of the moment before it (`choices`);
stages: fit;
save:   the weights and the state of the gate, one row; of `lift` nothing.
"""

from __future__ import annotations

import numpy as np

from collab_layer.errors import NotPermittedError, UnknownIdError
from collab_layer.flows import gate
from collab_layer.flows.choices import cases, choices
from collab_layer.flows.tools import Tools
from collab_layer.graph import names
from collab_layer.stages.fit import chance, fit_gated
from collab_layer.stages.rank import OWN
from collab_layer.types.entity import Entity
from collab_layer.types.lift import Gate, Lift
from collab_layer.types.scope import Scope

EACH = 30
"""Choices of one owner that its own lift is judged on."""
OWNERS = 300
WIDE = 1.96


async def refit(tools: Tools, tenant: str, owners: int) -> Gate:
    """Fit on the newest choice of up to `owners` owners and keep what comes out; the defaults if there are too few."""
    found = await choices(tools, tenant, owners)
    fitted = gate.of(await tools.in_thread(fit_gated, await cases(tools, tenant, found)))
    await tools.in_thread(gate.keep, tools, tenant, fitted)
    return fitted


async def lift(tools: Tools, scope: Scope, entity: Entity | None) -> Lift:
    """What neighbours change in past choices, with the weights in use, against own memory alone.

    Raises:
        NotPermittedError: A principal asks for somebody else's.
        UnknownIdError: Nobody is known under that name.
    """
    if scope.principal is not None and scope.principal != entity:
        raise NotPermittedError(str(scope.principal), "ask what neighbours changed for", str(entity or scope.tenant))
    of = None if entity is None else await tools.in_thread(_id, tools, scope.tenant, entity)
    used = await tools.in_thread(_gate, tools, scope.tenant)
    found = await choices(tools, scope.tenant, OWNERS, of=of, each=1 if of is None else EACH)
    past = await cases(tools, scope.tenant, found)
    own = {name: weight for name, weight in used.weights.items() if name in OWN}
    alone = np.array([chance(case, own) for case in past])
    together = np.array([chance(case, used.weights) for case in past])
    change = together - alone
    count = len(change)
    mean = float(change.mean()) if count else 0.0
    wide = WIDE * float(change.std(ddof=1)) / count**0.5 if count > 1 else 1.0
    return Lift(
        entity=entity,
        cases=count,
        alone=float(alone.mean()) if count else 0.0,
        together=float(together.mean()) if count else 0.0,
        change=mean,
        low=max(mean - wide, -1.0),
        high=min(mean + wide, 1.0),
        gate=used,
    )


def _gate(tools: Tools, tenant: str) -> Gate:
    with tools.store.database.read() as connection:
        return gate.load(connection, tenant)


def _id(tools: Tools, tenant: str, entity: Entity) -> int:
    with tools.store.database.read() as connection:
        found = names.find(connection, tenant, [str(entity)])
    if not found:
        raise UnknownIdError(str(entity))
    return found[str(entity)]


__all__ = ["lift", "refit"]
