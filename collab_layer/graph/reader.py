"""What one reader may see around one entity, as columns.

In:   a `Reading`: one snapshot, one tenant, one audience, one moment.
Out:  `Neighborhood`, `Corpus`, `Snippet`s, all cut to the audience before
      anything is counted: an owner who shared nothing moves no number here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from sqlalchemy import Connection

from collab_layer.governance.grants import Audience
from collab_layer.graph.adjacency import Adjacency, Around, Kind, together, unpack
from collab_layer.graph.cards import CardText, card_id, texts
from collab_layer.graph.index import CardColumns, TenantIndex
from collab_layer.graph.postings import Holding
from collab_layer.types.graph import (
    Bools,
    Corpus,
    Edges,
    Floats,
    Ids,
    LaterView,
    Levels,
    Neighborhood,
    Rows,
    Selection,
    Snippet,
    Vectors,
    VectorView,
)
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

OWN_CAP = 50
HOLDERS_CAP = 500
RECORDS_PER_NEIGHBOR = 20
HOLDINGS_PER_NEIGHBOR = 40
TERM_HITS, VECTOR_HITS = 256, 64
PEERS, PEERS_BELOW = 8, 16
"""Owners found by memory vectors, and how many found by name make that needless."""
PEER_FLOOR = 0.15
"""Least cosine of two owners' mean memories, about the tenant's mean, to be peers."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One snapshot for one reader.

    `as_of` is None for the present; `now` is the moment read; `minimum` is the `min_contributors`
    of the tenant, or of a stricter team; `level_of` is what the audience may use of each entity,
    shape (e,).
    """

    connection: Connection
    tenant: str
    index: TenantIndex
    adjacency: Adjacency
    audience: Audience
    now: int
    as_of: int | None = None
    minimum: int = 1
    level_of: Levels = field(init=False)
    _read: dict[int, CardText] = field(default_factory=dict[int, CardText], init=False)
    _readable: dict[int, Bools] = field(default_factory=dict[int, Bools], init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "level_of", self.index.levels(self.audience))

    def counted(self, ids: Ids) -> int:
        """How many of these owners may be counted: those that share only facets not unless they are enough."""
        return self.counted_levels(self.level_of[ids], ids)

    def counted_levels(self, levels: Levels, ids: Ids | Rows) -> int:
        """The same, where their levels are known; all aliases of one principal are one."""
        if self.index.aliases:
            party = self.index.party(ids)
            quoted = set(party[levels >= Level.RECORDS].tolist())
            hidden = set(party[levels == Level.FACETS].tolist()) - quoted
            return len(quoted) + (len(hidden) if len(hidden) >= self.minimum else 0)
        return self._counted(levels)

    def _counted(self, levels: Levels, others: int = 0) -> int:
        """Of these levels, and so many others of the audience's."""
        default = self.audience.default
        distilled = int(np.count_nonzero(levels == Level.FACETS)) + others * (default == Level.FACETS)
        quoted = int(np.count_nonzero(levels >= Level.RECORDS)) + others * (default >= Level.RECORDS)
        return quoted + (distilled if distilled >= self.minimum else 0)

    def counted_runs(self, levels: Levels, ids: Ids | Rows, stop: Ids) -> Floats:
        """The same for several things at once, whose holders stand one after another, each up to its `stop`."""
        if self.index.aliases:
            runs = [slice(*run) for run in pairwise([0, *stop.tolist()])]
            return np.array([self.counted_levels(levels[run], ids[run]) for run in runs], np.float64)
        quoted = np.diff(stop, prepend=0) - _in_runs(levels < Level.RECORDS, stop)
        distilled = _in_runs(levels == Level.FACETS, stop)
        return quoted + np.where(distilled >= self.minimum, distilled, 0).astype(np.float64)

    def counted_each(self, ids: Ids, row: Ids, size: int) -> Floats:
        """The same for several things at once: `row` says whose holder each is, below `size`."""
        if self.index.aliases:
            return np.array([self.counted(ids[row == at]) for at in range(size)], np.float64)
        levels = self.level_of[ids]
        quoted = np.bincount(row[levels >= Level.RECORDS], minlength=size)
        distilled = np.bincount(row[levels == Level.FACETS], minlength=size)
        return quoted + np.where(distilled >= self.minimum, distilled, 0).astype(np.float64)

    def parties(self, owners: Iterable[int]) -> frozenset[int]:
        """The principals that owners stand for."""
        return frozenset(self.index.aliases.get(owner, owner) for owner in owners)

    def edges(self, nodes: Sequence[int]) -> dict[int, Around]:
        """Edges of some nodes at the moment read; not yet cut to the audience."""
        return self.adjacency.around(self.connection, self.tenant, nodes, as_of=self.as_of, now=self.now)

    def texts(self, ids: Sequence[int]) -> dict[int, CardText]:
        """Cards by id, each read once; not yet cut to the audience."""
        self._read.update(texts(self.connection, self.tenant, [id_ for id_ in ids if id_ not in self._read]))
        return {id_: self._read[id_] for id_ in ids if id_ in self._read}

    def readable(self, focus: int) -> Bools:
        """Records of others than the focus that the reader may quote and that hold at the moment read, shape (c,)."""
        if focus not in self._readable:
            cards = self.index.cards
            held = cards.worded & (self.level_of.take(cards.owner) >= Level.RECORDS)
            held[list(self.index.rows_of_owner(focus))] = False
            if cards.first_end <= self.now:
                held &= cards.valid_to > self.now
            self._readable[focus] = held
        return self._readable[focus]

    def degree(self, ids: Ids) -> Ids:
        """Distinct targets of each entity: as last counted in the present, counted anew in the past."""
        if self.as_of is None:
            return self.index.degree(ids)
        held = self.edges(ids.tolist())
        return np.array([len(held[id_].rows(Kind.INTERACTED, Kind.MENTIONS)) for id_ in ids.tolist()], np.int64)

    def _own_level(self) -> Ids:
        """Whoever's level is its own; all others have the audience's, so that they need not be looked at."""
        ids = np.array([*{*self.audience.named, self.audience.reader}], np.int64)
        return ids[(ids >= 0) & (ids < len(self.level_of))]

    def distilled(self) -> int:
        """How many share only facets."""
        looked_at = self.level_of if self.audience.default == Level.FACETS else self.level_of[self._own_level()]
        return int(np.count_nonzero(looked_at == Level.FACETS))

    def distils(self) -> bool:
        """Whether what is told counts owners that share only facets, so that no exact number may be told."""
        return self.distilled() >= self.minimum

    def memory_of(self, ids: Ids) -> VectorView:
        """The mean memory of each entity; of an owner only if it shares records: a likeness tells of its words."""
        view = self.index.centroids(ids)
        closed = self.index.is_owner(ids) & (self.level_of[ids] < Level.RECORDS)
        return VectorView(view.matrix, np.where(closed, np.int32(-1), view.row))

    def visible(self, ids: Ids) -> Bools:
        """Which entities the reader may use as owners."""
        return self.level_of[ids] > Level.NONE

    @property
    def horizon(self) -> int:
        """Nothing that happened later is read; in the present a store's clock may run ahead of ours."""
        return FOREVER if self.as_of is None else self.as_of

    def owners_visible(self) -> int:
        """How many owners may be counted, the reader included; those that nobody ever told of are not."""
        if self.audience.default == Level.NONE:
            named = np.array([owner for owner in self.audience.named if owner != self.audience.reader], np.int64)
            return 1 + self.counted(named[self.index.met(named)])
        met = self.index.owners_met()
        if self.index.aliases:
            return self.counted(np.flatnonzero(met)) or 1
        own = self._own_level()
        own = own[met[own]]
        return self._counted(self.level_of[own], int(np.count_nonzero(met)) - len(own)) or 1


