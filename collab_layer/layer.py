"""The layer: what users call, and where its parts are put together.

`AsyncCollabLayer` is the implementation; `CollabLayer` in `sync.py` runs it on a loop
thread of its own. A layer is cheap to derive: `for_tenant` and `as_` share one engine,
one cache and one worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import ValidationError

from collab_layer import roles
from collab_layer.config import Settings
from collab_layer.errors import InputError, InvalidRuleError, LayerClosedError, NotPermittedError, UnknownIdError
from collab_layer.flows import (
    adopt,
    aliases,
    attest,
    bring,
    erase,
    explain,
    export,
    fit,
    gate,
    offer,
    policies,
    ready,
    received,
    review,
    share,
    tokens,
    work,
)
from collab_layer.flows import answer as answer_flow
from collab_layer.flows import changes as changes_flow
from collab_layer.flows import consolidate as upkeep
from collab_layer.flows import context as context_flow
from collab_layer.flows import models as models_flow
from collab_layer.flows import observe as observe_flow
from collab_layer.flows import publish as publish_flow
from collab_layer.flows import rank as rank_flow
from collab_layer.flows import rebuild as rebuild_flow
from collab_layer.flows import rules as rules_flow
from collab_layer.flows.cache import Cache
from collab_layer.flows.context import Request
from collab_layer.flows.injections import InjectionLog
from collab_layer.flows.keys import KeyFile
from collab_layer.flows.rulebook import RuleBook
from collab_layer.flows.tools import Tools
from collab_layer.graph.store import GraphStore
from collab_layer.plugins.manager import Plugins, load
from collab_layer.plugins.specs import FeatureSpec, Spread
from collab_layer.ports.backend import Can, Change, Embeds, MemoryBackend, check_promises, require
from collab_layer.ports.clock import Clock, system_clock
from collab_layer.ports.models import Closes, Embedder, LanguageModel
from collab_layer.stages import rules
from collab_layer.stages.features import BUILTIN
from collab_layer.types.access import NewToken, Token
from collab_layer.types.alias import Alias
from collab_layer.types.answer import Answer
from collab_layer.types.asking import Role, RoleHealth, Spent
from collab_layer.types.bundle import Bundle, Imported, Issued, Revocations
from collab_layer.types.changed import Changed
from collab_layer.types.entity import Entity, MemoryRef, checked_text, entities
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.facet import CollabMemory, Facet, Neighbor
from collab_layer.types.health import Health
from collab_layer.types.injection import Injection
from collab_layer.types.interaction import Interaction
from collab_layer.types.lift import Gate, Lift, Rebuilt
from collab_layer.types.lineage import MAX_DEPTH, MAX_WIDTH, Lineage
from collab_layer.types.notice import Notice
from collab_layer.types.ranking import Ranking
from collab_layer.types.review import Blocked, Quarantined
from collab_layer.types.rules import RuleDiff, RuleSet, RulesPreview
from collab_layer.types.scope import Grant, LevelName, Policy, Scope, Sharing
from collab_layer.types.time import SECOND, micros, utc
from collab_layer.types.upkeep import Consolidation

V = TypeVar("V", Interaction, Policy)
EntityLike = Entity | str
RulesLike = str | Mapping[str, Any]
DEFAULT_EMBEDDER = "hashing"
MAX_QUERY = 8_000
BUDGETS = (60, 32_000)
MAX_DOMAIN = 500


class _Core:
    """What every view of one opened layer shares."""

    def __init__(self, tools: Tools, plugins: Plugins, settings: Settings, *, own_embedder: bool) -> None:
        self.tools, self.plugins, self.settings = tools, plugins, settings
        self.own_embedder = own_embedder
        self.cache = Cache()
        self.closed = False
        self.wake = asyncio.Event()
        self.worker: asyncio.Task[None] | None = None

    def nudge(self) -> None:
        """Wake who works in this process; start the embedded worker if there is to be one."""
        self.wake.set()
        if not self.settings.worker or self.closed:
            return
        if self.worker is None or self.worker.done():
            self.worker = asyncio.get_running_loop().create_task(work.run(self.tools, None, self.wake))


class AsyncCollabLayer:
    """The layer between memory owners. Open it with `await AsyncCollabLayer.open(...)`.

    Every method raises `InputError` for arguments that cannot be used, `LayerClosedError`
    after `aclose`, and a `StoreError` when the database refuses; nothing is half-written.
    """

    def __init__(self, core: _Core, scope: Scope) -> None:
        self._core, self._scope = core, scope

    @classmethod
    async def open(
        cls,
        url: str = "collab.db",
        *,
        tenant: str = "default",
        backends: Sequence[MemoryBackend] = (),
        sharing: Sharing | None = None,
        embedder: Embedder | None = None,
        memory_model: LanguageModel | str | None = None,
        reasoning_model: LanguageModel | str | None = None,
        settings: Settings | None = None,
        clock: Clock = system_clock,
    ) -> Self:
        """Open a layer over a database, which is made if it is not there.

        Args:
            url: An SQLite file name, or `postgresql://…`.
            tenant: Nothing crosses from one tenant to another.
            backends: Stores to read memories from; more can be attached later.
            sharing: The tenant's default policy. None keeps what is recorded; a new
                tenant is private.
            embedder: Texts to vectors. None takes the first backend's own, else the
                built-in hashing embedder.
            memory_model: The light model that writes rules, facets and updates: as it is, or by
                name, such as `openai:gpt-4o-mini`. None takes the name in `settings.memory`;
                where there is none either, the rules do its work. The rest of `settings.memory`
                holds for a name, its caps for an object too.
            reasoning_model: The heavy model that ranks and answers; `settings.reasoning` likewise.
            settings: None reads them from the environment.
            clock: What the layer takes for now.

        Raises:
            StoreError: The database cannot be opened, or a newer version wrote it.
            PluginError: A backend promises what it has no method for.
            ModelSetupError: A model cannot be opened as it is set up; nothing is sent to find out.
        """
        used = Settings() if settings is None else settings
        threads = ThreadPoolExecutor(used.threads, thread_name_prefix="collab")
        try:
            models: dict[Role, roles.Given] = {"memory": memory_model, "reasoning": reasoning_model}
            core = await _compose(url, used, threads, embedder, models, clock)
            layer = cls(core, Scope(tenant=_tenant(tenant)))
            if sharing is not None:
                await share.set_policy(core.tools, layer._scope.tenant, sharing)
            for backend in backends:
                await layer.attach(backend)
        except BaseException:
            threads.shutdown(wait=False)
            raise
        return layer

    # -- views -------------------------------------------------------------------------

    def for_tenant(self, tenant: str) -> Self:
        """The same engine for another tenant; as the operator again."""
        self._alive()
        return type(self)(self._core, Scope(tenant=_tenant(tenant)))

    def as_(self, principal: EntityLike, purpose: str | None = None) -> Self:
        """The same tenant, acting for a principal: it reads what it was granted, and writes as itself."""
        acting = checked_text(purpose)
        scope = Scope(tenant=self._scope.tenant, principal=Entity.parse(principal), purpose=acting)
        return type(self)(self._core, scope)

    async def open_with(self, token: str) -> Self:
        """The view of a token's bearer: its tenant, its one entity, its purpose; never the operator's.

        Ask again for every request: a token that was revoked is refused at the very next one.

        Raises:
            TokenRefusedError: Malformed, unknown, expired or revoked.
        """
        return type(self)(self._core, await tokens.verify(self._alive(), token))

    @property
    def tenant(self) -> str:
        """The tenant of this view."""
        return self._scope.tenant

    @property
    def principal(self) -> Entity | None:
        """Whom this view acts for; None for the operator."""
        return self._scope.principal

    @property
    def plugins(self) -> Plugins:
        """What was found at opening, failures included."""
        return self._core.plugins

    # -- in ----------------------------------------------------------------------------

    async def attach(self, backend: MemoryBackend, *, deliver: bool = False) -> None:
        """Use a store: read its memories and, with `deliver`, write derived items into its reserved scope.

        Raises:
            PluginError: It promises what it has no method for.
            UnsupportedError: It is to be delivered to but cannot be written.
        """
        tools = self._operator("attach a store to")
        check_promises(backend)
        if deliver:
            require(backend, Can.WRITE)
            tools.delivering.add((self.tenant, backend.name))
        tools.backends[self.tenant, backend.name] = backend
        await tools.in_thread(work.unpark, tools, self.tenant)
        if self._core.own_embedder and Can.EMBED in backend.can and isinstance(backend, Embeds):
            self._core.own_embedder = False
            tools.embedder = backend.embedder
            tools.store.use_embedder(backend.embedder.id, backend.embedder.dim)
        await bring.start_feed(tools, self._scope, backend)

    async def observe(
        self,
        actor: EntityLike | Interaction | Sequence[Interaction],
        target: EntityLike | None = None,
        verb: str = "interacted",
        text: str | None = None,
        links: Sequence[EntityLike] = (),
        outcome: str | None = None,
        at: datetime | None = None,
        key: str | None = None,
        weight: float = 1.0,
        replaces: str | None = None,
    ) -> list[str]:
        """Record what happened: one interaction by its parts, or a list of `Interaction`.

        Returns after the commit. The same key of the same actor is stored once; the id
        returned is then that of the first. Embedding and links in the text follow in the
        background. An event counts from its own time, `at`, also if it is told late.

        `replaces` is the id of an earlier interaction of the same actor whose statement no
        longer holds: it held until this one. Reads of the past still find it.

        Returns:
            The id of each interaction, in order.
        """
        tools = self._alive()
        if isinstance(actor, (Entity, str)):
            parts: dict[str, Any] = {"target": target, "verb": verb, "text": text, "links": tuple(links)}
            parts |= {"outcome": outcome, "at": at, "key": key, "weight": weight, "replaces": replaces}
            batch: Sequence[Interaction] = [_checked(Interaction, actor=actor, **parts)]
        else:
            batch = [actor] if isinstance(actor, Interaction) else _listed(actor)
        if not batch:
            return []
        ids = await observe_flow.observe(tools, self._scope, batch)
        self._core.nudge()
        return ids

    async def observe_changes(self, backend: str, changes: Sequence[Change]) -> int:
        """Take in what an adapter saw change in its store; how many changes were news."""
        tools = self._operator("report what a store changed to")
        count = await observe_flow.observe_changes(tools, self._scope, backend, changes)
        self._core.nudge()
        return count

    async def index(
        self,
        backend: MemoryBackend,
        owners: Sequence[EntityLike] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Bring an already full store in; goes on where it stopped. How many records were taken.

        Args:
            backend: Is attached if it is not yet.
            owners: Whose records; None where the store can list them.
            progress: Called with owners done and owners in all.
        """
        tools = self._alive()
        if (self.tenant, backend.name) not in tools.backends:
            await self.attach(backend)
        wanted = None if owners is None else entities(owners)
        count = await bring.index(tools, self._scope, backend, wanted, progress)
        self._core.nudge()
        return count

    async def reconcile(self, backend: MemoryBackend) -> int:
        """Take in what other processes wrote to or deleted from a store; how many changes."""
        count = await bring.reconcile(self._alive(), self._scope, backend)
        self._core.nudge()
        return count

    # -- out ---------------------------------------------------------------------------

    async def neighbors(
        self, entity: EntityLike, query: str | None = None, k: int = 16, as_of: datetime | None = None
    ) -> list[Neighbor]:
        """The few neighbours worth reading, strongest first, each with what it scored for."""
        if not 1 <= k <= 1000:
            raise InputError(f"k must be in [1, 1000], not {k}")
        request = self._request(entity, query, (), 800, as_of)
        return list(await context_flow.neighbors(self._alive(), request, k))

    async def context(
        self,
        entity: EntityLike,
        query: str | None = None,
        links: Sequence[EntityLike] = (),
        budget_tokens: int = 800,
        as_of: datetime | None = None,
    ) -> CollabMemory:
        """What the neighbours of an entity know; `str()` of it is a block for a prompt."""
        tools = self._alive()
        return await context_flow.context(
            tools, self._core.cache, self._request(entity, query, links, budget_tokens, as_of)
        )

    async def changes(self, entity: EntityLike, since: datetime, until: datetime | None = None) -> list[Changed]:
        """What changed, old and new, in the memories that an entity may read; the newest last.

        These are its own, and those of owners that grant it records. Owners that share only
        facets never appear. A change counts by when it happened, not by when it was told.

        Args:
            entity: Who reads.
            since: Changes after this time.
            until: Changes up to this time; now if left out.
        """
        end = None if until is None else micros(utc(until))
        return await changes_flow.changes(self._alive(), self._scope, Entity.parse(entity), micros(utc(since)), end)

    async def deliver(self, entity: EntityLike, budget_tokens: int = 800, again: bool = False) -> int:
        """Send what `context` says of an entity now to the stores that take derived items.

        Facets that it says no more are taken back. What was attached with `deliver` also gets
        each update when it is made; this brings the rest, and is called from time to time.

        Args:
            entity: Whose context.
            budget_tokens: Of the context, in [60, 32000].
            again: Also what was sent before: the store may have lost it. It has each key once.

        Returns:
            How many items were sent or taken back.

        Raises:
            BackendError: A store did not take an item; the worker tries again.
        """
        tools = self._operator("deliver what is known to the stores of")
        request = self._request(entity, None, (), budget_tokens, None)
        return await offer.offer(tools, self._core.cache, request, again=again)

    async def rank(
        self,
        entity: EntityLike,
        candidates: Sequence[EntityLike],
        instruction: str | None = None,
        as_of: datetime | None = None,
    ) -> Ranking:
        """Order candidates for an entity; each with score, rationale and evidence."""
        request = self._request(entity, instruction, (), 800, as_of)
        wanted = [Entity.parse(candidate) for candidate in candidates]
        tools, cache = self._alive(), self._core.cache
        return await rank_flow.rank(tools, cache, request.scope, request.entity, wanted, request.query)

    async def answer(self, entity: EntityLike, question: str, as_of: datetime | None = None) -> Answer:
        """Answer from what the neighbours of an entity noted, every claim cited; or say that it is not known.

        Without a reasoning model the best lessons are quoted as they are.
        """
        request = self._request(entity, question, (), 800, as_of)
        if request.query is None:
            raise InputError("ask a question, in words")
        return await answer_flow.answer(self._alive(), self._core.cache, request)

    async def explain(self, id: str, depth: int = 8, width: int = 50) -> Lineage:
        """Everything that an item rests on, as a tree over all generations, as far as the reader may know it now.

        Args:
            id: Of a facet, lesson, update, interaction or record.
            depth: Generations at most, 1 to 32.
            width: Sources of one item at most, 1 to 1000; what is left out is counted.
        """
        for name, value, most in (("depth", depth, MAX_DEPTH), ("width", width, MAX_WIDTH)):
            if not 1 <= value <= most:
                raise InputError(f"{name} must be in [1, {most}], not {value}")
        return await explain.explain(self._alive(), self._scope, _id(id), depth, width)

    async def derived(self, id: str) -> Facet:
        """A derived item by its id, under today's grants."""
        return await explain.shown(self._alive(), self._scope, _id(id))

    async def health(self) -> Health:
        """How the database, the work and every store are doing; down, degraded and empty apart."""
        return await explain.health(self._alive(), self._scope)

    async def models(self, ask: bool = False) -> list[RoleHealth]:
        """Which model answers in which role; with `ask`, also whether it does.

        Args:
            ask: Put one tiny question to each; it is counted and capped like any other.
        """
        return await models_flow.check(self._operator("ask about the models of"), self.tenant, asking=ask)

    async def usage(self, days: int = 1) -> list[Spent]:
        """What this tenant spent on language models: a row per day, role, stage and model, newest first.

        Args:
            days: How many days (UTC) back, today included, 1 to 400.
        """
        tools = self._operator("see the spending of")
        if not 1 <= days <= 400:
            raise InputError(f"days must be in [1, 400], not {days}")
        return list(await models_flow.usage(tools, self.tenant, days))

    async def ping(self) -> None:
        """Whether the database answers; returns nothing, and costs next to nothing.

        Raises:
            StoreError: It does not.
        """
        await ready.ping(self._alive())

    # -- consent -----------------------------------------------------------------------

    async def grant(
        self,
        owner: EntityLike,
        to: EntityLike,
        level: LevelName = "facets",
        purpose: str | None = None,
        until: datetime | None = None,
    ) -> Grant:
        """Let an audience use the owner's memories.

        Args:
            owner: Whose memories.
            to: An entity, a group such as `team:support`, a kind such as `kind:agent`, or `tenant`.
            level: `facets` (distilled, in a crowd) or `records` (verbatim evidence).
            purpose: Only for readers that act for it.
            until: Ends by itself.
        """
        end = None if until is None else utc(until)
        given = await share.grant(
            self._alive(), self._scope, Entity.parse(owner), str(to), level, purpose=checked_text(purpose), until=end
        )
        self._core.nudge()
        return given

    async def grants(self, owner: EntityLike | None = None) -> list[Grant]:
        """Grants and opt-outs in force, newest first.

        Args:
            owner: Whose. None: everybody's and the tenant's own, for the operator; a principal sees its own.

        Raises:
            NotPermittedError: A principal asks for somebody else's.
        """
        of = None if owner is None else Entity.parse(owner)
        return await share.listed(self._alive(), self._scope, of)

    async def opt_out(self, owner: EntityLike, audience: EntityLike = "tenant") -> Grant:
        """Deny an audience what the tenant's policy would give it; `revoke` takes it back."""
        return await share.grant(
            self._alive(),
            self._scope,
            Entity.parse(owner),
            str(audience),
            "facets",
            purpose=None,
            until=None,
            denied=True,
        )

    async def publish(
        self,
        owner: EntityLike,
        text: str,
        to: EntityLike,
        sources: Sequence[str | MemoryRef] = (),
        purpose: str | None = None,
        until: datetime | None = None,
    ) -> Notice:
        """Let an audience know something in words that the owner chose; what it rests on stays closed.

        It is a grant of its own: ending other grants of the owner leaves it. It ends by `revoke`, `forget`,
        at `until`, and when a source or its owner is forgotten.

        Args:
            owner: Whose notice it is; readers are told.
            text: 1 to 2,000 characters. What reads like an order to a model is refused.
            to: As for `grant`.
            sources: Ids of the owner's own interactions or records that it rests on, or `MemoryRef`s.
            purpose: Only for readers that act for it.
            until: Ends by itself.
        """
        end = None if until is None else utc(until)
        return await publish_flow.publish(
            self._alive(),
            self._scope,
            Entity.parse(owner),
            text,
            str(to),
            sources,
            purpose=checked_text(purpose),
            until=end,
        )

    async def revoke(self, grant_id: str) -> ErasureReceipt:
        """End a grant at once, or a notice: its words go with it.

        Returns:
            A receipt: whose words left the index, which quotes were erased, and what is taken back
            from stores that it was delivered to.
        """
        receipt = await publish_flow.revoke(self._alive(), self._scope, _id(grant_id))
        self._core.nudge()
        return receipt

    async def alias(self, entity: EntityLike, principal: EntityLike) -> Alias:
        """Say that two entities are one principal: they are counted once, wherever principals are counted.

        That is for `min_contributors`, for `delta` and for corroboration; of several aliases one is a
        neighbour. Grants stay with each entity, and nothing is widened. Aliases of an alias follow it.

        Args:
            entity: What the principal also acts as.
            principal: Who is counted for both.

        Raises:
            NotPermittedError: A principal asks; who is who is the operator's to say.
        """
        tools = self._operator("say who is who in")
        return await aliases.tie(tools, self.tenant, Entity.parse(entity), Entity.parse(principal))

    async def unalias(self, entity: EntityLike) -> None:
        """Count an alias by itself again.

        Raises:
            UnknownIdError: It is no alias.
        """
        await aliases.untie(self._operator("say who is who in"), self.tenant, Entity.parse(entity))

    async def aliases(self) -> list[Alias]:
        """Every alias of this tenant with the principal that is counted for it."""
        return await aliases.listed(self._operator("list the aliases of"), self.tenant)

    async def set_policy(
        self,
        team: EntityLike | None = None,
        *,
        min_contributors: int | None = None,
        level: LevelName | None = None,
        purposes: Sequence[str] | None = None,
        longest_days: float | None = None,
    ) -> Policy:
        """Limit what a team, or the whole tenant, may share; in place of its policy before, from the next read on.

        Grants made before hold on as far as it allows them. A team's policy can be stricter than the
        tenant's, never looser.

        Args:
            team: Such as `team:support`; the tenant if left out.
            min_contributors: Distinct owners behind a facet, at least what the tenant was opened with.
            level: The most that a grant may give.
            purposes: A grant must name one of these.
            longest_days: How long a grant may hold.

        Returns:
            What holds for it from now on, the tenant's part included.

        Raises:
            PolicyError: It would be looser than the tenant's.
            NotPermittedError: A principal asks; policies are the operator's.
        """
        tools = self._operator("set the policy of")
        given = None if purposes is None or isinstance(purposes, str) else tuple(purposes)
        if isinstance(purposes, str):
            raise InputError("pass `purposes` as a list of words")
        wanted = _checked(
            Policy,
            team=None if team is None else Entity.parse(team),
            min_contributors=min_contributors,
            level=level,
            purposes=given,
            longest_days=longest_days,
        )
        changed = await policies.set_policy(tools, self.tenant, wanted)
        self._core.nudge()
        return changed

    async def policies(self) -> list[Policy]:
        """The policies of the tenant and its teams as they were set; the tenant's first."""
        return await policies.listed(self._operator("list the policies of"), self.tenant)

    async def forget(self, what: EntityLike | MemoryRef, source: bool = False) -> ErasureReceipt:
        """Erase an entity, a memory, an interaction or a derived item, with all that rests on it.

        Args:
            what: `user:alice`, an id from `observe`, `context` or `explain`, or a `MemoryRef`.
            source: Also in the store where a memory lies, with its history; of an entity all that the
                attached stores have of it. The receipt names stores that promise no erasure; it is
                pending until the others are done, which a worker sees to.
        """
        subject = what if isinstance(what, (Entity, MemoryRef)) else _id(what)
        receipt = await erase.forget(self._alive(), self._scope, subject, source=source)
        self._core.nudge()
        return receipt

    async def export_bundle(self, to: EntityLike = "federation:all", days: int = 30) -> Bundle:
        """Sign a bundle of what several owners have, for somebody outside of the tenant.

        Counted are owners that granted this very audience something (`layer.grant(owner, to)`); what is
        granted to the tenant stays inside. It holds names of things that at least `min_contributors`
        principals have, alone or together, and no words, ids or names of owners.

        Args:
            to: For whom, as owners name it in their grants.
            days: Until it ends by itself, 1 to 365.

        Raises:
            KeyFileError: The key file cannot be used; nothing was stored.
        """
        tools = self._operator("export bundles of")
        if not 1 <= days <= 365:
            raise InputError(f"days must be in [1, 365], not {days}")
        return await export.export(tools, self._scope, Entity.parse(to), days)

    async def revoke_bundle(self, id: str) -> Revocations:
        """Revoke a bundle that this tenant issued.

        Returns:
            The signed list of all that are revoked of its series, for whoever took it.

        Raises:
            UnknownIdError: No such bundle was issued.
        """
        return await export.revoke(self._operator("revoke bundles of"), self.tenant, _id(id))

    async def bundles(self) -> list[Issued]:
        """Every bundle that this tenant issued, newest first; `why` says what speaks for revoking it."""
        return await export.listed(self._operator("list the bundles of"), self.tenant)

    async def import_bundle(self, source: str | Path | bytes, trust: Mapping[str, float] | None = None) -> Imported:
        """Take a bundle, or a list of revocations, of another organisation: all of it or nothing.

        What it says are candidates: shown last in a context, marked, never surer than anything known
        here, and never an input to curation, ranking or propagation.

        Args:
            source: The file, or its content.
            trust: Issuer's public key to trust in (0, 0.9], for this import; beside the setting `issuers`.

        Raises:
            BundleError: It cannot be taken; the type says why.
        """
        tools = self._operator("import bundles into")
        given = source if isinstance(source, bytes) else Path(source)
        return await adopt.adopt(tools, self.tenant, given, dict(trust or {}), self._core.settings.issuers)

    async def forget_influence(self, entity: EntityLike, block: bool = True) -> ErasureReceipt:
        """Take back all that was derived for others of a principal; its own memories stay.

        Items that rest on it go, through all generations, here and where they were delivered; what
        others said is derived anew without it.

        Args:
            entity: The principal.
            block: Nobody else reads it from now on, whatever it grants, until `unblock`. Without, what it
                still shares counts again at the next read.

        Raises:
            UnknownIdError: It was never seen.
            NotPermittedError: A principal asks about another.
        """
        receipt = await erase.forget_influence(self._alive(), self._scope, Entity.parse(entity), block=block)
        self._core.nudge()
        return receipt

    async def blocked(self) -> list[Blocked]:
        """Principals that nobody else reads since their influence was taken back, the longest first."""
        return await share.blocked(self._operator("list the blocked principals of"), self.tenant)

    async def unblock(self, entity: EntityLike) -> None:
        """Let a principal be read again by whom its grants let; forget first what it should not have said.

        Raises:
            UnknownIdError: It is not blocked.
            NotPermittedError: A principal asks; this is the operator's.
        """
        await share.unblock(self._operator("unblock a principal of"), self.tenant, Entity.parse(entity))
        self._core.nudge()

    async def receipt(self, id: str) -> ErasureReceipt:
        """A receipt as it stands now: signed, and complete once every copy in a store is gone.

        Whoever has the id may read it; names and ids are in it as salted hashes only.

        Raises:
            UnknownIdError: No such receipt in this tenant.
            KeyFileError: It is not signed yet, and the key cannot be used.
        """
        return await attest.receipt(self._alive(), self.tenant, _id(id))

    async def receipts(self, limit: int = 100) -> list[ErasureReceipt]:
        """Receipts, newest first: all for the operator; for a principal those about itself and its own grants.

        What else a principal forgot is hashed with the receipt's own salt, and read by the receipt's id.

        Args:
            limit: The most to return, 1 to 1,000.
        """
        if not 1 <= limit <= 1_000:
            raise InputError(f"limit must be in [1, 1000], not {limit}")
        return await attest.listed(self._alive(), self._scope, limit)

    async def receipt_key(self) -> str:
        """The public part of the key that signs receipts, as PEM; the key is made if it is not there.

        Raises:
            KeyFileError: The key file cannot be read or made.
        """
        return await attest.public_key(self._operator("ask for the key of"))

    async def quarantined(self) -> list[Quarantined]:
        """Every record that is held back since it reads like an order to a model, newest first."""
        return await review.listed(self._operator("review the quarantine of"), self.tenant)

    async def release(self, id: str) -> None:
        """Show a record that was held back, from the next read on, to whom its owner's grants let.

        It stays released until its text changes. Prompts to a model of ours still leave it out.

        Raises:
            UnknownIdError: No such record is held back.
        """
        await review.release(self._operator("review the quarantine of"), self.tenant, _id(id))
        self._core.nudge()

    async def drop_quarantined(self, id: str) -> ErasureReceipt:
        """Erase a record that is held back, as `forget` does.

        Raises:
            UnknownIdError: No such record is held back.
        """
        receipt = await review.drop(self._operator("review the quarantine of"), self.tenant, _id(id))
        self._core.nudge()
        return receipt

    async def injections(
        self, entity: EntityLike | None = None, since: datetime | None = None, limit: int = 1_000
    ) -> list[Injection]:
        """Answers that carried something of others, newest first: who got which items, when, for what.

        Args:
            entity: Whom the answers were made for, or who asked. None: everybody, for the operator;
                a principal sees its own.
            since: Leaves older ones out; none is kept longer than `injection_days`.
            limit: The most to return, 1 to 100,000.

        Raises:
            NotPermittedError: A principal asks for somebody else's.
        """
        if not 1 <= limit <= 100_000:
            raise InputError(f"limit must be in [1, 100000], not {limit}")
        of = None if entity is None else Entity.parse(entity)
        start = None if since is None else utc(since)
        return await received.injections_of(self._alive(), self._scope, of, start, limit)

    async def issue_token(
        self, principal: EntityLike, purpose: str | None = None, until: datetime | None = None
    ) -> NewToken:
        """Let the bearer of a new token act for one entity, by `open_with` or through `collab serve`.

        Args:
            principal: Whom the bearer acts for; it becomes known by this.
            purpose: What the bearer acts for.
            until: Ends by itself; in 90 days if None.

        Returns:
            The token with its `text`, which is shown this once: only a digest is kept.

        Raises:
            NotPermittedError: A principal asks; tokens are the operator's.
        """
        tools = self._operator("issue a token in")
        end = None if until is None else utc(until)
        return await tokens.issue(tools, self.tenant, Entity.parse(principal), checked_text(purpose), end)

    async def tokens(self) -> list[Token]:
        """Every token of this tenant, newest first, ended ones too; never a secret."""
        return await tokens.listed(self._operator("list the tokens of"), self.tenant)

    async def revoke_token(self, id: str) -> None:
        """End a token; its very next use is refused, in every process.

        Raises:
            UnknownIdError: No such token is in force.
        """
        await tokens.revoke(self._operator("revoke a token of"), self.tenant, _id(id))

    # -- work --------------------------------------------------------------------------

    async def drain(self) -> int:
        """Wait until all pending work of this tenant is done; how many interactions this call settled."""
        return await work.drain(self._alive(), self.tenant)

    async def work(self, until: asyncio.Event | None = None) -> None:
        """Be a worker for every tenant of the database, until cancelled or `until` is set."""
        tools = self._alive()
        task = asyncio.ensure_future(work.run(tools, None, self._core.wake))
        if until is None:
            await task
            return
        stop = asyncio.ensure_future(until.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        for one in (task, stop):
            one.cancel()
        await asyncio.gather(task, stop, return_exceptions=True)

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

    # -- curation rules ------------------------------------------------------------------

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

    async def aclose(self) -> None:
        """Stop the worker and close the database; calling it again does nothing."""
        core = self._core
        if core.closed:
            return
        core.closed = True
        if core.worker is not None:
            core.worker.cancel()
            await asyncio.gather(core.worker, return_exceptions=True)
        for backend in core.tools.backends.values():
            await backend.aclose()
        for model in {id(asked.model): asked.model for asked in core.tools.models.values()}.values():
            if isinstance(model, Closes):
                await model.aclose()
        # Off the caller's loop: it waits for what the threads have in hand.
        await asyncio.to_thread(core.tools.threads.shutdown)
        await asyncio.to_thread(core.tools.log.close)
        await asyncio.to_thread(core.tools.store.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # -- parts -------------------------------------------------------------------------

    def _alive(self) -> Tools:
        if self._core.closed:
            raise LayerClosedError
        return self._core.tools

    def _bulk(self, on: str) -> Callable[[int], AbstractContextManager[Spread]]:
        """Who does bulk work elsewhere."""
        able = {name: spec.bulk for name, spec in self.plugins.runners.items() if spec.bulk is not None}
        if on not in able:
            raise InputError(
                f"no runner `{on[:80]}` does bulk work; there is `loop` and {', '.join(able) or 'no other'}"
            )
        return able[on]

    def _operator(self, action: str) -> Tools:
        """What concerns everybody is not for one principal to do."""
        tools = self._alive()
        if self._scope.principal is not None:
            raise NotPermittedError(str(self._scope.principal), action, self.tenant)
        return tools

    def _request(
        self,
        entity: EntityLike,
        query: str | None,
        links: Sequence[EntityLike],
        budget_tokens: int,
        as_of: datetime | None,
    ) -> Request:
        if not BUDGETS[0] <= budget_tokens <= BUDGETS[1]:
            raise InputError(f"budget_tokens must be in [{BUDGETS[0]}, {BUDGETS[1]}], not {budget_tokens}")
        if query is not None:
            query = checked_text(query).strip()[:MAX_QUERY] or None
        scope = self._scope
        if as_of is not None:
            scope = scope.model_copy(update={"as_of": utc(as_of)})
        return Request(scope, Entity.parse(entity), query, entities(tuple(links)), budget_tokens)


async def _compose(
    url: str,
    settings: Settings,
    threads: ThreadPoolExecutor,
    embedder: Embedder | None,
    models: Mapping[Role, roles.Given],
    clock: Clock,
) -> _Core:
    plugins = load(settings.disabled_plugins)
    own = embedder is None
    used = plugins.embedders[DEFAULT_EMBEDDER].open() if embedder is None else embedder
    book = _rule_book(plugins, settings)
    loop = asyncio.get_running_loop()
    # In a thread: the client of a model takes a second or two to import.
    asked = await loop.run_in_executor(threads, roles.open_models, plugins, settings, models)
    store = await loop.run_in_executor(
        threads, lambda: GraphStore.open(url, embedder=used.id, dim=used.dim, durable=settings.durable)
    )
    tools = Tools(
        store=store,
        clock=clock,
        embedder=used,
        rules=book,
        threads=threads,
        keys=KeyFile(settings.receipt_key(*_database(store))),
        log=InjectionLog(store.database, threads, settings.injection_days, settings.ranking_days),
        linkers=list(plugins.linkers.values()),
        features=list(plugins.features.values()),
        filters=list(plugins.share_filters.values()),
        sinks=list(plugins.sinks.values()),
        models=asked,
        trigger=settings.trigger,
        recurrence_count=settings.recurrence_count,
        ranking=settings.ranking,
        consolidate_hour=settings.consolidate_hour_utc,
        holdout=settings.holdout if settings.ranking_days else 0.0,
        choice_days=settings.choice_days,
        watch_every_s=settings.watch_every_s,
        sweep_every_s=settings.sweep_every_s,
        lease=round(settings.lease_s * SECOND),
    )
    return _Core(tools, plugins, settings, own_embedder=own)


def _database(store: GraphStore) -> tuple[str | None, str]:
    """The file, if it is one, and the URL without its password."""
    database = store.database
    return database.url.database if database.sqlite else None, str(database.label)


def _rule_book(plugins: Plugins, settings: Settings) -> RuleBook:
    # A feature under a built-in's name would change what every preset means.
    extra = [feature for name, feature in plugins.features.items() if name not in BUILTIN]
    presets = {name: spec.tree for name, spec in plugins.domains.items()}
    return RuleBook(_scorer(plugins, settings, extra), presets, extra)


def _scorer(plugins: Plugins, settings: Settings, extra: Sequence[FeatureSpec]) -> rules.Scorer:
    path = settings.rule_file()
    if path is None:
        if settings.rules not in plugins.domains:
            known = ", ".join(sorted(plugins.domains))
            raise InvalidRuleError("rules", f"there is no preset `{settings.rules}`; there are {known}")
        return rules.load(plugins.domains[settings.rules].tree, extra)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the rule file `{path.name}` cannot be read: {error.strerror}") from error
    return rules.load(text, extra)


def _tenant(name: str) -> str:
    bad = not isinstance(name, str) or not name or len(name) > 128  # pyright: ignore[reportUnnecessaryIsInstance]
    if bad or any(char.isspace() or ord(char) < 32 for char in name):
        raise InputError("a tenant is named by 1 to 128 characters without white space")
    return checked_text(name)


def _id(text: str) -> str:
    """An id as it may be looked for; what no database could hold is as unknown as any other."""
    try:
        return checked_text(str(text))
    except InputError as error:
        raise UnknownIdError(str(text)) from error


def _domain(text: str | None) -> str | None:
    if text is not None and len(checked_text(text)) > MAX_DOMAIN:
        raise InputError(f"describe the domain in at most {MAX_DOMAIN} characters")
    return (text or "").strip() or None


def _rules_like(which: RulesLike) -> RulesLike:
    if not isinstance(which, (str, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]  callers pass anything
        raise InputError(f"a {type(which).__name__} names no rules; pass a preset, a hash, or a rule tree")
    return checked_text(which)


def _listed(batch: Sequence[Interaction]) -> list[Interaction]:
    if not isinstance(batch, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  callers pass anything
        raise InputError(f"a {type(batch).__name__} is no actor; name an entity, or pass a list of Interaction")
    return list(batch)


def _checked(kind: type[V], **parts: Any) -> V:
    try:
        return kind(**parts)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"`{where}`: {first['msg']}") from error


__all__ = ["AsyncCollabLayer"]
