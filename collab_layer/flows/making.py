"""Drafts to facets with ids: one snapshot, one reader, every kind of facet.

In:   an opened snapshot, what is asked, the neighbourhood it was read in.
Out:  `Made`: the facet as its reader sees it, and the item to store for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import chain
from math import log1p

from collab_layer.flows import view
from collab_layer.flows.found import foreign, found
from collab_layer.flows.made import Made, Run
from collab_layer.flows.tools import Tools
from collab_layer.governance.publish import Decision, Published, decide, epoch_of
from collab_layer.graph import derived, policy
from collab_layer.graph.derived import Item, item_id
from collab_layer.graph.policy import NOBODY
from collab_layer.graph.store import Opened
from collab_layer.stages import synthesize
from collab_layer.stages.fair import PART, turns
from collab_layer.stages.quarantine import speakable
from collab_layer.stages.tokens import terms
from collab_layer.types.entity import Entity
from collab_layer.types.facet import Facet, FacetKind
from collab_layer.types.graph import Draft, Neighborhood, Snippet, Vectors
from collab_layer.types.prompt import least_line
from collab_layer.types.scope import Level
from collab_layer.types.tokens import estimate_tokens

MAX_FACETS = 7
TRIED = 3
"""How many times as many facets are made where a query says which of them count."""
HEADS = 80
SMALL_BUDGET = 250
LEAST_LESSON = 20
"""Tokens of a short lesson's line; more lessons than that fill no budget are not made."""
LEAST_FACET = min(estimate_tokens(least_line(text, 2)) for text in synthesize.shortest()) + 1
"""Tokens that a facet of several owners takes at least, by `Made.cost`."""
PAST = "as of:"
"""Before the key of what is said of the past, which takes the place of nothing that is said now."""