def neighborhood(
    reading: Reading,
    focus: int,
    *,
    seeds: Sequence[int] = (),
    query_vector: Vectors | None = None,
    own_cap: int = OWN_CAP,
    holders_cap: int = HOLDERS_CAP,
) -> Neighborhood:
    """The pool around an entity: holders of its newest targets and of the seeds, its group, its peers."""
    mine = reading.edges([focus])[focus]
    every = mine.pick(Kind.INTERACTED, Kind.MENTIONS)
    own = _with_seeds(every.take(slice(own_cap)), seeds, reading.now)
    groups = mine.pick(Kind.MEMBER_OF).ids
    around = reading.edges([*own.ids.tolist(), *groups.tolist()])
    members = _members(reading, [around[group] for group in groups.tolist()], focus)
    held = holders(reading, [around[target] for target in own.ids.tolist()], focus, holders_cap, members)
    near = _vector_of(reading, focus)
    holding, row_of_pair = _distinct(held.ids)
    named = _union(holding, members) if len(members) else holding
    peers, likeness = _peers(reading, near if near is not None else query_vector, focus, named)
    things = own.ids[~reading.index.is_owner(own.ids) | reading.visible(own.ids)]
    things = things[things != focus]
    ids = _union(named, peers, things)
    is_owner = reading.index.is_owner(ids)
    level = np.where(is_owner, reading.level_of[ids], np.int8(Level.RECORDS)).astype(np.int8)
    if reading.index.aliases:
        shared = np.bincount(np.searchsorted(ids, held.ids), minlength=len(ids))
        level[_spoken_for(reading, ids, level, shared, focus)] = Level.NONE
    alone = is_owner & (level == Level.FACETS)
    if np.count_nonzero(alone) < reading.minimum:
        level[alone] = Level.NONE  # so few that share only facets would be told apart by any number
    pair_candidate = np.searchsorted(ids, holding).astype(np.int32)[row_of_pair]
    visible = reading.owners_visible()
    return Neighborhood(
        focus=focus,
        now=reading.now,
        own=own,
        own_topic=_topics(reading, own.ids),
        own_idf=np.log1p(visible / held.counted),
        own_degree=max(len(every), len(own)),
        ids=ids,
        is_owner=is_owner,
        level=level,
        degree=_degrees(reading, ids, pair_candidate, own, held.counted),
        last=_newest(ids, own, pair_candidate, held.last),
        pair_own=held.target,
        pair_candidate=pair_candidate,
        pair_weight=held.weight,
        pair_last=held.last,
        group=np.isin(ids, members),
        peer=_spread(ids, peers, likeness),
        vectors=LaterView(ids, reading.index.centroids),
        focus_vector=near,
        query_vector=query_vector,
        owners_visible=visible,
        tie=reading.index.tie(ids),
        own_tie=reading.index.tie(own.ids),
    )


