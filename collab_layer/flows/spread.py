"""Some entities' pending interactions to cards, links and updates for those around them.

load:   the claims, their interactions, the words they refer to (each store asked once for each claim);
stages: link, embed, curate, and propagate by the rules or by the memory model;
save:   two transactions, fenced: cards and edges; derived items with lineage, the claims settled.

Claims of one tenant are worked off together: what two of them need is read once, and their results
are stored in bulk. Each is told of with the records of all of them stored, so that it does not matter
which was first. A claim that is lost, or whose store does not answer, holds up no other.
Where a model may be asked, the lease is kept meanwhile. Where it gives nothing usable the rules
stand in at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from collab_layer.errors import BackendError
from collab_layer.flows import consider, pending
from collab_layer.flows.consider import Asking
from collab_layer.flows.keep import finish, keep
from collab_layer.flows.pending import Loaded
from collab_layer.flows.plan import Plan, by_rules, may_be_told
from collab_layer.flows.tools import Tools
from collab_layer.flows.words import read_words
from collab_layer.graph.outbox import Claim
from collab_layer.plugins.specs import Event
from collab_layer.types.time import SECOND

TRIES = 3
"""Plans made by the rules before a claim whose grants keep changing is put back."""
READING = 0.25
"""The part of a lease that stores may be waited for; claims that are not read by then are given back."""


@dataclass(slots=True)
class Spread:
    """What became of some claims so far; those that are in neither are to be given back.

    Attributes:
        done: Those that were settled.
        failed: Those whose stores did not answer: nothing was changed, they are tried again.
    """

    done: list[Claim] = field(default_factory=list[Claim])
    failed: list[tuple[Claim, BackendError]] = field(default_factory=list[tuple[Claim, BackendError]])

    @property
    def settled(self) -> int:
        """How many interactions."""
        return sum(len(claim.interactions) for claim in self.done)


async def spread(tools: Tools, claims: Sequence[Claim], so_far: Spread) -> None:
    """Work claims of one tenant off, as far as nobody else has them and nothing was erased.

    Args:
        tools: The layer's parts.
        claims: Leased by us.
        so_far: Takes what becomes of them, as it does.
    """
    loaded = await _read(tools, await tools.in_thread(pending.load, tools, claims), so_far)
    for together in _apart(loaded):
        worded = await pending.find(tools, together)
        told: list[Loaded] = []
        for one in await tools.in_thread(keep, tools, worded):
            if not may_be_told(one):
                _done(tools, one, Plan((), one.policy), so_far)
            elif _may_ask(tools, one):
                await _considered(tools, one, so_far)
            else:
                told.append(one)
        await _by_rules(tools, told, so_far)


async def _read(tools: Tools, loaded: Sequence[Loaded], so_far: Spread) -> list[Loaded]:
    """Read the words that stores have, one claim after the other."""
    out: list[Loaded] = []
    begun = time.monotonic()
    for one in loaded:
        if one.wordless and out and (time.monotonic() - begun) * SECOND > READING * tools.lease:
            continue
        try:
            out.append(await read_words(tools, one))
        except BackendError as error:
            so_far.failed.append((one.claim, error))
    return out


def _apart(loaded: Sequence[Loaded]) -> list[list[Loaded]]:
    """Claims in groups, one after the other: no two of a group tell of the same stored memory."""
    groups: list[list[Loaded]] = []
    refs: list[set[tuple[str, str]]] = []
    for one in loaded:
        at = next((at for at, taken in enumerate(refs) if not taken & one.refs), len(groups))
        if at == len(groups):
            groups.append([])
            refs.append(set())
        groups[at].append(one)
        refs[at] |= one.refs
    return groups


async def _considered(tools: Tools, loaded: Loaded, so_far: Spread) -> None:
    """Let a model tell, if there is reason to ask and it gives something usable."""
    ready = await tools.in_thread(consider.prepare, tools, loaded)
    plan = await consider.put(tools, loaded.claim.tenant, ready) if isinstance(ready, Asking) else ready
    if plan is not None:
        finished = await tools.in_thread(finish, tools, [(loaded, plan)])
        if finished.done:
            _done(tools, loaded, plan, so_far)
            return
        if not finished.again:
            if plan.by_model:
                tools.spared.add((loaded.claim.tenant, loaded.claim.entity))
            return
    await _by_rules(tools, [loaded], so_far, 0 if plan is None else plan.repaired)


async def _by_rules(tools: Tools, loaded: Sequence[Loaded], so_far: Spread, repaired: int = 0) -> None:
    for _ in range(TRIES):
        if not loaded:
            return
        plans = [replace(plan, repaired=repaired) for plan in await tools.in_thread(by_rules, tools, loaded)]
        plan_of = {one.claim.entity: plan for one, plan in zip(loaded, plans, strict=True)}
        finished = await tools.in_thread(finish, tools, list(zip(loaded, plans, strict=True)))
        for one in finished.done:
            _done(tools, one, plan_of[one.claim.entity], so_far)
        loaded = finished.again


def _done(tools: Tools, loaded: Loaded, plan: Plan, so_far: Spread) -> None:
    so_far.done.append(loaded.claim)
    if loaded.events:
        facts = {"interactions": len(loaded.claim.interactions), "updates": len(plan.items)}
        facts |= {"by_model": plan.by_model, "repaired": plan.repaired}
        tools.tell(Event("propagated", loaded.claim.tenant, str(loaded.actor), facts))


def _may_ask(tools: Tools, loaded: Loaded) -> bool:
    """Whether to ask; not twice in a row where the answer came to nothing, since erasures may go on and on."""
    key = (loaded.claim.tenant, loaded.claim.entity)
    if key in tools.spared:
        tools.spared.discard(key)
        return False
    return consider.may_ask(tools, loaded)
