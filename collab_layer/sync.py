"""The blocking layer: one line per method over one loop thread.

Signatures and docstrings are those of `AsyncCollabLayer`; a test compares them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from collab_layer.config import Settings
from collab_layer.errors import LayerClosedError, LoopThreadError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.plugins.manager import Plugins
from collab_layer.ports.backend import Change, MemoryBackend
from collab_layer.ports.clock import Clock, system_clock
from collab_layer.ports.models import Embedder, LanguageModel
from collab_layer.types.access import NewToken, Token
from collab_layer.types.alias import Alias
from collab_layer.types.answer import Answer
from collab_layer.types.asking import RoleHealth, Spent
from collab_layer.types.bundle import Bundle, Imported, Issued, Revocations
from collab_layer.types.changed import Changed
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.facet import CollabMemory, Facet, Neighbor
from collab_layer.types.health import Health
from collab_layer.types.injection import Injection
from collab_layer.types.interaction import Interaction
from collab_layer.types.lift import Gate, Lift, Rebuilt
from collab_layer.types.lineage import Lineage
from collab_layer.types.notice import Notice
from collab_layer.types.ranking import Ranking
from collab_layer.types.review import Blocked, Quarantined
from collab_layer.types.rules import RuleDiff, RuleSet, RulesPreview
from collab_layer.types.scope import Grant, LevelName, Policy, Sharing
from collab_layer.types.upkeep import Consolidation
from collab_layer.verbs.base import EntityLike, RulesLike

T = TypeVar("T")


class LoopThread:
    """An event loop on a daemon thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="collab-loop", daemon=True)
        self._thread.start()
        self._handing = threading.Lock()
        self._stopped = False

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it here.

        Raises:
            LoopThreadError: Called from the loop thread itself, which would wait for ever.
            LayerClosedError: The loop was stopped.
        """
        if threading.current_thread() is self._thread:
            name = call.__qualname__
            call.close()
            raise LoopThreadError(name)
        try:
            return self._handed(call).result()
        except CancelledError as error:
            raise LayerClosedError from error

    def stop(self) -> None:
        """End the loop and its thread; calls of other threads that still wait end with `LayerClosedError`.

        Nothing if the thread itself asks, or has ended.
        """
        if threading.current_thread() is self._thread or not self._thread.is_alive():
            return
        with self._handing:
            stopped, self._stopped = self._stopped, True
        if stopped:
            return
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _handed(self, call: Coroutine[Any, Any, T]) -> Future[T]:
        """Hand over a coroutine ahead of the end, or not at all: who came after it would wait for ever."""
        if self._thread.is_alive():  # asked first: in a forked process nobody may be left to give back the lock
            with self._handing:
                if not self._stopped:
                    return asyncio.run_coroutine_threadsafe(call, self._loop)
        call.close()
        raise LayerClosedError

    async def _cancel_all(self) -> None:
        waiting = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


class CollabLayer:
    """The layer between memory owners. Open it with `CollabLayer.open(...)`.

    Every method raises `InputError` for arguments that cannot be used, `LayerClosedError`
    after `close`, and a `StoreError` when the database refuses; nothing is half-written.
    """

    def __init__(self, layer: AsyncCollabLayer, loop: LoopThread) -> None:
        self._layer, self._loop = layer, loop

    @classmethod
    def open(
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
        loop = LoopThread()
        try:
            layer = loop.run(
                AsyncCollabLayer.open(
                    url,
                    tenant=tenant,
                    backends=backends,
                    sharing=sharing,
                    embedder=embedder,
                    memory_model=memory_model,
                    reasoning_model=reasoning_model,
                    settings=settings,
                    clock=clock,
                )
            )
        except BaseException:
            loop.stop()
            raise
        return cls(layer, loop)

    def for_tenant(self, tenant: str) -> Self:
        return type(self)(self._layer.for_tenant(tenant), self._loop)

    def as_(self, principal: EntityLike, purpose: str | None = None) -> Self:
        return type(self)(self._layer.as_(principal, purpose), self._loop)

    def open_with(self, token: str) -> Self:
        return type(self)(self._loop.run(self._layer.open_with(token)), self._loop)

    @property
    def tenant(self) -> str:
        return self._layer.tenant

    @property
    def principal(self) -> Entity | None:
        return self._layer.principal

    @property
    def embedder(self) -> str:
        return self._layer.embedder

    @property
    def plugins(self) -> Plugins:
        return self._layer.plugins

    def attach(self, backend: MemoryBackend, *, deliver: bool = False) -> None:
        return self._loop.run(self._layer.attach(backend, deliver=deliver))

    def observe(
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
        return self._loop.run(self._layer.observe(actor, target, verb, text, links, outcome, at, key, weight, replaces))

    def observe_changes(self, backend: str, changes: Sequence[Change]) -> int:
        return self._loop.run(self._layer.observe_changes(backend, changes))

    def index(
        self,
        backend: MemoryBackend,
        owners: Sequence[EntityLike] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        return self._loop.run(self._layer.index(backend, owners, progress))

    def reconcile(self, backend: MemoryBackend) -> int:
        return self._loop.run(self._layer.reconcile(backend))

    def neighbors(
        self, entity: EntityLike, query: str | None = None, k: int = 16, as_of: datetime | None = None
    ) -> list[Neighbor]:
        return self._loop.run(self._layer.neighbors(entity, query, k, as_of))

    def context(
        self,
        entity: EntityLike,
        query: str | None = None,
        links: Sequence[EntityLike] = (),
        budget_tokens: int = 800,
        as_of: datetime | None = None,
    ) -> CollabMemory:
        return self._loop.run(self._layer.context(entity, query, links, budget_tokens, as_of))

    def changes(self, entity: EntityLike, since: datetime, until: datetime | None = None) -> list[Changed]:
        return self._loop.run(self._layer.changes(entity, since, until))

    def deliver(self, entity: EntityLike, budget_tokens: int = 800, again: bool = False) -> int:
        return self._loop.run(self._layer.deliver(entity, budget_tokens, again))

    def rank(
        self,
        entity: EntityLike,
        candidates: Sequence[EntityLike],
        instruction: str | None = None,
        as_of: datetime | None = None,
    ) -> Ranking:
        return self._loop.run(self._layer.rank(entity, candidates, instruction, as_of))

    def answer(self, entity: EntityLike, question: str, as_of: datetime | None = None) -> Answer:
        return self._loop.run(self._layer.answer(entity, question, as_of))

    def explain(self, id: str, depth: int = 8, width: int = 50) -> Lineage:
        return self._loop.run(self._layer.explain(id, depth, width))

    def derived(self, id: str) -> Facet:
        return self._loop.run(self._layer.derived(id))

    def health(self) -> Health:
        return self._loop.run(self._layer.health())

    def models(self, ask: bool = False) -> list[RoleHealth]:
        return self._loop.run(self._layer.models(ask))

    def usage(self, days: int = 1) -> list[Spent]:
        return self._loop.run(self._layer.usage(days))

    def ping(self) -> None:
        return self._loop.run(self._layer.ping())

    def grant(
        self,
        owner: EntityLike,
        to: EntityLike,
        level: LevelName = "facets",
        purpose: str | None = None,
        until: datetime | None = None,
    ) -> Grant:
        return self._loop.run(self._layer.grant(owner, to, level, purpose, until))

    def grants(self, owner: EntityLike | None = None) -> list[Grant]:
        return self._loop.run(self._layer.grants(owner))

    def opt_out(self, owner: EntityLike, audience: EntityLike = "tenant") -> Grant:
        return self._loop.run(self._layer.opt_out(owner, audience))

    def publish(
        self,
        owner: EntityLike,
        text: str,
        to: EntityLike,
        sources: Sequence[str | MemoryRef] = (),
        purpose: str | None = None,
        until: datetime | None = None,
    ) -> Notice:
        return self._loop.run(self._layer.publish(owner, text, to, sources, purpose, until))

    def revoke(self, grant_id: str) -> ErasureReceipt:
        return self._loop.run(self._layer.revoke(grant_id))

    def alias(self, entity: EntityLike, principal: EntityLike) -> Alias:
        return self._loop.run(self._layer.alias(entity, principal))

    def unalias(self, entity: EntityLike) -> None:
        return self._loop.run(self._layer.unalias(entity))

    def aliases(self) -> list[Alias]:
        return self._loop.run(self._layer.aliases())

    def set_policy(
        self,
        team: EntityLike | None = None,
        *,
        min_contributors: int | None = None,
        level: LevelName | None = None,
        purposes: Sequence[str] | None = None,
        longest_days: float | None = None,
    ) -> Policy:
        limits: dict[str, Any] = {"min_contributors": min_contributors, "level": level}
        limits |= {"purposes": purposes, "longest_days": longest_days}
        return self._loop.run(self._layer.set_policy(team, **limits))

    def policies(self) -> list[Policy]:
        return self._loop.run(self._layer.policies())

    def forget(self, what: EntityLike | MemoryRef, source: bool = False) -> ErasureReceipt:
        return self._loop.run(self._layer.forget(what, source))

    def forget_influence(self, entity: EntityLike, block: bool = True) -> ErasureReceipt:
        return self._loop.run(self._layer.forget_influence(entity, block))

    def blocked(self) -> list[Blocked]:
        return self._loop.run(self._layer.blocked())

    def unblock(self, entity: EntityLike) -> None:
        self._loop.run(self._layer.unblock(entity))

    def export_bundle(self, to: EntityLike = "federation:all", days: int = 30) -> Bundle:
        return self._loop.run(self._layer.export_bundle(to, days))

    def revoke_bundle(self, id: str) -> Revocations:
        return self._loop.run(self._layer.revoke_bundle(id))

    def bundles(self) -> list[Issued]:
        return self._loop.run(self._layer.bundles())

    def import_bundle(self, source: str | Path | bytes, trust: Mapping[str, float] | None = None) -> Imported:
        return self._loop.run(self._layer.import_bundle(source, trust))

    def receipt(self, id: str) -> ErasureReceipt:
        return self._loop.run(self._layer.receipt(id))

    def receipts(self, limit: int = 100) -> list[ErasureReceipt]:
        return self._loop.run(self._layer.receipts(limit))

    def receipt_key(self) -> str:
        return self._loop.run(self._layer.receipt_key())

    def quarantined(self) -> list[Quarantined]:
        return self._loop.run(self._layer.quarantined())

    def release(self, id: str) -> None:
        return self._loop.run(self._layer.release(id))

    def drop_quarantined(self, id: str) -> ErasureReceipt:
        return self._loop.run(self._layer.drop_quarantined(id))

    def injections(
        self, entity: EntityLike | None = None, since: datetime | None = None, limit: int = 1_000
    ) -> list[Injection]:
        return self._loop.run(self._layer.injections(entity, since, limit))

    def issue_token(self, principal: EntityLike, purpose: str | None = None, until: datetime | None = None) -> NewToken:
        return self._loop.run(self._layer.issue_token(principal, purpose, until))

    def tokens(self) -> list[Token]:
        return self._loop.run(self._layer.tokens())

    def revoke_token(self, id: str) -> None:
        return self._loop.run(self._layer.revoke_token(id))

    def drain(self) -> int:
        return self._loop.run(self._layer.drain())

    def work(self, until: asyncio.Event | None = None) -> None:
        return self._loop.run(self._layer.work(until))

    def consolidate(
        self, *, dry_run: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> Consolidation:
        return self._loop.run(self._layer.consolidate(dry_run=dry_run, progress=progress))

    def rebuild(self, *, on: str = "loop", workers: int = 2) -> Rebuilt:
        return self._loop.run(self._layer.rebuild(on=on, workers=workers))

    def refit(self, owners: int = 300) -> Gate:
        return self._loop.run(self._layer.refit(owners))

    def lift(self, entity: EntityLike | None = None) -> Lift:
        return self._loop.run(self._layer.lift(entity))

    def set_weights(self, weights: dict[str, float] | None = None) -> None:
        return self._loop.run(self._layer.set_weights(weights))

    def generate_rules(self, domain: str | None = None) -> RuleSet:
        return self._loop.run(self._layer.generate_rules(domain))

    def preview_rules(self, domain: str | None = None) -> RulesPreview:
        return self._loop.run(self._layer.preview_rules(domain))

    def rule_sets(self) -> list[RuleSet]:
        return self._loop.run(self._layer.rule_sets())

    def rules_in_use(self) -> RuleSet:
        return self._loop.run(self._layer.rules_in_use())

    def compare_rules(self, which: RulesLike) -> RuleDiff:
        return self._loop.run(self._layer.compare_rules(which))

    def use_rules(self, which: RulesLike | None) -> RuleSet:
        return self._loop.run(self._layer.use_rules(which))

    def close(self) -> None:
        try:
            with suppress(LayerClosedError):
                self._loop.run(self._layer.aclose())
        finally:
            self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


for _name, _own in vars(CollabLayer).items():
    # Written once, in `AsyncCollabLayer`.
    _theirs: Any = getattr(AsyncCollabLayer, "aclose" if _name == "close" else _name, None)
    if not _name.startswith("_") and _theirs is not None:
        for _part in (_own, getattr(_own, "__func__", _own)):
            _part.__doc__ = _theirs.__doc__