def _spoken_for(reading: Reading, ids: Ids, level: Levels, shared: Ids, focus: int) -> Bools:
    """Owners whose principal speaks by another of its aliases: the one that permits most, then has most in common.

    One principal is one candidate, so that it can crowd out nobody by having many. What the reader's
    own principal shares only as facets is nothing that the reader could not tell apart.
    """
    party = reading.index.party(ids)
    order = np.lexsort((reading.index.tie(ids), -shared, -level))
    first: dict[int, int] = {}
    out = np.zeros(len(ids), np.bool_)
    own = reading.parties((focus, reading.audience.reader))
    for row in order[level[order] > Level.NONE].tolist():
        who = int(party[row])
        out[row] = first.setdefault(who, row) != row or (who in own and level[row] == Level.FACETS)
    return out & reading.index.is_owner(ids)


def snippets(reading: Reading, selection: Selection) -> list[Snippet]:
    """What the selected owners hold and noted, newest first within each."""
    owners = selection.ids[selection.is_owner]
    scores = selection.scores[selection.is_owner]
    if not len(owners):
        return []
    share = scores / scores.sum() if scores.sum() > 0 else scores
    levels = reading.level_of[owners]
    held = reading.edges(owners.tolist())
    records = _records_of(reading, owners)
    out: list[Snippet] = []
    for owner, weight, level in zip(owners.tolist(), share.tolist(), levels.tolist(), strict=True):
        kind, party = Level(level), reading.index.aliases.get(owner, 0)
        for card in records.get(owner, ()):
            text = card.text if kind >= Level.RECORDS else None
            outcome = card.outcome if kind >= Level.RECORDS else None
            out.append(Snippet(card_id(card.id), owner, kind, weight, card.at, text, card.links, outcome, party))
        holdings = unpack(held[owner].rows(Kind.INTERACTED)[:HOLDINGS_PER_NEIGHBOR])
        for thing, at in zip(holdings.ids.tolist(), holdings.last.tolist(), strict=True):
            out.append(Snippet(holding_id(owner, thing), owner, kind, weight, at, None, (thing,), party=party))
    return out


def holding_id(owner: int, thing: int) -> str:
    """The opaque id of "owner interacted with thing", whatever the single interactions were."""
    return f"h{owner:x}.{thing:x}"


