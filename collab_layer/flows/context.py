"""One entity and perhaps a query to what its neighbours know.

load:   one snapshot, cut to the reader's grants;
stages: curate, synthesize, search;
save:   the derived items that are new, with their lineage.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log1p

import numpy as np

from collab_layer.errors import NotPermittedError, UnknownIdError
from collab_layer.flows import view
from collab_layer.flows.tools import Tools
from collab_layer.governance.publish import Decision, Published, decide, epoch_of
from collab_layer.graph import derived, names, policy
from collab_layer.graph.cards import CardText, card_id, texts
from collab_layer.graph.derived import Item, item_id
from collab_layer.graph.policy import NOBODY
from collab_layer.graph.reader import Reading, corpus, neighborhood, snippets
from collab_layer.graph.store import Opened
from collab_layer.plugins.specs import Event, LinkRequest
from collab_layer.stages import synthesize
from collab_layer.stages.curate import curate
from collab_layer.stages.search import rank_records
from collab_layer.stages.tokens import hashed, terms
from collab_layer.types.entity import Entity
from collab_layer.types.facet import CollabMemory, Facet, FacetKind, Neighbor
from collab_layer.types.graph import Draft, Neighborhood, Selection, Snippet, Vectors
from collab_layer.types.prompt import OVERHEAD_TOKENS, estimate_tokens, line
from collab_layer.types.scope import Level, Scope, Sharing

NEIGHBORS = 16
MAX_FACETS = 7
HEADS = 80
SMALL_BUDGET = 250
LEAST_LESSON = 20
"""Tokens of a short lesson's line; more lessons than that fill no budget are not made."""
CACHE_ENTRIES = 4_096


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked."""

    scope: Scope
    entity: Entity
    query: str | None = None
    links: tuple[Entity, ...] = ()
    budget_tokens: int = 800


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What an answer rests on; it holds as long as this is the same."""

    rev: int
    generation: int
    policy: int
    nodes: tuple[tuple[int, tuple[int, int, int]], ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    stamp: _Stamp
    until: int
    memory: CollabMemory


class Cache:
    """Answers by what was asked; each is checked against its stamp before it is used."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[object, ...], _Entry] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> _Entry | None:
        """The entry, if there is one."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: tuple[object, ...], entry: _Entry) -> None:
        """Keep an answer; the one unused longest goes."""
        self._entries[key] = entry
        while len(self._entries) > CACHE_ENTRIES:
            self._entries.popitem(last=False)


async def context(tools: Tools, cache: Cache, request: Request) -> CollabMemory:
    """What the neighbours of an entity know, within the budget."""
    vector = await query_vector(tools, request.query)
    memory, items, generation = await tools.in_thread(_answer, tools, cache, request, vector)
    if items:
        reader = request.scope.principal or request.entity
        await tools.in_thread(_save, tools, request.scope.tenant, reader, items, generation)
    if memory.facets:
        facts = {"facets": [facet.id for facet in memory.facets], "cached": memory.cached}
        tools.tell(Event("injected", request.scope.tenant, str(request.entity), facts))
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
    return list(names.find(reading.connection, reading.tenant, (str(entity) for entity in found)).values())


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
        sharing = policy.sharing(reading.connection, reading.tenant)
        return _neighbors(reading, curate(hood, tools.scorer, k=k), sharing)


def _answer(tools: Tools, cache: Cache, request: Request, raw: Vectors | None) -> tuple[CollabMemory, list[Item], int]:
    now = tools.now()
    with tools.store.reading(request.scope, request.entity, now) as opened:
        permit(opened, request.scope, request.entity)
        if opened.focus == NOBODY and not request.query and not request.links:
            raise UnknownIdError(str(request.entity))
        reading = opened.reading
        key = (*request.scope.model_dump().values(), request.entity, request.query, request.links,
               request.budget_tokens, tools.scorer.hash)  # fmt: skip
        entry = cache.get(key)
        if entry is not None and now < entry.until:
            nodes = [node for node, _ in entry.stamp.nodes]
            if entry.stamp == _stamp(opened, nodes):
                return entry.memory.model_copy(update={"cached": True}), [], reading.index.generation
        memory, items, nodes = _fresh(tools, opened, request, raw)
        cache.put(key, _Entry(_stamp(opened, nodes), _until(reading, opened.focus), memory))
        return memory, items, reading.index.generation


def _stamp(opened: Opened, nodes: Sequence[int]) -> _Stamp:
    reading = opened.reading
    found = reading.adjacency.versions(reading.connection, reading.tenant, nodes)
    index = reading.index
    return _Stamp(index.rev, index.generation, opened.policy, tuple((node, found[node]) for node in nodes))


def _until(reading: Reading, focus: int) -> int:
    """When an answer ends by itself: a grant, an update or a record it may rest on runs out."""
    ends = reading.index.cards.valid_to
    ahead = ends[ends > reading.now]
    records = int(ahead.min()) if len(ahead) else reading.audience.until
    told = derived.next_end(reading.connection, reading.tenant, focus, reading.now)
    return min(reading.audience.until, records, told)


def _fresh(
    tools: Tools, opened: Opened, request: Request, raw: Vectors | None
) -> tuple[CollabMemory, list[Item], list[int]]:
    reading, focus = opened.reading, opened.focus
    empty = CollabMemory(
        entity=request.entity,
        query=request.query,
        shape="text" if request.query else "taste",
        budget_tokens=request.budget_tokens,
        as_of=request.scope.as_of,
    )
    if reading.audience.alone:
        return empty, [], [focus, opened.reader]
    sharing = policy.sharing(reading.connection, reading.tenant)
    vector = None if raw is None else reading.index.centred(raw[None, :])[0]
    hood = neighborhood(reading, focus, seeds=seeds_of(tools, reading, request), query_vector=vector)
    selection = curate(hood, tools.scorer, k=NEIGHBORS)
    read = snippets(reading, selection)
    maker = _Maker(tools, opened, request, sharing, hood)
    lessons, front = maker.lessons(vector) if request.query else ([], [])
    made = [*front, *lessons, *maker.facets(read), *maker.updates()]
    erased = derived.is_erased(reading.connection, reading.tenant, [facet.id for facet, _ in made])
    shown, tokens = _pack([pair for pair in made if pair[0].id not in erased], request.budget_tokens)
    memory = empty.model_copy(
        update={
            "facets": tuple(view.with_refs(reading, [facet for facet, _ in shown])),
            "neighbors": _neighbors(reading, selection, sharing),
            "tokens": tokens,
        }
    )
    items = [item for _, item in shown if item is not None]
    stored = derived.get(reading.connection, reading.tenant, [item.id for item in items])
    nodes = list(dict.fromkeys([focus, opened.reader, *hood.own.ids.tolist(), *selection.ids.tolist()]))
    return memory, [item for item in items if item.id not in stored], nodes


def _neighbors(reading: Reading, selection: Selection, sharing: Sharing) -> tuple[Neighbor, ...]:
    salt = names.salt(reading.connection, reading.tenant)
    return view.neighbors(reading, selection, salt=salt, minimum=sharing.min_contributors)


Made = tuple[Facet, Item | None]


class _Maker:
    """Turns drafts into facets with ids; holds what every kind of facet needs."""

    def __init__(self, tools: Tools, opened: Opened, request: Request, sharing: Sharing, hood: Neighborhood) -> None:
        self.tools, self.opened, self.request = tools, opened, request
        self.sharing, self.hood = sharing, hood
        self.reading = opened.reading
        self.salt = names.salt(opened.reading.connection, opened.reading.tenant)

    def lessons(self, vector: Vectors | None) -> tuple[list[Made], list[Made]]:
        """The records that answer the query, each as a lesson; a facet over them if the budget is small."""
        reading, query = self.reading, self.request.query or ""
        links = list(names.find(reading.connection, reading.tenant, (str(one) for one in self.request.links)).values())
        found = corpus(reading, self.opened.focus, [hashed(term) for term in terms(query)], vector, links)
        if found is None:
            return [], []
        scores = rank_records(found)
        order = [int(row) for row in np.lexsort((found.cards, -scores)) if np.isfinite(scores[row])]
        order = order[: max(12, self.request.budget_tokens // LEAST_LESSON)]
        cards = texts(reading.connection, reading.tenant, [int(found.cards[row]) for row in order])
        ranked = [
            (_snippet(cards[int(found.cards[row])], float(scores[row])))
            for row in order
            if int(found.cards[row]) in cards and cards[int(found.cards[row])].text
        ]
        displays = self._displays(ranked)
        drafts = synthesize.lessons_from(
            ranked, [snippet.weight for snippet in ranked], displays, delta=self.sharing.delta
        )
        front: list[Draft] = []
        if self.request.budget_tokens <= SMALL_BUDGET:
            draft = synthesize.query_facet(
                ranked, displays, min_contributors=self.sharing.min_contributors, delta=self.sharing.delta
            )
            front = [] if draft is None else [draft]
        return self._made(drafts, FacetKind.LESSON), self._made(front, FacetKind.FACET)

    def facets(self, read: Sequence[Snippet]) -> list[Made]:
        """What the curated owners have in common, as far as it may be published."""
        holders = self._holders(read)
        idf = self._idf(holders)
        displays = self._heads(holders, idf)
        drafts = synthesize.facets(
            read,
            displays,
            idf,
            min_contributors=self.sharing.min_contributors,
            delta=self.sharing.delta,
            max_facets=MAX_FACETS,
        )
        if self.request.query:
            # What one record alone says is already there as its lesson.
            drafts = [draft for draft in drafts if len(draft.contributors) > 1 and self._relevant(draft, displays)]
        free = [draft for draft in drafts if not self._distilled(draft)]
        return [*self._made(free, FacetKind.FACET), *self._published([d for d in drafts if self._distilled(d)])]

    def updates(self) -> list[Made]:
        """What was propagated to this entity and may still be shown."""
        reading = self.reading
        if self.opened.focus == NOBODY or reading.as_of is not None or self.request.query:
            return []
        items = derived.current(reading.connection, reading.tenant, self.opened.focus, FacetKind.UPDATE, reading.now)
        allowed = [
            item
            for item in items
            if all(reading.audience.level(principal) >= item.level for principal in item.principals)
        ]
        allowed.sort(key=lambda item: (-item.confidence, item.id))
        return [(self._show(item, item.confidence), None) for item in allowed]

    def _published(self, drafts: Sequence[Draft]) -> list[Made]:
        reading = self.reading
        epoch = epoch_of(reading.now, self.sharing.epoch_hours)
        before = derived.published(reading.connection, reading.tenant, self.opened.reader, [d.key for d in drafts])
        erased = derived.is_erased(reading.connection, reading.tenant, [item.id for item in before.values()])
        out: list[Made] = []
        for draft in drafts:
            old = before.get(draft.key)
            last = None if old is None else Published(old.principals, old.epoch, old.id in erased)
            behind: frozenset[int] = frozenset() if old is None else old.principals
            permitted = frozenset(one for one in behind if reading.audience.level(one) > Level.NONE)
            choice = decide(
                last,
                draft.contributors,
                epoch=epoch,
                minimum=self.sharing.min_contributors,
                permitted=permitted,
            )
            if choice is Decision.PUBLISH:
                out += self._made([draft], FacetKind.FACET, level=Level.FACETS, epoch=epoch)
            elif choice is Decision.KEEP and old is not None:
                out.append((self._show(old, draft.score), None))
        return out

    def _made(
        self, drafts: Sequence[Draft], kind: FacetKind, *, level: Level = Level.RECORDS, epoch: int = 0
    ) -> list[Made]:
        reading = self.reading
        out: list[Made] = []
        reader = self.request.scope.principal or self.request.entity
        for draft in view.filtered(self.tools, reading, reader, drafts):
            sources = [source for source, _, _ in draft.sources]
            id_ = item_id(self.salt, str(reader), kind, draft.key, draft.text, sources)
            item = Item(
                id=id_,
                owner=self.opened.reader,
                kind=kind,
                key=draft.key,
                text=draft.text,
                confidence=draft.confidence,
                level=level,
                links=draft.links,
                sources=draft.sources,
                made_by=f"rules {self.tools.scorer.hash[:12]}",
                epoch=epoch,
                at=reading.now,
            )
            out.append((view.facet(reading, draft, id_, kind), item))
        return out

    def _show(self, item: Item, score: float) -> Facet:
        draft = Draft(item.key, item.text, item.confidence, score, item.links, item.sources)
        return view.facet(self.reading, draft, item.id, item.kind)

    def _distilled(self, draft: Draft) -> bool:
        return any(self.reading.audience.level(owner) < Level.RECORDS for owner in draft.contributors)

    def _relevant(self, draft: Draft, displays: dict[int, str]) -> bool:
        wanted = set(terms(self.request.query or ""))
        said = " ".join([draft.text, *(displays.get(link, "") for link in draft.links)])
        return bool(wanted & set(terms(said)))

    def _displays(self, read: Sequence[Snippet]) -> dict[int, str]:
        index = self.reading.index
        return {
            link: index.displays[link] for snippet in read for link in snippet.links if self.reading.index.named(link)
        }

    def _heads(self, holders: dict[int, set[int]], idf: dict[int, float]) -> dict[int, str]:
        """Names of the links that may head a facet: most owners first, then the rarest.

        The others only cost time: there are `MAX_FACETS` places.
        """
        best = sorted(holders, key=lambda link: (-len(holders[link]) * idf[link], link))[:HEADS]
        return {link: self.reading.index.displays[link] for link in best}

    def _holders(self, read: Sequence[Snippet]) -> dict[int, set[int]]:
        """Who holds each link that still has a name."""
        holders: dict[int, set[int]] = {}
        for snippet in read:
            for link in snippet.links:
                holders.setdefault(link, set()).add(snippet.owner)
        return {link: owners for link, owners in holders.items() if self.reading.index.named(link)}

    def _idf(self, holders: dict[int, set[int]]) -> dict[int, float]:
        visible = self.hood.owners_visible
        out = {link: log1p(visible / len(owners)) for link, owners in holders.items()}
        own = zip(self.hood.own.ids.tolist(), self.hood.own_idf.tolist(), strict=True)
        out.update({link: idf for link, idf in own if link in out})
        return out


def _snippet(card: CardText, score: float) -> Snippet:
    return Snippet(card_id(card.id), card.owner, Level.RECORDS, score, card.at, card.text, card.links, card.outcome)


def _pack(made: Sequence[Made], budget: int) -> tuple[list[Made], int]:
    """Whole facets in order while they fit; a text is shown once."""
    tokens, seen = OVERHEAD_TOKENS, set[str]()
    out: list[Made] = []
    for facet, item in made:
        cost = estimate_tokens(line(facet)) + 1
        if facet.text in seen or tokens + cost > budget:
            continue
        seen.add(facet.text)
        tokens += cost
        out.append((facet, item))
    return out, tokens if out else 0


def _save(tools: Tools, tenant: str, reader: Entity, items: Sequence[Item], generation: int) -> None:
    """Store what was shown for the first time; a reader never seen before becomes an entity.

    Nothing is stored if something was erased since it was read.
    """
    with tools.store.database.write() as connection:
        if names.lock(connection, tenant) != generation:
            return
        if any(item.owner == NOBODY for item in items):
            id_ = names.resolve(connection, tenant, [reader])[reader]
            items = [replace(item, owner=id_) for item in items]
        derived.put(connection, tenant, items)