class Maker:
    """Holds what every kind of facet needs.

    Args:
        tools: The layer's parts.
        opened: The snapshot.
        reader: Who is told, by name; it need not be an entity yet.
        query: What was asked, if anything.
        budget_tokens: Of the whole answer.
        hood: The neighbourhood of the focus.
    """

    def __init__(
        self, tools: Tools, opened: Opened, reader: Entity, query: str | None, budget_tokens: int, hood: Neighborhood
    ) -> None:
        self.tools, self.opened, self.hood = tools, opened, hood
        self.reader, self.query, self.budget_tokens = reader, query, budget_tokens
        self.reading = opened.reading
        state = opened.reading.index.state
        tenants = policy.parsed(state.sharing)
        self.sharing = tenants.model_copy(update={"min_contributors": opened.reading.minimum})
        self.salt = state.salt
        self._wanted = frozenset(terms(query or ""))
        self._rules = f"rules {tools.scorer_of(opened.reading).hash[:12]}"

    def found(self, asked: Vectors | None, links: Sequence[Entity]) -> list[Snippet]:
        """The records that answer the query, embedded as `asked`, best first; each weighs its score."""
        most = max(12, self.budget_tokens // LEAST_LESSON)
        return found(self.tools, self.opened, self.query or "", asked, links, most)

    def lessons(self, found: Sequence[Snippet]) -> Run:
        """Each record as a lesson; in front a facet over them where the budget is small."""
        displays = self.displays(found)
        scores = [snippet.weight for snippet in found]
        told = synthesize.lessons_from(found, scores, displays, delta=self.sharing.delta)
        front: Draft | None = None
        if self.budget_tokens <= SMALL_BUDGET:
            minimum, delta = self.sharing.min_contributors, self.sharing.delta
            front = synthesize.query_facet(found, displays, min_contributors=minimum, delta=delta)
        heads = [] if front is None else self.made([front], FacetKind.FACET)
        passed = view.filtered(self.tools, self.reading, self.reader, told.by_score)
        made = {draft.key: self._later(draft, FacetKind.LESSON) for draft in passed}
        in_order = (made[draft.key] for draft in told if draft.key in made)
        least = min((one.least for one in [*heads, *made.values()]), default=0)
        return Run(chain(heads, self._in_turn(in_order, list(made.values()))), least)

    def _in_turn(self, in_order: Iterable[Made], every: Sequence[Made]) -> Iterator[Made]:
        """No foreign principal takes more than its part of the budget while others have something to say."""
        owners = list({owner for one in every for owner in one.behind})
        party = dict(zip(owners, foreign(self.opened, owners), strict=True))
        behind = {id(one): {party[owner] for owner in one.behind} for one in every}
        voices = {one: next(iter(parties)) if len(parties) == 1 else None for one, parties in behind.items()}
        often = Counter(voices.values())
        drawn: list[Made] = []

        def lines() -> Iterator[tuple[int, int | None]]:
            for one in in_order:
                drawn.append(one)
                voice = voices[id(one)]
                # What somebody says once is within its part, whatever it takes.
                yield (one.cost - 1 if voice is not None and often[voice] > 1 else 0), voice

        return (drawn[place] for place in turns(lines(), PART * self.budget_tokens))

    def facets(self, read: Sequence[Snippet]) -> tuple[list[Made], list[Made]]:
        """What the curated owners have in common: said by those who may be quoted, and published of the others."""
        holders = self._holders(read)
        idf = self._idf(holders)
        displays = self._heads(holders, idf)
        minimum, delta = self.sharing.min_contributors, self.sharing.delta
        room = TRIED if self.query else 1
        drafts = synthesize.facets(
            read,
            displays,
            idf,
            min_contributors=minimum,
            delta=delta,
            max_facets=MAX_FACETS * room,
            budget_tokens=synthesize.BUDGET_TOKENS * room,
            several=bool(self.query),  # what one record alone says is already there as its lesson
        )
        if self.query:
            drafts = self._answering(drafts, displays)[:MAX_FACETS]
        distilled = [draft for draft in drafts if self._distilled(draft)]
        free = [draft for draft in drafts if draft not in distilled] if distilled else drafts
        asked = {draft.key for draft in distilled if self._asks_for(draft, displays)}
        return self.made(free, FacetKind.FACET), self._published(distilled, asked)

    def answering(self, read: Callable[[], Sequence[Snippet]]) -> Run:
        """The same for a question, read and made only where there is room for the shortest of them."""

        def made() -> Iterator[Made]:
            yield from chain.from_iterable(self.facets(read()))

        # What was published before, and what a filter rewrites, may be of any length.
        any_length = bool(self.tools.filters) or self.reading.distilled() > 0
        return Run(made(), 0 if any_length else LEAST_FACET)

    def updates(self) -> list[Made]:
        """What was propagated to this entity and may still be shown."""
        reading = self.reading
        if self.opened.focus == NOBODY or reading.as_of is not None or self.query:
            return []
        return [Made.ready(self.show(item, item.confidence)) for item in told(self.opened, self.opened.focus)]

    def made(
        self,
        drafts: Sequence[Draft],
        kind: FacetKind,
        *,
        level: Level = Level.RECORDS,
        epoch: int = 0,
        made_by: str | None = None,
    ) -> list[Made]:
        """Drafts that pass the share filters, each with its id; made by the rules if nothing else is said."""
        passed = view.filtered(self.tools, self.reading, self.reader, drafts)
        return [self._later(draft, kind, level, epoch, made_by) for draft in passed]

    def _later(
        self, draft: Draft, kind: FacetKind, level: Level = Level.RECORDS, epoch: int = 0, made_by: str | None = None
    ) -> Made:
        return Made(
            draft.text, draft.contributors, partial(self._make, draft, kind, level, epoch, made_by or self._rules)
        )

    def _make(self, draft: Draft, kind: FacetKind, level: Level, epoch: int, made_by: str) -> tuple[Facet, Item]:
        reading = self.reading
        sources = [source for source, _, _ in draft.sources]
        key = draft.key if reading.as_of is None else PAST + draft.key
        item = Item(
            id=item_id(self.salt, str(self.reader), kind, key, draft.text, sources),
            owner=self.opened.reader,
            kind=kind,
            key=key,
            text=draft.text,
            confidence=draft.confidence,
            level=level,
            links=draft.links,
            sources=draft.sources,
            made_by=made_by,
            epoch=epoch,
            at=reading.now,
        )
        return view.facet(reading, draft, item.id, kind, made_by), item

    def show(self, item: Item, score: float) -> Facet:
        """A stored item as its reader sees it."""
        draft = Draft(item.key, item.text, item.confidence, score, item.links, item.sources)
        return view.facet(self.reading, draft, item.id, item.kind, item.made_by)

    def displays(self, read: Sequence[Snippet]) -> dict[int, str]:
        """Display names of the links of some snippets."""
        index = self.reading.index
        links = (link for snippet in read for link in snippet.links if index.named(link))
        return {link: index.displays[link] for link in links if speakable(index.displays[link])}

    def _published(self, drafts: Sequence[Draft], asked: Set[str]) -> list[Made]:
        """Distilled facets as far as they may be told; their order and score say no more than their confidence.

        Those under the keys in `asked` come last: they name what the question itself said.
        """
        reading = self.reading
        epoch = epoch_of(reading.now, self.sharing.epoch_hours)
        keys = [key for draft in drafts for key in (draft.key, PAST + draft.key)]
        before = derived.published(reading.connection, reading.tenant, keys)
        ids = [item.id for items in before.values() for item in items]
        erased = derived.is_erased(reading.connection, reading.tenant, ids)
        out: list[tuple[bool, Made]] = []
        for draft in drafts:
            told = [*before[draft.key], *before[PAST + draft.key]]
            seen = {item.id: self._told(item, item.id in erased) for item in told}
            mine = next((item for item in before[draft.key] if item.owner == self.opened.reader), None)
            choice = self._choice(draft, mine, seen, epoch)
            if choice is Decision.PUBLISH:
                alone = replace(draft, score=draft.confidence)
                made = self.made([alone], FacetKind.FACET, level=Level.FACETS, epoch=epoch)
            elif choice is Decision.KEEP and mine is not None:
                made = [Made.ready(self.show(mine, mine.confidence))]
            else:
                made = self._of_others(draft, [item for item in before[draft.key] if item.id not in erased], epoch)
            out += [(draft.key in asked, one) for one in made]
        return [one for _, one in sorted(out, key=lambda of: (of[0], -of[1].facet.confidence, of[1].text))]

    def _choice(self, draft: Draft, mine: Item | None, told: Mapping[str, Published], epoch: int) -> Decision:
        """What was told of the past and of the present, to whomever, may not tell one owner by the other."""
        minimum, behind = self.sharing.min_contributors, self.reading.parties(draft.contributors)
        every = list(told.values())
        if mine is None or self.reading.as_of is not None:
            return decide(None, behind, epoch=epoch, minimum=minimum, permitted=frozenset(), told=every)
        closed = [one for one in mine.principals if self.reading.audience.level(one) == Level.NONE]
        permitted = told[mine.id].contributors - self.reading.parties(closed)
        return decide(told[mine.id], behind, epoch=epoch, minimum=minimum, permitted=permitted, told=every)

    def _of_others(self, draft: Draft, told: Sequence[Item], epoch: int) -> list[Made]:
        """What another reader was told of the same by nearly the same owners, all of whom this one may use too."""
        minimum, behind = self.sharing.min_contributors, self.reading.parties(draft.contributors)
        if self.reading.as_of is not None or len(behind) < minimum:
            return []
        for item in told:
            others = self.reading.parties(item.principals)
            near = 0 < len(others ^ behind) < minimum <= len(others)
            if near and item.level == Level.FACETS and permitted(self.opened, item.principals, Level.FACETS):
                same = Draft(item.key, item.text, item.confidence, item.confidence, item.links, item.sources)
                return self.made([same], FacetKind.FACET, level=Level.FACETS, epoch=epoch, made_by=item.made_by)
        return []

    def _told(self, item: Item, erased: bool) -> Published:
        return Published(self.reading.parties(item.principals), item.epoch, erased, item.gone, item.cut)

    def _distilled(self, draft: Draft) -> bool:
        return any(self.reading.audience.level(owner) < Level.RECORDS for owner in draft.contributors)

    def _answering(self, drafts: Sequence[Draft], displays: Mapping[int, str]) -> list[Draft]:
        """Facets that belong to the query, by their own words.

        Distilled ones name one thing each: where one of them names what was asked about, the others of
        this neighbourhood go with it, for that tells nothing that the question did not say. Which they
        are rests on what distilled facets name alone, never on who holds two things together.
        """
        wanted = self._wanted
        distilled = [draft for draft in drafts if self._distilled(draft)]
        free = [draft for draft in drafts if draft not in distilled] if distilled else drafts
        said = [
            draft
            for draft in free
            if not wanted.isdisjoint(terms(draft.text)) or not wanted.isdisjoint(_named(draft, displays))
        ]
        if all(wanted.isdisjoint(_named(draft, displays)) for draft in distilled):
            return said
        # What the question names already takes no place of the others.
        return [*said, *sorted(distilled, key=lambda draft: self._asks_for(draft, displays))]

    def _asks_for(self, draft: Draft, displays: Mapping[int, str]) -> bool:
        """Whether the query says every word that names what a draft is about."""
        return bool(self.query) and _named(draft, displays) <= self._wanted

    def _heads(self, holders: Mapping[int, set[int]], idf: Mapping[int, float]) -> dict[int, str]:
        """Names of the links that may head a facet: most owners first, then the rarest.

        The others only cost time: there are `MAX_FACETS` places.
        """
        best = sorted(holders, key=lambda link: (-len(holders[link]) * idf[link], link))[:HEADS]
        displays = self.reading.index.displays
        return {link: displays[link] for link in best if speakable(displays[link])}

    def _holders(self, read: Sequence[Snippet]) -> dict[int, set[int]]:
        """Who holds each link that still has a name."""
        holders: dict[int, set[int]] = {}
        for snippet in read:
            for link in snippet.links:
                holders.setdefault(link, set()).add(snippet.owner)
        return {link: owners for link, owners in holders.items() if self.reading.index.named(link)}

    def _idf(self, holders: Mapping[int, set[int]]) -> dict[int, float]:
        visible = self.hood.owners_visible
        out = {link: log1p(visible / len(owners)) for link, owners in holders.items()}
        own = zip(self.hood.own.ids.tolist(), self.hood.own_idf.tolist(), strict=True)
        out.update({link: idf for link, idf in own if link in out})
        return out


def _named(draft: Draft, displays: Mapping[int, str]) -> set[str]:
    """Terms of the names of the things that a draft is about."""
    return {term for link in draft.links for term in terms(displays.get(link, ""))}


def told(opened: Opened, entity: int) -> list[Item]:
    """Updates for an entity that the reader may still see whole, strongest first."""
    reading = opened.reading
    items = derived.current(reading.connection, reading.tenant, entity, FacetKind.UPDATE, reading.now)
    allowed = [item for item in items if permitted(opened, item.principals, item.level)]
    return sorted(allowed, key=lambda item: (-item.confidence, item.text, item.id))


def permitted(opened: Opened, principals: frozenset[int], level: Level) -> bool:
    """Whether the reader may read everybody behind something at that level."""
    return all(opened.reading.audience.level(principal) >= level for principal in principals)
