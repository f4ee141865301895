"""Work behind the reads: pending interactions, nightly upkeep, weights, curation rules.

In:   the operator's word, or a worker's turn.
Out:  reports of what was done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from collab_layer.errors import InputError
from collab_layer.flows import consolidate as upkeep
from collab_layer.flows import fit, gate, work
from collab_layer.flows import rebuild as rebuild_flow
from collab_layer.flows import rules as rules_flow
from collab_layer.plugins.specs import Spread
from collab_layer.types.entity import Entity, checked_text
from collab_layer.types.lift import Gate, Lift, Rebuilt
from collab_layer.types.rules import RuleDiff, RuleSet, RulesPreview
from collab_layer.types.upkeep import Consolidation
from collab_layer.verbs.base import EntityLike, RulesLike, View

MAX_DOMAIN = 500


class Upkeep(View):
    """Work behind the reads."""

    async def drain(self) -> int:
        """Wait until all pending work of this tenant is done; how many interactions this call settled.

        Now and then it also decides anew for whom neighbours are muted, as a worker does.
        """
        return await work.drain(self._alive(), self.tenant)

    async def work(self, until: asyncio.Event | None = None) -> None:
        """Be a worker for every tenant of the database, until cancelled or `until` is set."""
        tools = self._alive()
        if until is None:
            await work.run(tools, None, self._core.wake)
            return
        task = asyncio.ensure_future(work.run(tools, None, self._core.wake))
        stop = asyncio.ensure_future(until.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (task, stop):
                one.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)
        if not task.cancelled():
            task.result()  # a worker that broke down says so

    async def consolidate(
        self, *, dry_run: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> Consolidation:
        """Tidy what was derived in this tenant, without a model; a worker does it by itself once a night.

        Items of one reader that say the same become one, contradicted ones step back, what has
        run out for long is deleted, related ones point to each other, and what is derived of edges
        is checked. Can be stopped at any point and started again; a second run changes nothing.
        The owners' own memories are never touched.

        Args:
            dry_run: Change nothing, and report what would be changed.
            progress: Called with readers and entities done, and how many there are in all.

        Raises:
            NotPermittedError: A principal asks; upkeep is the operator's.
            StaleLeaseError: Another process took it over, since this one was too slow.
        """
        tools = self._operator("tidy")
        report = await upkeep.consolidate(tools, self.tenant, dry_run=dry_run, progress=progress)
        self._core.nudge()
        return report

    async def rebuild(self, *, on: str = "loop", workers: int = 2) -> Rebuilt:
        """Make the edges between things anew, from what owners hold that everybody in the tenant may read.

        `rank` uses them. An erasure removes them, and once a grant they rest on is taken back they
        are left unused, until they are made again.

        Args:
            on: Who does it: `loop` is this process, `ray` tasks of Ray. The edges are the same.
            workers: Tasks at once, if it is not this process.

        Raises:
            NotPermittedError: A principal asks; upkeep is the operator's.
        """
        tools = self._operator("rebuild the edges of")
        if workers < 1:
            raise InputError(f"{workers} workers can do nothing; name at least 1")
        away = None if on == "loop" else rebuild_flow.Away(self._bulk(on), workers)
        return await rebuild_flow.rebuild(tools, self.tenant, away)

    async def refit(self, owners: int = 300) -> Gate:
        """Fit this tenant's ranking weights on its owners' newest choices, and open or shut the gate.

        Each choice is read as of the moment before it, as its owner, under today's grants,
        among nine others of like popularity. Neighbours count only if the lower bound of what
        they gained on held-out choices is above 0; fewer than twenty choices keep it shut. Then
        it is decided anew for whom neighbours are muted, by what was served and chosen. A worker
        does both by itself, see `docs/ranking.md`.

        Args:
            owners: How many owners to take, 1 to 10,000, spread evenly over all.

        Returns:
            The weights, the state of the gate, and by how much neighbours gained.
        """
        tools = self._operator("fit the weights of")
        if not 1 <= owners <= 10_000:
            raise InputError(f"owners must be in [1, 10000], not {owners}")
        return await fit.refit(tools, self.tenant, owners)

    async def lift(self, entity: EntityLike | None = None) -> Lift:
        """What neighbours change in a hit rate: by experiment, where some requests were held out, and by replay.

        Args:
            entity: Whose; of the replay up to 30 of its newest choices. None is the whole tenant, of the
                replay the newest choice of up to 300 owners.

        Raises:
            NotPermittedError: A principal asks for somebody else's.
            UnknownIdError: Nobody is known under that name.
        """
        of = None if entity is None else Entity.parse(entity)
        return await fit.lift(self._alive(), self._scope, of)

    async def set_weights(self, weights: dict[str, float] | None = None) -> None:
        """Keep ranking weights for this tenant, whatever the gate says. The next explicit `refit` replaces them.

        Args:
            weights: Of each feature, finite and not negative. None takes those that were measured on two
                public sets: neighbours count before anything has shown that they do no harm here.
        """
        tools = self._operator("set the weights of")
        await tools.in_thread(gate.keep, tools, self.tenant, gate.chosen(weights))

    async def generate_rules(self, domain: str | None = None) -> RuleSet:
        """Have the memory model write curation rules for this tenant's data; stored, not in use.

        The model is shown statistics over up to 300 owners, each read as itself under today's
        grants, and topics that at least `min_contributors` of them hold; no names, no records.
        What it writes is checked, fitted to the data and explained in plain words.

        Args:
            domain: What the tenant is about, in a few plain words.

        Raises:
            InputError: No memory model is set, or too few owners may read others.
            ModelReplyError: The model gave nothing that rules could be made of; nothing is stored.
        """
        tools = self._operator("write rules for")
        return await rules_flow.generate(tools, self.tenant, _domain(domain))

    async def preview_rules(self, domain: str | None = None) -> RulesPreview:
        """What `generate_rules` would show a model, word for word; asks none, stores nothing."""
        tools = self._operator("write rules for")
        return await rules_flow.preview(tools, self.tenant, _domain(domain))

    async def rule_sets(self) -> list[RuleSet]:
        """The rule sets stored for this tenant, newest first."""
        return await rules_flow.listed(self._operator("list the rules of"), self.tenant)

    async def rules_in_use(self) -> RuleSet:
        """The rules that choose this tenant's neighbours now."""
        return await rules_flow.in_use(self._operator("list the rules of"), self.tenant)

    async def compare_rules(self, which: RulesLike) -> RuleDiff:
        """Other rules beside those in use: in words, how they fire on sampled data, how much of the top 16 they keep.

        Args:
            which: A preset's name, the hash of a stored set or its beginning, or a rule tree.
        """
        return await rules_flow.compare(self._operator("compare rules of"), self.tenant, _rules_like(which))

    async def use_rules(self, which: RulesLike | None) -> RuleSet:
        """Choose this tenant's neighbours by other rules, from the next read on, in every process.

        Args:
            which: A preset's name, the hash of a stored set or its beginning, or a rule tree, which
                is then stored. None goes back to what the deployment is set to.

        Returns:
            The rules now in use.
        """
        wanted = None if which is None else _rules_like(which)
        return await rules_flow.use(self._operator("choose the rules of"), self.tenant, wanted)

    def _bulk(self, on: str) -> Callable[[int], AbstractContextManager[Spread]]:
        """Who does bulk work elsewhere."""
        able = {name: spec.bulk for name, spec in self.plugins.runners.items() if spec.bulk is not None}
        if on not in able:
            raise InputError(
                f"no runner `{on[:80]}` does bulk work; there is `loop` and {', '.join(able) or 'no other'}"
            )
        return able[on]


def _domain(text: str | None) -> str | None:
    if text is not None and len(checked_text(text)) > MAX_DOMAIN:
        raise InputError(f"describe the domain in at most {MAX_DOMAIN} characters")
    return (text or "").strip() or None


def _rules_like(which: RulesLike) -> RulesLike:
    if not isinstance(which, (str, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]  callers pass anything
        raise InputError(f"a {type(which).__name__} names no rules; pass a preset, a hash, or a rule tree")
    return checked_text(which)


__all__ = ["Upkeep"]
