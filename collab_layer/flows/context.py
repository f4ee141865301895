"""One entity and perhaps a query to what its neighbours know.

load:   one snapshot, cut to the reader's grants;
stages: curate, synthesize, search; the memory model words the facets, where there is one;
save:   the derived items that are new, with their lineage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from sqlalchemy import Connection

from collab_layer.errors import NotPermittedError, UnknownIdError
from collab_layer.flows import cache as answers
from collab_layer.flows import foreign, notices, view, wording
from collab_layer.flows.cache import Cache, Key
from collab_layer.flows.made import Made, Run, pack
from collab_layer.flows.making import Maker
from collab_layer.flows.tools import Tools
from collab_layer.flows.wording import Worded, Wording
from collab_layer.graph import derived, names, syntheses
from collab_layer.graph.cards import texts
from collab_layer.graph.derived import Item
from collab_layer.graph.ids import number_of
from collab_layer.graph.policy import NOBODY
from collab_layer.graph.reader import Reading, neighborhood, snippets
from collab_layer.graph.store import Opened
from collab_layer.plugins.specs import Event, LinkRequest
from collab_layer.stages.curate import curate
from collab_layer.types.entity import Entity
from collab_layer.types.facet import CollabMemory, Neighbor
from collab_layer.types.graph import Snippet, Vectors
from collab_layer.types.injection import Use
from collab_layer.types.scope import Level, Scope
from collab_layer.types.time import SECOND

NEIGHBORS = 16
STANDS_IN = 60 * SECOND
"""How long the rules' answer is kept where a model was asked and gave nothing, or is still thinking."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked."""

    scope: Scope
    entity: Entity
    query: str | None = None
    links: tuple[Entity, ...] = ()
    budget_tokens: int = 800

    @property
    def reader(self) -> Entity:
        """Who is told."""
        return self.scope.principal or self.entity


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer, what to store of it, and what a model may still say better.

    Attributes:
        items: Derived items that are new.
        generation, rev: The tenant's, when it was read.
        reader: Who is told; `NOBODY` where it was not known.
        until: When the answer ends by itself.
        federated: Whether other organisations may have something to say to it.
        wording: What to ask the memory model before the answer is good.
        kept: Under which key which facets of a model's are kept, if it was asked.
    """

    memory: CollabMemory
    items: Sequence[Item] = ()
    generation: int = 0
    rev: int = 0
    reader: int = NOBODY
    until: int = 0
    federated: bool = False
    wording: Wording | None = None
    kept: tuple[str, Sequence[str]] | None = None


async def context(tools: Tools, cache: Cache, request: Request, use: Use | None = "context") -> CollabMemory:
    """What the neighbours of an entity know, within the budget; it says which stores are down.

    With `use` None the caller notes itself what of it is handed on.
    """
    tenant = request.scope.tenant
    async with tools.standing.watching(tenant, tools.stores_of(tenant)):
        memory = await _context(tools, cache, request, use)
    down = tools.standing.sentences(tenant)
    return memory.model_copy(update={"degraded": (*memory.degraded, *down)}) if down else memory


async def _context(tools: Tools, cache: Cache, request: Request, use: Use | None) -> CollabMemory:
    vector = await query_vector(tools, request.query)
    answer = await tools.in_thread(_answered, tools, cache, request, vector)
    if answer.wording is not None:
        worded = await wording.put_into_words(tools, request.scope.tenant, answer.wording)
        answer = await tools.in_thread(_answered, tools, cache, request, vector, worded)
    memory = answer.memory
    if use == "context" and answer.federated:  # what others said elsewhere is shown, and is nobody's input
        memory = await tools.in_thread(foreign.added, tools, request.scope, request.query, request.links, memory)
    if memory.facets:
        shown = [facet.id for facet in memory.facets]
        facts = {"facets": shown, "cached": memory.cached}
        tools.tell(Event("injected", request.scope.tenant, str(request.entity), facts))
        if use is not None:
            await tools.handed(request.scope, request.entity, use, shown, answer.generation)
    return memory


async def neighbors(tools: Tools, request: Request, k: int) -> tuple[Neighbor, ...]:
    """The curated neighbours of an entity, each with what it scored for."""
    vector = await query_vector(tools, request.query)
    return await tools.in_thread(_curated, tools, request, vector, k)


async def query_vector(tools: Tools, query: str | None) -> Vectors | None:
    """The raw vector of a query, None where there are no words."""
    if query is None:
        return None
    vector = (await tools.embedder.embed([query]))[0]
    return vector if np.any(vector) else None


def permit(opened: Opened, scope: Scope, entity: Entity) -> None:
    """Whether the principal may read as this entity: itself, a thing, or an owner that shares records.

    Raises:
        NotPermittedError: No grant of the owner covers the principal.
    """
    index = opened.reading.index
    if scope.principal in (None, entity) or opened.focus == NOBODY:
        return
    is_owner = bool(index.is_owner(np.array([opened.focus]))[0])
    if is_owner and opened.reading.audience.level(opened.focus) < Level.RECORDS:
        raise NotPermittedError(str(scope.principal), "read what neighbours know for", str(entity))


def seeds_of(tools: Tools, reading: Reading, request: Request) -> list[int]:
    """Known entities that the caller's links or the query's words name."""
    found = list(request.links)
    if request.query:
        found += tools.link([LinkRequest(request.entity, request.query)], reading.index.known)[0]
    ids = list(reading.index.find(reading.connection, [str(entity) for entity in found]).values())
    return ids if reading.as_of is None else [id_ for id_ in ids if reading.index.named(id_)]


def _curated(tools: Tools, request: Request, raw: Vectors | None, k: int) -> tuple[Neighbor, ...]:
    with tools.store.reading(request.scope, request.entity, tools.now()) as opened:
        permit(opened, request.scope, request.entity)
        if opened.focus == NOBODY:
            raise UnknownIdError(str(request.entity))
        reading = opened.reading
        vector = None if raw is None else reading.index.centred(raw[None, :])[0]
        hood = neighborhood(reading, opened.focus, seeds=seeds_of(tools, reading, request), query_vector=vector)
        if not len(hood) and not reading.index.is_owner(np.array([opened.focus]))[0]:
            raise UnknownIdError(str(request.entity))  # a thing that only others hold is as unknown as any other
        return view.neighbors(reading, curate(hood, tools.scorer_of(reading), k=k))


def _answered(
    tools: Tools, cache: Cache, request: Request, raw: Vectors | None, worded: Worded | None = None
) -> _Answer:
    """An answer whose new items are stored, or what a model is to be asked first."""
    answer = _answer(tools, cache, request, raw, worded)
    if answer.wording is None and (answer.items or answer.kept is not None):
        _save(tools, request, answer)
    return answer


def _answer(tools: Tools, cache: Cache, request: Request, raw: Vectors | None, worded: Worded | None) -> _Answer:
    now = tools.now()
    with tools.store.reading(request.scope, request.entity, now) as opened:
        permit(opened, request.scope, request.entity)
        if opened.focus == NOBODY and not request.query and not request.links:
            raise UnknownIdError(str(request.entity))
        key = _key(tools, opened, request)
        kept = cache.get(key, opened, now) if worded is None else None
        if kept is not None:
            said = kept.model_copy(update={"cached": True, "usage": ()})
            state = opened.reading.index.state
            return _Answer(said, generation=state.generation, federated=state.federated)
        answer, nodes = _fresh(tools, opened, request, raw, worded)
        until = answer.until
        waits = answer.wording is not None or (worded is not None and worded.why is not None)
        cache.put(key, opened, nodes, min(until, now + STANDS_IN) if waits else until, answer.memory)
        return answer


def _key(tools: Tools, opened: Opened, request: Request) -> Key:
    scope = request.scope.model_dump().values()
    rules = tools.scorer_of(opened.reading).hash
    return (*scope, request.entity, request.query, request.links, request.budget_tokens, rules)


def _fresh(
    tools: Tools, opened: Opened, request: Request, raw: Vectors | None, worded: Worded | None
) -> tuple[_Answer, list[int]]:
    reading, focus = opened.reading, opened.focus
    empty = CollabMemory(
        entity=request.entity,
        query=request.query,
        shape="text" if request.query else "taste",
        budget_tokens=request.budget_tokens,
        as_of=request.scope.as_of,
    )
    state = reading.index.state
    basis = _Answer(empty, (), state.generation, state.rev, opened.reader, answers.ends(opened), state.federated)
    published = notices.found(opened, tools.embedder.id)
    if reading.audience.alone and not published:
        return basis, [focus, opened.reader]
    vector = None if raw is None else reading.index.centred(raw[None, :])[0]
    hood = neighborhood(reading, focus, seeds=seeds_of(tools, reading, request), query_vector=vector)
    selection = curate(hood, tools.scorer_of(reading), k=NEIGHBORS)
    maker = Maker(tools, opened, request.reader, request.query, request.budget_tokens, hood)
    found = maker.found(raw, request.links) if request.query else []
    read = found[: wording.FOUND_READ] if request.query else snippets(reading, selection)
    said = _said(tools, maker, read, worded)
    by_model = [] if isinstance(said, Wording) else said
    told = [
        Made.ready(facet)
        for facet in notices.said(
            tools, opened, request.reader, published, request.query, vector, request.budget_tokens
        )
    ]
    if request.query:
        lessons = maker.lessons(found)
        # Who publishes to many stands behind what is best known of the matter.
        common = maker.answering(lambda: snippets(reading, selection))
        runs = [Run([*by_model, *islice(lessons, 1), *told]), lessons, common]
    else:
        free, distilled = maker.facets(read)
        runs = [Run([*(by_model or free), *distilled, *told, *maker.updates()])]
    shown, tokens, there = _shown(reading, runs, by_model, request.budget_tokens)
    memory = empty.model_copy(
        update={
            "facets": tuple(view.with_refs(reading, [one.facet for one in shown])),
            "neighbors": view.neighbors(reading, selection),
            "tokens": tokens,
            "degraded": () if worded is None or worded.why is None else (worded.why,),
            "usage": () if worded is None else worded.usage,
        }
    )
    items = {one.item.id: one.item for one in [*shown, *by_model] if one.item is not None}
    nodes = list(dict.fromkeys([focus, opened.reader, *hood.own.ids.tolist(), *selection.ids.tolist()]))
    answer = replace(
        basis,
        memory=memory,
        items=[item for item in items.values() if item.id not in there],
        wording=said if isinstance(said, Wording) else None,
        kept=None if worded is None else wording.kept(worded, maker, [one.facet.id for one in by_model]),
    )
    return answer, nodes


def _shown(
    reading: Reading, runs: Sequence[Run], by_model: Sequence[Made], budget: int
) -> tuple[list[Made], int, Collection[str]]:
    """What is shown of what was made, its tokens, and the ids that are stored already; nothing that was erased."""
    gone: set[str] = set()
    while True:
        # Only what finds room is asked after: all else is not even made.
        shown, tokens = pack(runs, budget, gone)
        ids = [one.facet.id for one in [*shown, *by_model]]
        marks = derived.marks(reading.connection, reading.tenant, list(dict.fromkeys(ids)))
        erased = {id_ for id_ in ids if marks.get(id_) in derived.GONE}
        if erased <= gone:
            return shown, tokens, marks
        gone |= erased


def _said(tools: Tools, maker: Maker, snippets: Sequence[Snippet], worded: Worded | None) -> list[Made] | Wording:
    """The memory model's facets, or what to ask it for them."""
    return wording.look(tools, maker, snippets) if worded is None else wording.check(maker, worded)


