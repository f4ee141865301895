"""What leaves the layer: drafts and selections as the reader may see them.

Owners that share `records` appear by name and in their own words. Owners that share only `facets` appear in
groups of at least `min_contributors`: as numbers, rounded, and under pseudonyms that mean the same in one item
alone. Where such owners count, no other number is exact either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

from collab_layer.flows.tools import Tools
from collab_layer.graph.cards import CardText
from collab_layer.graph.reader import Reading
from collab_layer.plugins.specs import Leaving
from collab_layer.stages.quarantine import speakable
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.facet import Evidence, Facet, FacetKind, Neighbor
from collab_layer.types.graph import Draft, Selection
from collab_layer.types.scope import Level
from collab_layer.types.time import moment

EVIDENCE_SHOWN = 5


def entity_of(reading: Reading, id_: int) -> Entity:
    """The entity of a dense id."""
    return _entity(reading.index.names[id_])


@lru_cache(maxsize=1 << 14)
def _entity(name: str) -> Entity:
    return Entity.parse(name)


def pseudonym(salt: str, reader: int, item: str, owner: int) -> Entity:
    """The same owner looks the same to one reader in one item, and different to another and in another.

    Else whoever knows which items an owner is not behind would find its pseudonym, and then all it is behind.
    """
    digest = hashlib.blake2b(f"{reader}:{item}:{owner}".encode(), key=salt.encode()[:64], digest_size=5).hexdigest()
    return Entity("peer", digest)


def neighbors(reading: Reading, selection: Selection) -> tuple[Neighbor, ...]:
    """The curated things, and the owners that share records; whoever shares only facets is no single neighbour."""
    crowd = reading.distils()
    out: list[Neighbor] = []
    for row, id_ in enumerate(selection.ids.tolist()):
        if not selection.is_owner[row] or selection.level[row] >= Level.RECORDS:
            parts = {name: float(column[row]) for name, column in selection.contributions.items() if column[row]}
            shared = tuple(entity_of(reading, target) for target in selection.shared[row].tolist())
            score = float(selection.scores[row])
            if crowd:  # how rare a thing is counts whoever shares only facets
                score, parts = coarse(score), {}
            out.append(Neighbor(entity=entity_of(reading, id_), score=score, contributions=parts, shared=shared))
    return tuple(out)


def coarse(value: float) -> float:
    """A number in steps of 0.1, in which one owner among many is not seen; never -0."""
    return round(value, 1) + 0.0


def evidence(
    reading: Reading, sources: Sequence[tuple[str, int, float]], quotes: Mapping[str, str], at: Mapping[str, int]
) -> tuple[Evidence, ...]:
    """The strongest sources, quoted where their owner permits it; `with_refs` adds where they lie."""
    out: list[Evidence] = []
    records = [one for one in sources if not one[0].startswith("d")]  # an item's parts are no evidence of their own
    for source, owner, weight in _crowded(reading, records)[:EVIDENCE_SHOWN]:
        when = moment(at[source]) if source in at else None
        if reading.audience.level(owner) >= Level.RECORDS:
            name = entity_of(reading, owner)
            out.append(
                Evidence(
                    source=source,
                    owner=name if speakable(name.id) else None,
                    quote=quotes.get(source),
                    at=when,
                    weight=weight,
                )
            )
        else:
            out.append(Evidence(source="withheld", weight=round(weight, 1)))
    return tuple(out)


def _crowded(reading: Reading, sources: Sequence[tuple[str, int, float]]) -> list[tuple[str, int, float]]:
    """Sources with those of an owner that shares only facets as one: how many it has is its own."""
    whole: dict[int, float] = {}
    for _, owner, weight in sources:
        whole[owner] = whole.get(owner, 0.0) + weight
    seen: set[int] = set()
    out: list[tuple[str, int, float]] = []
    for source, owner, weight in sources:
        if reading.audience.level(owner) >= Level.RECORDS:
            out.append((source, owner, weight))
        elif owner not in seen:
            seen.add(owner)
            out.append((source, owner, whole[owner]))
    return out


def _named(reading: Reading, links: Sequence[int]) -> tuple[Entity, ...]:
    """Links that still have a name, and one that says no more than a name."""
    found = (entity_of(reading, link) for link in links if reading.index.named(link))
    return tuple(one for one in found if speakable(one.id))


def facet(reading: Reading, draft: Draft, id_: str, kind: FacetKind, made_by: str) -> Facet:
    """A draft as its reader sees it."""
    return Facet(
        id=id_,
        kind=kind,
        text=draft.text,
        confidence=draft.confidence,
        contributors=len(reading.parties(draft.contributors)),
        evidence=evidence(reading, draft.sources, draft.quotes, draft.at),
        links=_named(reading, draft.links),
        score=draft.score,
        made_by=made_by,
    )


def with_refs(reading: Reading, facets: Sequence[Facet]) -> list[Facet]:
    """The same facets; evidence by name also says in which store its record lies."""
    wanted = [item.source for one in facets for item in one.evidence if item.owner is not None]
    refs = {
        source: MemoryRef(backend=card.backend, id=card.native_id, version=card.version)
        for source, card in cards_of(reading, wanted).items()
        if card.backend
    }
    if not refs:
        return list(facets)
    out: list[Facet] = []
    for one in facets:
        shown = tuple(item.model_copy(update={"ref": refs.get(item.source)}) for item in one.evidence)
        out.append(one.model_copy(update={"evidence": shown}))
    return out


def filtered(tools: Tools, reading: Reading, reader: Entity, drafts: Sequence[Draft]) -> list[Draft]:
    """Drafts after the share filters: a vetoed quote goes, a vetoed sentence takes its draft along."""
    if not tools.filters:
        return list(drafts)
    asked: list[Leaving] = []
    for draft in drafts:
        strongest = entity_of(reading, draft.sources[0][1])
        asked.append(Leaving(strongest, reader, draft.text))
        owners = {source: owner for source, owner, _ in draft.sources}
        asked += [Leaving(entity_of(reading, owners[source]), reader, text) for source, text in draft.quotes.items()]
    answers = iter(tools.leaving(asked))
    out: list[Draft] = []
    for draft in drafts:
        text = next(answers)
        quotes = {source: quote for source in draft.quotes if (quote := next(answers)) is not None}
        if text is not None:
            out.append(
                Draft(draft.key, text, draft.confidence, draft.score, draft.links, draft.sources, quotes, draft.at)
            )
    return out


def cards_of(reading: Reading, sources: Sequence[str]) -> dict[str, CardText]:
    """Those of the sources that are cards."""
    numbers = {int(source[1:], 16): source for source in sources if source.startswith("c")}
    found = reading.texts(list(numbers))
    return {numbers[number]: card for number, card in found.items()}
