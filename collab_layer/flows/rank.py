"""One entity and some candidates to a ranking, every reason tied to evidence.

load:   one snapshot, cut to the reader's grants; whether own memory is to rank alone (`served`);
stages: curate, rank; then the reasoning model, where there is one (`reason`);
save:   what was carried and offered, in the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from collab_layer.errors import InputError
from collab_layer.flows import gate, served, view
from collab_layer.flows.beside import beside
from collab_layer.flows.cache import Cache
from collab_layer.flows.context import NEIGHBORS, permit, query_vector
from collab_layer.flows.reason import reason
from collab_layer.flows.served import Way
from collab_layer.flows.tools import Tools
from collab_layer.graph import names
from collab_layer.graph.cards import card_id, texts
from collab_layer.graph.policy import NOBODY
from collab_layer.graph.reader import Reading, holding_id, neighborhood
from collab_layer.graph.wanted import wanted as read_wanted
from collab_layer.plugins.specs import Leaving
from collab_layer.stages import rank as stage
from collab_layer.stages.curate import curate
from collab_layer.stages.lessons import lesson
from collab_layer.types.entity import Entity
from collab_layer.types.facet import Evidence
from collab_layer.types.graph import Candidates, Floats, Ids, Neighborhood, Selection, Vectors
from collab_layer.types.ranking import Ranked, Ranking
from collab_layer.types.scope import Level, Scope

MAX_CANDIDATES = 2_000


@dataclass(frozen=True, slots=True)
class _Made:
    """A ranking by the rules.

    Attributes:
        generation: The tenant's, when it was read.
        way: How it was made.
        other: Each candidate's place in the other arm.
    """

    ranking: Ranking
    generation: int
    way: Way
    other: Mapping[Entity, int]


async def rank(
    tools: Tools, cache: Cache, scope: Scope, entity: Entity, wanted: Sequence[Entity], instruction: str | None
) -> Ranking:
    """Order the candidates for the entity; each appears once, unknown ones too.

    Raises:
        InputError: No candidate, or more than 2,000.
    """
    ordered = tuple(dict.fromkeys(wanted))
    if not ordered:
        raise InputError("name at least one candidate to rank")
    if len(ordered) > MAX_CANDIDATES:
        raise InputError(f"{len(ordered)} candidates, at most {MAX_CANDIDATES} can be ranked at once")
    async with tools.standing.watching(scope.tenant, tools.stores_of(scope.tenant)):
        vector = await query_vector(tools, instruction)
        made = await tools.in_thread(_rank, tools, scope, entity, ordered, vector, instruction)
        ranking = made.ranking
        if "reasoning" in tools.models:
            ranking = await reason(tools, cache, scope, ranking, instruction)
    carried = [id_ for item in ranking.items for id_ in (*item.cites, *(one.source for one in item.evidence))]
    other = made.other if ranking.made_by == made.ranking.made_by else None
    offer = made.way.offer(ranking.gate.version if ranking.gate else "", ranking.entities, other)
    await tools.handed(scope, entity, "rank", carried, made.generation, offer)
    down = [one for one in tools.standing.sentences(scope.tenant) if one not in ranking.degraded]
    return ranking.model_copy(update={"degraded": (*ranking.degraded, *down)}) if down else ranking


def _rank(
    tools: Tools, scope: Scope, entity: Entity, wanted: tuple[Entity, ...], raw: Vectors | None, instruction: str | None
) -> _Made:
    """The ranking by the rules, in the arm that the request is drawn for."""
    now = tools.now()
    with tools.store.reading(scope, entity, now) as opened:
        permit(opened, scope, entity)
        reading = opened.reading
        found = names.find(reading.connection, reading.tenant, (str(one) for one in wanted))
        known = [one for one in wanted if str(one) in found]
        ids = np.array([found[str(one)] for one in known], np.int64)
        vector = None if raw is None else reading.index.centred(raw[None, :])[0]
        hood = neighborhood(reading, opened.focus, query_vector=vector)
        chosen = curate(hood, tools.scorer_of(reading), k=NEIGHBORS, min_things=0, kinds=("owner",))
        laid = _laid(tools, reading, opened.focus, ids, hood, chosen)
        # What only others hold is to this reader as unknown as what nobody holds.
        met = (laid.popularity > 0) | np.isin(ids, laid.own.ids) | (laid.candidate_vectors.row >= 0)
        known = [one for one, seen in zip(known, met.tolist(), strict=True) if seen]
        laid = laid if met.all() else _laid(tools, reading, opened.focus, ids[met], hood, chosen)
        columns = stage.features(laid, min_contributors=reading.minimum)
        if vector is not None:
            columns["instruction"] = laid.candidate_vectors.dot(vector)
        used = gate.load(reading.connection, reading.tenant)
        arm = served.PLAIN
        if scope.as_of is None and opened.focus != NOBODY and reading.index.is_owner(np.array([opened.focus]))[0]:
            asked = "\0".join([instruction or "", *sorted(map(str, wanted))])
            arm = served.way(tools, reading.connection, reading.tenant, (opened.focus, entity), asked, used)
        mine = gate.for_all(used).at(len(laid.own))
        alone = {name: weight for name, weight in mine.items() if name in stage.OWN}
        orders = [stage.rank(columns, {**weights, "instruction": 1.0}) for weights in (mine, alone)]
        shown, other = reversed(orders) if arm.alone else orders
        if arm.alone:
            laid, columns = _alone(laid), {n: c for n, c in columns.items() if n not in stage.SHARED}
        items = _items(tools, reading, scope.principal or entity, known, laid, columns, shown)
    floor = min((item.score for item in items), default=0.0) - 1.0
    nothing = stage.rationale(dict.fromkeys(columns, 0.0), holders=0)
    by_entity = {item.entity: item for item in items}
    ranking = Ranking(
        entity=entity,
        items=tuple(
            by_entity.get(one) or Ranked(entity=one, score=floor, rationale=nothing)
            for one in _ordered(wanted, known, shown)
        ),
        weights=alone if arm.alone else mine,
        holds=len(laid.own),
        gate=used,
        arm=arm.arm,
        as_of=scope.as_of,
    )
    places = {one: at for at, one in enumerate(_ordered(wanted, known, other))}
    return _Made(ranking, reading.index.generation, arm, places)


def _ordered(wanted: Sequence[Entity], known: Sequence[Entity], scores: Floats) -> list[Entity]:
    """Best first; those of the same score as they were given, unknown ones last."""
    score = dict(zip(known, scores.tolist(), strict=True))
    return sorted(wanted, key=lambda one: -score.get(one, -np.inf))


def _laid(tools: Tools, reading: Reading, focus: int, ids: Ids, hood: Neighborhood, chosen: Selection) -> Candidates:
    """What ranking looks at, with the edges between things."""
    laid = beside(read_wanted(reading, focus, ids), hood, chosen)
    return replace(laid, edges=tools.store.related.into(reading, laid.ids, laid.own.ids))


def _alone(laid: Candidates) -> Candidates:
    """The same without any neighbour."""
    none = laid.hold_neighbor[:0]
    return replace(
        laid,
        neighbors=laid.neighbors[:0],
        neighbor_weight=laid.neighbor_weight[:0],
        neighbor_level=laid.neighbor_level[:0],
        hold_neighbor=none,
        hold_candidate=none,
        hold_weight=laid.hold_weight[:0],
    )


def _items(
    tools: Tools,
    reading: Reading,
    reader: Entity,
    known: Sequence[Entity],
    laid: Candidates,
    columns: Mapping[str, Floats],
    scores: Floats,
) -> list[Ranked]:
    quotes = _quotes(tools, reading, laid, reader)
    holders: dict[int, list[tuple[int, float]]] = {}
    for neighbor, candidate in zip(laid.hold_neighbor.tolist(), laid.hold_candidate.tolist(), strict=True):
        holders.setdefault(candidate, []).append((neighbor, float(laid.neighbor_weight[neighbor])))
    crowd = reading.distils()
    told, hidden = (view.coarse, stage.SHARED) if crowd else (float, ())
    out: list[Ranked] = []
    for row, entity in enumerate(known):
        mine = sorted(holders.get(row, []), key=lambda pair: (-pair[1], pair[0]))
        shown = [pair for pair in mine if laid.neighbor_level[pair[0]] >= Level.RECORDS]
        strongest = [(who, told(weight)) for who, weight in shown[: view.EVIDENCE_SHOWN]]
        evidence = tuple(_evidence(reading, laid, row, pair, quotes) for pair in strongest)
        features = {name: float(column[row]) for name, column in columns.items()}
        out.append(
            Ranked(
                entity=entity,
                score=told(float(scores[row])),
                features={name: value for name, value in features.items() if name not in hidden},
                rationale=stage.rationale(features, holders=len(shown)),
                evidence=evidence,
            )
        )
    return out


def _evidence(
    reading: Reading,
    laid: Candidates,
    row: int,
    pair: tuple[int, float],
    quotes: Mapping[tuple[int, int], tuple[str, str]],
) -> Evidence:
    owner, thing = int(laid.neighbors[pair[0]]), int(laid.ids[row])
    source, quote = quotes.get((owner, thing), (holding_id(owner, thing), None))
    return Evidence(source=source, owner=view.entity_of(reading, owner), quote=quote, weight=min(1.0, pair[1]))


def _quotes(tools: Tools, reading: Reading, laid: Candidates, reader: Entity) -> dict[tuple[int, int], tuple[str, str]]:
    """What the neighbours that share records wrote about a candidate: (owner, thing) -> (source, words)."""
    allowed = laid.neighbors[laid.neighbor_level >= Level.RECORDS]
    cards = reading.index.cards
    rows = np.flatnonzero(
        cards.alive
        & (cards.length > 0)
        & (cards.valid_to > reading.now)
        & np.isin(cards.owner, allowed)
        & np.isin(cards.thread, laid.ids)
    )
    rows = rows[np.argsort(-cards.at[rows], kind="stable")][:200][::-1]  # of several the newest is quoted
    found = texts(reading.connection, reading.tenant, cards.id[rows].tolist())
    threads = dict(zip(cards.id[rows].tolist(), cards.thread[rows].tolist(), strict=True))
    cited = [found[id_] for id_ in threads if id_ in found and found[id_].text]
    said = {card.id: lesson(card.text or "", outcome=card.outcome) for card in cited}
    leaving = [Leaving(view.entity_of(reading, found[id_].owner), reader, text) for id_, text in said.items()]
    kept = zip(said, tools.leaving(leaving), strict=True)
    return {(found[id_].owner, threads[id_]): (card_id(id_), text) for id_, text in kept if text is not None}