def _save(tools: Tools, request: Request, answer: _Answer) -> None:
    """Store what was shown for the first time; a reader never seen before becomes an entity.

    Nothing is stored if something was erased since it was read.
    """
    tenant = request.scope.tenant
    with tools.store.database.write() as connection:
        stands = names.locked(connection, tenant)
        if stands.generation != answer.generation:
            return
        owner = answer.reader
        if owner == NOBODY:
            owner = names.resolve(connection, tenant, [request.reader])[request.reader]
        items = [replace(item, owner=owner) for item in answer.items]
        now = tools.now()
        if request.scope.as_of is None and (stands.rev != answer.rev or now >= answer.until):
            items = _still_true(connection, tenant, items, now)
        derived.put(connection, tenant, items)
        if answer.kept is not None:
            key, ids = answer.kept
            syntheses.put(connection, tenant, key, owner, ids, tools.now())


def _still_true(connection: Connection, tenant: str, items: Sequence[Item], now: int) -> list[Item]:
    """Items whose records hold: one may have been replaced since it was read."""
    read = [number for item in items for source, _, _ in item.sources if (number := _card(source)) is not None]
    held = {id_ for id_, card in texts(connection, tenant, sorted(set(read))).items() if card.holds(now)}
    return [
        item
        for item in items
        if all((number := _card(source)) is None or number in held for source, _, _ in item.sources)
    ]


def _card(source: str) -> int | None:
    return number_of(source) if source.startswith("c") else None
