"""What every flow is handed: the store, the clock, the plugged-in parts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, ParamSpec, TypeVar

from collab_layer.errors import CollabError, LayerClosedError
from collab_layer.flows.arrived import Arrived
from collab_layer.flows.gather import Gathering
from collab_layer.flows.injections import Entry, InjectionLog, Offer
from collab_layer.flows.keys import KeyFile
from collab_layer.flows.lapsing import Rounds
from collab_layer.flows.replay import Replays
from collab_layer.flows.rulebook import RuleBook
from collab_layer.flows.standing import Standing
from collab_layer.graph.outbox import LEASE, Claim
from collab_layer.graph.reader import Reading
from collab_layer.graph.store import GraphStore
from collab_layer.plugins.specs import Event, FeatureSpec, Leaving, LinkerSpec, LinkRequest, ShareFilterSpec, SinkSpec
from collab_layer.ports.backend import MemoryBackend
from collab_layer.ports.clock import Clock
from collab_layer.ports.models import Embedder, LanguageModel
from collab_layer.stages.rules import Scorer
from collab_layer.types.asking import Role
from collab_layer.types.entity import Entity
from collab_layer.types.injection import Use
from collab_layer.types.scope import Scope
from collab_layer.types.time import micros

log = logging.getLogger("collab_layer")

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """A language model in its role, and what a tenant may spend on it in a day.

    Attributes:
        model: Who is asked.
        timeout_s: For one question in all.
        requests: The most that it sends for one question, retries included, >= 1; so much is reserved.
        calls_per_day, tokens_per_day: Caps; None is no cap.
    """

    model: LanguageModel
    timeout_s: float = 30.0
    requests: int = 1
    calls_per_day: int | None = None
    tokens_per_day: int | None = None


@dataclass(slots=True)
class Tools:
    """Shared by every tenant of a layer; stores are each one tenant's, by (tenant, name)."""

    store: GraphStore
    clock: Clock
    embedder: Embedder
    rules: RuleBook
    threads: ThreadPoolExecutor
    keys: KeyFile
    log: InjectionLog
    linkers: Sequence[LinkerSpec] = ()
    features: Sequence[FeatureSpec] = ()
    filters: Sequence[ShareFilterSpec] = ()
    sinks: Sequence[SinkSpec] = ()
    models: Mapping[Role, Asked] = field(default_factory=dict[Role, Asked])
    trigger: Literal["eager", "recurrence", "nightly"] = "recurrence"
    recurrence_count: int = 4
    ranking: Literal["listwise", "pointwise"] = "listwise"
    consolidate_hour: int | None = None
    holdout: float = 0.0
    choice_days: float = 7.0
    watch_every_s: float = 0.0
    sweep_every_s: float = 0.0
    lease: int = LEASE
    backends: dict[tuple[str, str], MemoryBackend] = field(default_factory=dict[tuple[str, str], MemoryBackend])
    delivering: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    spared: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """(tenant, entity) whose next batch no model is asked about: its last answer came to nothing."""
    in_hand: dict[tuple[str, int], Claim] = field(default_factory=dict[tuple[str, int], Claim])
    """What this process has leased, by (tenant, entity)."""
    arrived: Arrived = field(default_factory=Arrived)
    gathering: Gathering = field(default_factory=Gathering)
    standing: Standing = field(default_factory=Standing)
    lapsing: Rounds = field(default_factory=Rounds)
    replays: Replays = field(default_factory=Replays)

    def scorer_of(self, reading: Reading) -> Scorer:
        """The curation rules of the tenant that is read: its own choice, else the deployment's."""
        return self.rules.scorer(reading.connection, reading.index)

    def stores_of(self, tenant: str) -> list[MemoryBackend]:
        """The tenant's attached stores."""
        return [store for (whose, _), store in self.backends.items() if whose == tenant]

    def delivered_to(self, tenant: str) -> list[str]:
        """Names of the stores that this tenant's derived items are written to."""
        return sorted(name for whose, name in self.delivering if whose == tenant)

    def now(self) -> int:
        """Microseconds since 1970 by the layer's clock."""
        return micros(self.clock())

    async def in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking or heavy work off the event loop, in the layer's own threads."""
        loop = asyncio.get_running_loop()
        try:
            waiting = loop.run_in_executor(self.threads, lambda: call(*args, **kwargs))
        except RuntimeError as error:  # the threads were shut down: by `close`, or by the interpreter's exit
            raise LayerClosedError from error
        return await waiting

    @asynccontextmanager
    async def taking(self, take: Callable[[], T], give_back: Callable[[T], object]) -> AsyncGenerator[T]:
        """What `take` claims in a thread, for the time of a block.

        If the block ends by an error or is cancelled it is given back, in a thread too: also if that happens while it
        is just being claimed, since a thread cannot be stopped. Where giving back fails the lease ends by itself.
        """
        claiming = asyncio.ensure_future(self.in_thread(take))
        try:
            yield await asyncio.shield(claiming)
        except BaseException:
            await asyncio.shield(self._given_back(claiming, give_back))
            raise

    async def _given_back(self, claiming: asyncio.Future[T], give_back: Callable[[T], object]) -> None:
        try:
            taken = await claiming
        except (CollabError, OSError):
            return  # then nothing was claimed, and whoever waited for it knows
        try:
            await self.in_thread(give_back, taken)
        except LayerClosedError:
            return  # who closes the layer lets go of what is in hand
        except CollabError as error:
            log.warning("what was claimed waits for its lease to end: %s", error)

    def link(self, requests: Sequence[LinkRequest], names: Mapping[str, Entity]) -> list[list[Entity]]:
        """Every linker's links, joined in order."""
        joined: list[dict[Entity, None]] = [{} for _ in requests]
        for spec in self.linkers:
            for links, found in zip(joined, spec.link(requests, names), strict=True):
                links.update(dict.fromkeys(found))
        return [list(links) for links in joined]

    def leaving(self, items: Sequence[Leaving]) -> list[str | None]:
        """What may leave after every share filter; None where one of them vetoed."""
        texts: list[str | None] = [item.text for item in items]
        for spec in self.filters:
            asked = [at for at, text in enumerate(texts) if text is not None]
            batch = [Leaving(items[at].owner, items[at].reader, texts[at] or "") for at in asked]
            for at, text in zip(asked, spec.filter(batch), strict=True):
                texts[at] = text
        return texts

    async def handed(
        self,
        scope: Scope,
        entity: Entity,
        use: Use,
        items: Sequence[str],
        generation: int,
        offer: Offer | None = None,
    ) -> None:
        """Note in the injection log what an answer carried, and what it offered; costs next to nothing.

        Raises:
            StoreError: The log could not be written for so long that nothing more fits in memory.
        """
        if items or offer is not None:
            await self.log.room()
            parts = (scope.tenant, self.now(), entity, scope.principal, scope.purpose)
            carried = tuple(dict.fromkeys(items))
            self.log.add(Entry(*parts, use=use, items=carried, generation=generation, offer=offer))

    def tell(self, event: Event) -> None:
        """Tell every sink; one that fails is logged and stops nothing."""
        for sink in self.sinks:
            try:
                sink.tell(event)
            except Exception as error:  # a stranger's code may raise anything
                log.warning("sink `%s` failed on `%s`: %s", sink.name, event.kind, type(error).__name__)
