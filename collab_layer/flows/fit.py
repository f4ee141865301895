"""Earlier choices of a tenant's owners to ranking weights, and to what neighbours changed.

load:   past choices, each read as of the moment before it (`choices`); what was served (`served`);
stages: fit;
save:   the weights and the state of the gate, one row; of `lift` nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collab_layer.errors import NotPermittedError, UnknownIdError
from collab_layer.flows import gate, served
from collab_layer.flows.choices import Seen, cases, choices
from collab_layer.flows.tools import Tools
from collab_layer.graph import names, rankings
from collab_layer.graph.rankings import Served
from collab_layer.stages.few import CUTS
from collab_layer.stages.fit import chance, fit_gated
from collab_layer.stages.rank import BESIDE, OWN
from collab_layer.types.entity import Entity
from collab_layer.types.lift import Compared, Gate, Lift
from collab_layer.types.scope import Scope

EACH = 30
"""Choices of one owner that its own lift is judged on."""
OWNERS = 300
WIDE = 1.96


async def refit(tools: Tools, tenant: str, owners: int) -> Gate:
    """Fit on the newest choice of up to `owners` owners and keep what comes out; shut if there are too few.

    Each choice is seen with all that its owner held, and as if it had held its newest one or three
    things only: the weights of who holds little are fitted on the latter. For whom neighbours are
    muted is decided anew as well.
    """
    found = await choices(tools, tenant, owners)
    seen = await cases(tools, tenant, found, CUTS)
    much = await tools.in_thread(fit_gated, [one.whole for one in seen], beside=BESIDE)
    cut = [(case, at) for at, one in enumerate(seen) for case in one.cut]
    few = await tools.in_thread(fit_gated, [case for case, _ in cut], groups=[at for _, at in cut])
    await tools.in_thread(gate.keep, tools, tenant, gate.of(much, few))
    await tools.in_thread(served.judge, tools, tenant)
    return await tools.in_thread(_gate, tools, tenant)


async def lift(tools: Tools, scope: Scope, entity: Entity | None) -> Lift:
    """What neighbours change in a hit rate: by experiment, in both orders of what was served, by replay.

    Raises:
        NotPermittedError: A principal asks for somebody else's.
        UnknownIdError: Nobody is known under that name.
    """
    if scope.principal is not None and scope.principal != entity:
        raise NotPermittedError(str(scope.principal), "ask what neighbours changed for", str(entity or scope.tenant))
    await tools.in_thread(tools.log.flush)
    of = None if entity is None else await tools.in_thread(_id, tools, scope.tenant, entity)
    known, muted, used = await tools.in_thread(_live, tools, scope.tenant, of)
    found = await choices(tools, scope.tenant, OWNERS, of=of, each=1 if of is None else EACH)
    return Lift(
        entity=entity,
        experiment=served.compared(known),
        both_orders=served.both_orders(known),
        replay=_replayed(await cases(tools, scope.tenant, found), used),
        gate=used,
        muted=muted,
    )


def _replayed(past: Sequence[Seen], used: Gate) -> Compared:
    weights = [gate.for_all(used).at(one.held) for one in past]
    own = [{name: weight for name, weight in mine.items() if name in OWN} for mine in weights]
    alone = np.array([chance(one.whole, mine) for one, mine in zip(past, own, strict=True)])
    together = np.array([chance(one.whole, mine) for one, mine in zip(past, weights, strict=True)])
    change = together - alone
    count = len(change)
    mean = float(change.mean()) if count else 0.0
    wide = WIDE * float(change.std(ddof=1)) / count**0.5 if count > 1 else 1.0
    return Compared(
        alone=float(alone.mean()) if count else 0.0,
        together=float(together.mean()) if count else 0.0,
        alone_cases=count,
        together_cases=count,
        change=mean,
        low=max(mean - wide, -1.0),
        high=min(mean + wide, 1.0),
    )


def _live(tools: Tools, tenant: str, of: int | None) -> tuple[list[Served], bool, Gate]:
    """What was served, whether neighbours are muted, and the weights in use."""
    with tools.store.database.read() as connection:
        used = gate.load(connection, tenant)
        muted = used.muted or (of is not None and bool(rankings.muted(connection, tenant, of)))
        return served.of(tools, connection, tenant, of), muted, used


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
