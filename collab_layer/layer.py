"""The layer: what users call, and where its parts are put together.

`AsyncCollabLayer` is the implementation; `CollabLayer` in `sync.py` runs it on a loop
thread of its own. A layer is cheap to derive: `for_tenant` and `as_` share one engine,
one cache and one worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from collab_layer import roles
from collab_layer.config import Settings
from collab_layer.errors import CollabError, InputError, InvalidRuleError
from collab_layer.flows import share, tokens, work
from collab_layer.flows.injections import InjectionLog
from collab_layer.flows.keys import KeyFile
from collab_layer.flows.rulebook import RuleBook
from collab_layer.flows.tools import Tools
from collab_layer.graph.store import GraphStore
from collab_layer.plugins.manager import DEFAULT_EMBEDDER, Plugins, load
from collab_layer.plugins.specs import FeatureSpec
from collab_layer.ports.backend import MemoryBackend
from collab_layer.ports.clock import Clock, system_clock
from collab_layer.ports.models import Closes, Embedder, LanguageModel
from collab_layer.stages import rules
from collab_layer.stages.features import BUILTIN
from collab_layer.types.asking import Role
from collab_layer.types.entity import Entity, checked_text
from collab_layer.types.scope import Scope, Sharing
from collab_layer.types.time import SECOND
from collab_layer.verbs.base import Core, EntityLike
from collab_layer.verbs.consenting import Consenting
from collab_layer.verbs.governing import Governing
from collab_layer.verbs.reading import Reading
from collab_layer.verbs.upkeep import Upkeep
from collab_layer.verbs.writing import Writing


class AsyncCollabLayer(Writing, Reading, Consenting, Governing, Upkeep):
    """The layer between memory owners. Open it with `await AsyncCollabLayer.open(...)`.

    Every method raises `InputError` for arguments that cannot be used, `LayerClosedError`
    after `aclose`, and a `StoreError` when the database refuses; nothing is half-written.
    """

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
            embedder: Texts to vectors. None takes the one that `settings.embedder` names, else the
                first backend's own, else the built-in hashing embedder.
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
        scope = Scope(tenant=_tenant(tenant))
        threads = ThreadPoolExecutor(used.threads, thread_name_prefix="collab")
        try:
            models: dict[Role, roles.Given] = {"memory": memory_model, "reasoning": reasoning_model}
            core = await _compose(url, used, threads, embedder, models, clock)
        except BaseException:
            threads.shutdown(wait=False)
            raise
        layer = cls(core, scope)
        try:
            if sharing is not None:
                await share.set_policy(core.tools, scope.tenant, sharing)
            for backend in backends:
                await layer.attach(backend)
        except BaseException:
            core.tools.backends.clear()  # what was never opened does not close its caller's stores
            await layer.aclose()
            raise
        return layer

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

    async def aclose(self) -> None:
        """Stop the worker and close the database; whoever calls it again, or meanwhile, waits for the same end."""
        core = self._core
        if core.closing is None:
            core.closing = asyncio.ensure_future(_close(core))
        await asyncio.shield(core.closing)  # a caller that is cancelled leaves nothing half open

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _compose(
    url: str,
    settings: Settings,
    threads: ThreadPoolExecutor,
    embedder: Embedder | None,
    models: Mapping[Role, roles.Given],
    clock: Clock,
) -> Core:
    plugins = load(settings.disabled_plugins)
    loop = asyncio.get_running_loop()
    own = embedder is None and settings.embedder is None
    named = settings.embedder or DEFAULT_EMBEDDER
    # In threads: weights, and the client of a model, take a second or two to load.
    used = await loop.run_in_executor(threads, plugins.embedder, named) if embedder is None else embedder
    book = _rule_book(plugins, settings)
    asked = await loop.run_in_executor(threads, roles.open_models, plugins, settings, models)
    store = await _opened(
        loop.run_in_executor(
            threads, lambda: GraphStore.open(url, embedder=used.id, dim=used.dim, durable=settings.durable)
        )
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
    return Core(tools, plugins, settings, own_embedder=own)


async def _opened(opening: asyncio.Future[GraphStore]) -> GraphStore:
    """The store; if who opens it is cancelled meanwhile it is closed again, since a thread cannot be stopped."""
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with suppress(CollabError):
            (await opening).close()
        raise


async def _close(core: Core) -> None:
    """Let go of all that the layer holds; if one part fails, the others all the same."""
    tools = core.tools
    async with AsyncExitStack() as rest:  # from the last to the first
        # Off the caller's loop: it waits for what the threads have in hand.
        for part in (tools.store.close, tools.log.close, partial(work.let_go, tools), tools.threads.shutdown):
            rest.push_async_callback(asyncio.to_thread, part)
        models = {id(asked.model): asked.model for asked in tools.models.values()}.values()
        for one in (*[model for model in models if isinstance(model, Closes)], *tools.backends.values()):
            rest.push_async_callback(one.aclose)
        if core.worker is not None:
            core.worker.cancel()
            await asyncio.gather(core.worker, return_exceptions=True)


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


__all__ = ["AsyncCollabLayer"]