def corpus(
    reading: Reading, focus: int, hashed: Sequence[int], asked: Vectors | None, links: Sequence[int] = ()
) -> Corpus | None:
    """Readable records that share a word with the query or lie near it, embedded as `asked`; None if there is none."""
    cards = reading.index.cards
    readable = reading.readable(focus)
    total = int(np.count_nonzero(readable))
    if total == 0:
        return None
    held = reading.index.holding(reading.connection, _distinct_terms(hashed))
    df = np.array([np.count_nonzero(readable.take(rows)) for rows, _ in held], np.float64)
    idf = np.repeat(np.log1p(total / np.maximum(df, 1)), np.array([len(rows) for rows, _ in held], np.int64))
    holding = np.concatenate([np.zeros(0, np.int32), *(rows for rows, _ in held)])
    weight = np.bincount(holding, idf, len(readable)).astype(np.float64, copy=False)
    weight[~readable] = 0.0
    rows = _of_many(reading, weight, heaviest(cards, weight, TERM_HITS))
    likeness = np.zeros(len(rows))
    if asked is not None:
        rows, likeness = reading.index.nearest(asked, readable, VECTOR_HITS, rows)
    if not len(rows):
        return None
    thread = cards.thread[rows]
    return Corpus(
        cards=cards.id[rows],
        owners=cards.owner[rows],
        tf=_counted(held, rows),
        length=cards.length[rows].astype(np.float64),
        df=df,
        total=total,
        mean_length=(cards.words - int(cards.length[cards.worded & ~readable].sum())) / total,
        similarity=likeness,
        link_cosine=_link_cosine(reading, cards.id[rows], links),
        thread=np.where(thread > 0, thread, -rows - 1),
        at=cards.at[rows],
    )


def _with_seeds(own: Edges, seeds: Sequence[int], now: int) -> Edges:
    fresh = np.array([seed for seed in dict.fromkeys(seeds) if seed not in set(own.ids.tolist())], np.int64)
    if not len(fresh):
        return own
    one = np.ones(len(fresh), np.int64)
    return Edges(
        np.concatenate([fresh, own.ids]),
        np.concatenate([one.astype(np.float64), own.weight]),
        np.concatenate([one, own.count]),
        np.concatenate([one * now, own.last]),
    )


@dataclass(frozen=True, slots=True)
class Holders:
    """Who holds some targets, p pairs of t targets.

    Attributes:
        target: Which of the targets is held, ascending, shape (p,).
        ids, weight, last: The holder and its edge, newest first within each target, shape (p,).
        counted: How many hold each target, whoever they are, at least 1, shape (t,).
    """

    target: Rows
    ids: Ids
    weight: Floats
    last: Ids
    counted: Floats


def holders(reading: Reading, targets: Sequence[Around], focus: int, cap: int, also: Ids) -> Holders:
    """The newest visible holders of each target but the focus, with all that each of them holds of the targets.

    A cap on pairs would tell that somebody who came early to a thing does not hold it: the more holders things
    have, the less would be known of those who share most.

    Args:
        reading: Whose.
        targets: What lies around each.
        focus: Left out, and counted.
        cap: Holders of one target that are looked for.
        also: Others whose pairs are wanted.
    """
    kinds = (Kind.HELD_BY, Kind.MENTIONED_BY)
    of_each = [target.ends(*kinds) for target in targets]
    size = np.array([len(ends) for ends in of_each], np.int64)
    ends, stop = np.concatenate([np.zeros(0, np.int32), *of_each]), np.cumsum(size)
    levels = reading.level_of.take(ends)
    itself = np.flatnonzero(ends == focus)
    levels[itself] = Level.NONE
    counted = reading.counted_runs(levels, ends, stop)
    counted[np.searchsorted(stop, itself, side="right")] += 1
    pool = np.zeros(len(reading.level_of), np.bool_)
    pool[ends[_first_of_each(levels > Level.NONE, size, stop, cap)]] = True
    pool[also] = True
    pairs = np.flatnonzero(pool.take(ends))
    read = together([target.rows(*kinds) for target in targets])
    of_target = np.diff(np.searchsorted(pairs, stop), prepend=0)
    return Holders(
        np.repeat(np.arange(len(targets), dtype=np.int32), of_target),
        ends[pairs].astype(np.int64),
        read["weight"][pairs],
        read["last"][pairs],
        np.maximum(counted, 1.0),
    )


