"""One entity's pending interactions to cards, links and updates for those around it.

load:   the claim, its interactions, the words they refer to (each store asked once);
stages: link, embed, curate, and propagate by the rules or by the memory model;
save:   one transaction, fenced: cards, edges, derived items with lineage, the claim settled.

Where a model may be asked, cards and edges are saved before, so that they wait for no model; the
lease is kept meanwhile. Where it gives nothing usable the rules stand in at once.
"""

from __future__ import annotations

from dataclasses import replace

from collab_layer.errors import StaleLeaseError
from collab_layer.flows import consider, pending
from collab_layer.flows.consider import Asking
from collab_layer.flows.keep import finish, keep
from collab_layer.flows.pending import Loaded, Worded
from collab_layer.flows.plan import Plan, by_rules
from collab_layer.flows.tools import Tools
from collab_layer.flows.words import read_words
from collab_layer.graph.outbox import Claim
from collab_layer.plugins.specs import Event

TRIES = 3
"""Plans made by the rules before a claim whose grants keep changing is put back."""


async def spread(tools: Tools, claim: Claim) -> int:
    """Work one claim off; how many interactions it settled.

    Raises:
        StaleLeaseError: Somebody else has it, or something was erased: no update was stored.
        BackendError: Its only store did not answer: nothing was changed, it is tried again.
    """
    loaded = await tools.in_thread(pending.load, tools, claim)
    loaded = await read_words(tools, loaded)
    worded = await pending.find(tools, loaded)
    plan = await (_considered(tools, loaded, worded) if _may_ask(tools, loaded) else _by_rules(tools, loaded, worded))
    if loaded.events:
        facts = {"interactions": len(loaded.claim.interactions), "updates": len(plan.items)}
        facts |= {"by_model": plan.by_model, "repaired": plan.repaired}
        tools.tell(Event("propagated", claim.tenant, str(loaded.actor), facts))
    return len(loaded.claim.interactions)


async def _considered(tools: Tools, loaded: Loaded, worded: Worded) -> Plan:
    """Keep what needs no model; then let it tell, if there is reason to ask and it gives something usable."""
    await tools.in_thread(keep, tools, loaded, worded)
    ready = await tools.in_thread(consider.prepare, tools, loaded)
    plan = await consider.put(tools, loaded.claim.tenant, ready) if isinstance(ready, Asking) else ready
    repaired = 0
    if plan is not None:
        try:
            if await tools.in_thread(finish, tools, loaded, plan):
                return plan
        except StaleLeaseError:
            if plan.by_model:
                tools.spared.add((loaded.claim.tenant, loaded.claim.entity))
            raise
        repaired = plan.repaired
    return await _by_rules(tools, loaded, None, repaired)


async def _by_rules(tools: Tools, loaded: Loaded, worded: Worded | None, repaired: int = 0) -> Plan:
    return await tools.in_thread(_plan_by_rules, tools, loaded, worded, repaired)


def _plan_by_rules(tools: Tools, loaded: Loaded, worded: Worded | None, repaired: int) -> Plan:
    for _ in range(TRIES):
        plan = replace(by_rules(tools, loaded), repaired=repaired)
        if finish(tools, loaded, plan, worded):
            return plan
    raise StaleLeaseError(str(loaded.actor), "grants keep changing; it is planned anew")


def _may_ask(tools: Tools, loaded: Loaded) -> bool:
    """Whether to ask; not twice in a row where the answer came to nothing, since erasures may go on and on."""
    key = (loaded.claim.tenant, loaded.claim.entity)
    if key in tools.spared:
        tools.spared.discard(key)
        return False
    return consider.may_ask(tools, loaded)