def _first_of_each(which: Bools, size: Ids, stop: Ids, most: int) -> Ids:
    """Places of the first so many that count in each of several runs, which stand one after another."""
    # Among so many of a run are as many as are taken, so that of a hub few are looked at.
    reach = np.minimum(size, most + _in_runs(~which, stop))
    place = _runs(stop - size, reach)
    seen = np.flatnonzero(which[place])
    last = np.searchsorted(seen, np.cumsum(reach))
    first = np.concatenate([np.zeros(min(1, len(last)), np.int64), last[:-1]])
    return place[seen[_runs(first, np.minimum(last - first, most))]]


def _in_runs(which: Bools, stop: Ids) -> Ids:
    """How many of each run, which stand one after another, each up to its `stop`."""
    return np.diff(np.searchsorted(np.flatnonzero(which), stop), prepend=0)


def _runs(first: Ids, count: Ids) -> Ids:
    """So many whole numbers from each first one on, one run after another."""
    return np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)


def _union(*parts: Ids) -> Ids:
    """Different values of all of them, ascending; `numpy.unique` looks each up in a hash table."""
    values = np.sort(np.concatenate(parts))
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def _distinct(ids: Ids) -> tuple[Ids, Rows]:
    """Different values, ascending, and which of them each is; as `numpy.unique` does, at a fifth of its cost.

    Value and place are sorted as one number, which numpy does with vector instructions.
    """
    if not len(ids):
        return ids, np.zeros(0, np.int32)
    keys = (ids << 32) | np.arange(len(ids))
    keys.sort()
    ordered = keys >> 32
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    row = np.empty(len(ids), np.int32)
    row[keys & 0xFFFFFFFF] = np.cumsum(first) - 1
    return ordered[first], row


def _members(reading: Reading, groups: Sequence[Around], focus: int) -> Ids:
    found = [group.pick(Kind.HAS_MEMBER).ids for group in groups]
    ids = np.unique(np.concatenate([*found, np.zeros(0, np.int64)]))
    return ids[reading.visible(ids) & (ids != focus)]


def _peers(reading: Reading, vector: Vectors | None, focus: int, named: Ids) -> tuple[Ids, Floats]:
    """Visible owners whose mean memory lies near, looked for only where names find too few."""
    none = np.zeros(0, np.int64), np.zeros(0)
    if vector is None or len(named) >= PEERS_BELOW:
        return none
    owners = reading.index.owners()
    owners = owners[reading.visible(owners) & (owners != focus)]
    owners = owners[~np.isin(owners, named)]
    at, likeness = reading.index.nearest_means(owners, vector, PEERS, PEER_FLOOR)
    owners = owners[at]
    best = np.lexsort((reading.index.tie(owners), -likeness))[:PEERS]
    best = best[likeness[best] >= PEER_FLOOR]
    order = best[np.argsort(owners[best])]
    return owners[order], likeness[order]


def _topics(reading: Reading, ids: Ids) -> Bools:
    names = reading.index.names
    return np.array([names[int(id_)].startswith("topic:") for id_ in ids.tolist()], np.bool_)


def _degrees(reading: Reading, ids: Ids, pair_candidate: Rows, own: Edges, holders_of: Floats) -> Ids:
    shared = np.bincount(pair_candidate, minlength=len(ids)) if len(ids) else np.zeros(0, np.int64)
    degree = shared.copy()
    owners = reading.index.is_owner(ids)
    degree[owners] = np.maximum(reading.degree(ids[owners]), shared[owners])
    thing = np.searchsorted(ids, own.ids)
    inside = (thing < len(ids)) & (ids[np.minimum(thing, len(ids) - 1)] == own.ids) if len(ids) else np.zeros(0, bool)
    if len(ids):
        only_things = inside & ~reading.index.is_owner(own.ids)
        degree[thing[only_things]] = np.maximum(holders_of[only_things], 1)
    return np.maximum(degree, 1).astype(np.int64)


def _newest(ids: Ids, own: Edges, pair_candidate: Rows, pair_last: Ids) -> Ids:
    last = np.zeros(len(ids), np.int64)
    np.maximum.at(last, pair_candidate, pair_last)
    at = np.searchsorted(ids, own.ids)
    inside = np.zeros(len(own), bool)
    inside[at < len(ids)] = ids[at[at < len(ids)]] == own.ids[at < len(ids)]
    np.maximum.at(last, at[inside], own.last[inside])
    return last


def _spread(ids: Ids, at: Ids, values: Floats) -> Floats:
    out = np.zeros(len(ids))
    out[np.searchsorted(ids, at)] = values
    return out


def join(parts: Sequence[Edges]) -> Edges:
    """All of them in one, in the order given."""
    if not parts:
        return Edges.empty()
    return Edges(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.last for part in parts]),
    )


def _vector_of(reading: Reading, focus: int) -> Vectors | None:
    if focus < 0:
        return None
    view = reading.index.centroids(np.array([focus]))
    return view.matrix[view.row[0]] if view.row[0] >= 0 else None


def _records_of(reading: Reading, owners: Ids) -> dict[int, list[CardText]]:
    cards = reading.index.cards
    chosen: dict[int, list[int]] = {}
    for owner in owners.tolist():
        rows = np.array(sorted(reading.index.rows_of_owner(owner)), np.int64)
        rows = rows[cards.alive[rows] & (cards.valid_to[rows] > reading.now)]
        newest = rows[np.argsort(-cards.at[rows], kind="stable")][:RECORDS_PER_NEIGHBOR]
        chosen[owner] = cards.id[newest].tolist()
    found = reading.texts([card for mine in chosen.values() for card in mine])
    return {owner: [found[card] for card in mine if card in found] for owner, mine in chosen.items()}


def _distinct_terms(hashed: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(hashed))


def _counted(held: Sequence[Holding], rows: Ids) -> Floats:
    """How often each of some rows holds each term."""
    out, wanted = np.zeros((len(rows), len(held))), rows.astype(np.int32)
    for column, (found, often) in zip(out.T, held, strict=True):
        if len(found):
            at = found.searchsorted(wanted)
            column[:] = often.take(at, mode="clip") * (found.take(at, mode="clip") == wanted)
    return out


def heaviest(cards: CardColumns, weight: Floats, count: int) -> Ids:
    """The rows of most weight above 0, ascending; of equal ones the newest, so that every machine takes the same."""
    positive = np.flatnonzero(weight > 0)
    if len(positive) <= count:
        return positive
    given = weight[positive]
    least = np.partition(given, len(given) - count)[len(given) - count]
    sure, even = positive[given > least], positive[given == least]
    return np.sort(np.concatenate([sure, _heaviest_first(cards, weight, even)[: count - len(sure)]]))


def _heaviest_first(cards: CardColumns, weight: Floats, rows: Ids) -> Ids:
    return rows[np.lexsort((-cards.id[rows], -cards.at[rows], -weight[rows]))]


def _of_many(reading: Reading, weight: Floats, best: Ids) -> Ids:
    """The best rows; where most of them are one principal's, a quarter of them is, as far as others have any."""
    cards = reading.index.cards
    told = np.sort(reading.index.party(cards.owner[best]))
    if len(best) < TERM_HITS or not (told[TERM_HITS // 2 :] == told[: -(TERM_HITS // 2)]).any():
        return best
    every = _heaviest_first(cards, weight, np.flatnonzero(weight > 0))
    voices = reading.index.party(cards.owner[every])
    by_voice = np.argsort(voices, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(voices[by_voice]) != 0]))
    place = np.empty(len(every), np.int64)
    place[by_voice] = np.arange(len(every)) - np.repeat(starts, np.diff([*starts.tolist(), len(every)]))
    beyond = place >= TERM_HITS // 4
    return np.sort(every[np.argsort(beyond, kind="stable")][:TERM_HITS])


def _link_cosine(reading: Reading, cards: Ids, links: Sequence[int]) -> Floats:
    out = np.zeros(len(cards))
    if not links:
        return out
    found = reading.texts(cards.tolist())
    wanted = set(links)
    held: dict[int, int] = {}
    for card in found.values():
        for link in set(card.links):
            held[link] = held.get(link, 0) + 1
    idf = {link: float(np.log1p(len(cards) / count)) for link, count in held.items()}
    norm = sum(idf.get(link, 0.0) ** 2 for link in wanted) ** 0.5
    for row, card in enumerate(cards.tolist()):
        mine: set[int] = set(found[card].links) if card in found else set()
        top = sum(idf[link] ** 2 for link in mine & wanted)
        bottom = norm * sum(idf[link] ** 2 for link in mine) ** 0.5
        out[row] = top / bottom if bottom > 0 else 0.0
    return out
