"""Boil the neighbours' records down to a few statements, without a model.

In:   `Snippet`s the reader may use, display names and idf of their links.
Out:  `Draft`s: facets (what several have in common), lessons (one record in short), one facet
      over the best records of a query; each with all its sources.
Pure: no clock, no randomness; the order of the snippets does not count, except where it is a rank.

Words come from RECORDS-level snippets only. Of FACETS-level owners only counts and names of links
leave, and a name only where `min_contributors` owners hold the link. How sure a facet is, and that
no owner moves it by more than delta, is in `stages.support`. Hold back snippets and names that
`stages.quarantine` objects to before they come here.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from math import exp, isfinite
from operator import itemgetter
from typing import NamedTuple

from collab_layer.stages.lessons import MAX_TOKENS, NOTE_TOKENS, lesson, mostly_cyrillic, note, shorten
from collab_layer.stages.repeats import repeats_last
from collab_layer.stages.support import Pool, Support, pool, support
from collab_layer.stages.tokens import lower, normal, terms
from collab_layer.types.graph import Draft, Snippet
from collab_layer.types.scope import Level
from collab_layer.types.tokens import estimate_tokens

MIN_CONTRIBUTORS = 3
DELTA = 0.25
MAX_FACETS = 7
BUDGET_TOKENS = 400
LINE_TOKENS = 24
"""Tokens of a line beside its text and quotes: id, contributors, support, names."""
ALIKE = 0.6
"""Jaccard of owners, or of records, from which two links belong to one facet."""
MAX_LINKS = 8
QUERY_KEY = "query"
QUERY_RECORDS = 12
QUERY_LINKS = 6
_JOINTS = re.compile(r"[-_.:]+")
_BEFORE_ENDING = re.compile(r"[ -~]*[ -`{-~]")
_NAMES = 3
_NAME_TOKENS = 15
_QUOTE_TOKENS = 30
_TRIED = 20
_RANK = itemgetter(0, 1, 2)


class _Anchor(NamedTuple):
    """A link that may head a facet; its owners are bits, since every heading link is compared with all others."""

    alone: bool
    below: float
    key: str
    link: int
    name: str
    owners: int
    records: Set[str]
    bare: bool
    backed: Support
    score: float


def facets(
    snippets: Sequence[Snippet],
    names: Mapping[int, str],
    idf: Mapping[int, float],
    *,
    min_contributors: int = MIN_CONTRIBUTORS,
    delta: float = DELTA,
    max_facets: int = MAX_FACETS,
    budget_tokens: int = BUDGET_TOKENS,
    several: bool = False,
) -> list[Draft]:
    """Cluster snippets by the links they share; the best supported first.

    The link with the highest sum of share * idf heads a facet, those of several owners before
    those of one; links held by nearly the same owners or records, that it may name, join it and head
    none. A distilled facet is of one link: what was told of a link before decides whether it may be
    told again. The confidence is that of the heading link; its name is the key. A facet over the
    budget is passed over.

    One owner moves no facet's confidence by more than delta; that of a facet shown only with or only
    without it counts as 0 where it is not. Beside that, an owner may decide which links join which
    facet, and so what finds room among `max_facets` and the tokens.

    Args:
        snippets: What the neighbours hold, weights >= 0.
        names: Display names of links; a link without one is never shown.
        idf: Weight of each link, >= 0; 1 where it is missing.
        min_contributors: Distinct owners behind a facet that counts FACETS-level owners.
        delta: The most one owner moves a confidence, in (0, 1].
        max_facets: The most returned.
        budget_tokens: For all lines, by `cost`.
        several: Leave out what rests on one owner alone.

    Raises:
        ValueError: `delta` or `min_contributors` is out of range.
    """
    held = pool(snippets, min_contributors=min_contributors, delta=delta)
    anchors = _anchors(held, names, idf)
    everyone = _quotable(snippets)
    likeness = _Likeness(anchors)
    taken: set[int] = set()
    drafts: list[Draft] = []
    for tried, anchor in enumerate(a for a in anchors if a.link not in taken):
        if len(drafts) >= max_facets or tried >= 2 * max_facets or budget_tokens < LINE_TOKENS:
            break
        if several and anchor.alone:
            break  # so are all that follow
        alike = [] if _distilled(held, anchor) else [a for a in likeness.to(anchor) if a.link not in taken]
        group = [anchor, *_joining(held, anchor, alike)]
        taken.update(a.link for a in group)
        draft = _facet(held, group[:MAX_LINKS], everyone)
        if (tokens := cost(draft)) <= budget_tokens:
            budget_tokens -= tokens
            drafts.append(draft)
    return drafts


def cost(draft: Draft) -> int:
    """Tokens of a draft's line in a prompt, estimated from above: its text, its quotes and the frame."""
    return LINE_TOKENS + estimate_tokens(draft.text) + sum(map(estimate_tokens, draft.quotes.values()))


def _quotable(snippets: Iterable[Snippet]) -> int:
    """Neighbours that may be named; counting the others would tell when one of them came or went."""
    return len({s.voice for s in snippets if s.level >= Level.RECORDS})


def _anchors(held: Pool, names: Mapping[int, str], idf: Mapping[int, float]) -> list[_Anchor]:
    """Links that may be shown, several owners before one, then by support, then by name and id."""
    called = {link: _called(names[link]) for link in sorted(names)}
    first: dict[str, int] = {}
    for link, (whole, _) in called.items():
        first.setdefault(whole, link)
    found: list[_Anchor] = []
    bits = {voice: 1 << place for place, voice in enumerate(held.share)}
    backing: dict[int, Support | None] = {}
    for link in held.by_link.keys() & called.keys():
        snippets = held.by_link[link]
        owners, bare, records = 0, True, set[str]()
        for s in snippets:
            owners |= bits[s.party or s.owner]
            bare = bare and s.text is None
            records.add(s.source)
        if owners not in backing:
            backing[owners] = support(held, [s.voice for s in snippets])
        backed, (whole, name) = backing[owners], called[link]
        if backed and name:
            key = whole if first[whole] == link else f"{whole} ({link})"
            score = backed.mass * idf.get(link, 1.0)
            alone, below = len(backed.owners) < 2, -round(score, 9)
            found.append(_Anchor(alone, below, key, link, name, owners, records, bare, backed, score))
    return sorted(found, key=_RANK)


def _distilled(held: Pool, anchor: _Anchor) -> bool:
    return any(held.level[owner] < Level.RECORDS for owner in anchor.backed.owners)


class _Likeness:
    """Which links have nearly the same owners, or nearly the same records, as another."""

    def __init__(self, anchors: Sequence[_Anchor]) -> None:
        self._anchors = anchors
        self._by_owners: defaultdict[int, list[int]] = defaultdict(list)
        by_record: defaultdict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(anchors):
            self._by_owners[one.owners].append(place)
            for record in one.records:
                by_record[record].append(place)
        self._shared = {record: places for record, places in by_record.items() if len(places) > 1}

    def to(self, head: _Anchor) -> list[_Anchor]:
        """Other links alike, best first; by owners only two that several hold, or that nobody wrote of."""
        anchors, mine, found = self._anchors, head.owners, set[int]()
        for owners, places in self._by_owners.items():
            both = mine & owners
            if both and both.bit_count() / (mine | owners).bit_count() >= ALIKE:
                several = min(mine.bit_count(), owners.bit_count()) > 1
                found.update(place for place in places if several or (head.bare and anchors[place].bare))
        shared = Counter(chain.from_iterable(self._shared.get(record, ()) for record in head.records))
        for place, common in shared.items():
            if common / (len(head.records) + len(anchors[place].records) - common) >= ALIKE:
                found.add(place)
        return [anchors[place] for place in sorted(found) if anchors[place] is not head]


def _joining(held: Pool, head: _Anchor, alike: Iterable[_Anchor]) -> list[_Anchor]:
    """Links that a facet names too; one that it must not name is a facet of its own, not silenced by it."""
    return [one for one in alike if _permitted(held, one.link, head.backed.owners)]


def _facet(held: Pool, shown: Sequence[_Anchor], everyone: int) -> Draft:
    """One draft for a heading link and those that joined it."""
    head = shown[0]
    inside = head.backed.owners
    # Where one of them shares only facets the text is published as distilled: nobody is quoted in it.
    distilled = _distilled(held, head)
    used = {s.source: s for a in shown for s in held.by_link[a.link] if s.voice in inside}
    sources = _sources(held, used.values(), inside)
    spoken = (
        s
        for s in held.by_link[head.link]
        if not distilled and s.voice in inside and s.level == Level.RECORDS and s.text
    )
    first, *others = _two_lessons(spoken) or [("", "")]
    text = _label(_distinct(a.name for a in shown), len(inside), None if distilled else everyone, first[1], head.bare)
    return Draft(
        key=head.key,
        text=text,
        confidence=head.backed.confidence,
        score=head.score,
        links=tuple(a.link for a in shown),
        sources=sources,
        quotes=dict(others),
        at={source: used[source].at for source, _, _ in sources},
    )


def _two_lessons(spoken: Iterable[Snippet]) -> list[tuple[str, str]]:
    """Source and words of the first snippet that says something, and of the first that says something else."""
    found: list[tuple[str, str]] = []
    for snippet in islice(spoken, _TRIED):
        line = _said(snippet, (), _QUOTE_TOKENS)
        if line and all(line != other for _, other in found):
            found.append((snippet.source, line))
        if len(found) == 2:
            break
    return found


def _permitted(held: Pool, link: int, inside: frozenset[int]) -> bool:
    """Whether a link may be named: enough owners hold it, or one who agreed to be quoted."""
    holders = [s for s in held.by_link[link] if s.voice in inside]
    quotable = any(s.level == Level.RECORDS for s in holders)
    return quotable or len({s.voice for s in holders}) >= held.min_contributors


def _sources(held: Pool, used: Iterable[Snippet], owners: frozenset[int]) -> tuple[tuple[str, int, float], ...]:
    """Each owner's share of the support, spread evenly over its snippets; of equal ones the newest first."""
    used = list(used)
    count = Counter(s.voice for s in used)
    whole = sum(held.share[owner] for owner in sorted(owners))
    parts = [(-s.at, (s.source, s.owner, held.share[s.voice] / whole / count[s.voice])) for s in used]
    return tuple(part for _, part in sorted(parts, key=lambda one: (-round(one[1][2], 9), one[0], one[1][0])))


@lru_cache(maxsize=1 << 13)
def _called(name: str) -> tuple[str, str]:
    """A name on one line, whole and short."""
    whole = " ".join(name.split())
    return whole, _short(whole)


def _short(name: str) -> str:
    return name if len(name) <= 2 * _NAME_TOKENS else shorten(name, _NAME_TOKENS)


def _distinct(names: Iterable[str]) -> list[str]:
    """At most three names, none of which only repeats words of another."""
    kept: dict[str, frozenset[str]] = {}
    for name in names:
        words = _words_of(name) or frozenset((name,))
        if not any(words <= other or other <= words for other in kept.values()):
            kept[name] = words
        if len(kept) == _NAMES:
            break
    return list(kept)


@lru_cache(maxsize=1 << 13)
def _words_of(name: str) -> frozenset[str]:
    """Terms of a name."""
    return frozenset(terms(name))


def _label(names: Sequence[str], count: int, everyone: int | None, quoted: str, bare: bool) -> str:
    """One line: the names, how many neighbours (of how many, if that is given), and a lesson that may be quoted."""
    if mostly_cyrillic(" ".join(names)):
        joined, many = _joined(names, "и"), str(count) if everyone is None else f"{count} из {everyone}"
        if bare:
            return f"{joined} (есть у {many} соседей)"
        return f"{joined}: {many} соседей{f'; например: {quoted}' if quoted else ''}"
    if bare:
        return f"{_joined(names, 'and')} (held by {count} neighbour{'s' if count > 1 else ''})"
    many = str(count) if everyone is None else f"{count} of {everyone}"
    tail = f"; for example: {quoted}" if quoted else ""
    return f"{_joined(names, 'and')}: {many} neighbours{tail}"


def shortest() -> list[str]:
    """Of what `facets` says of several owners who may all be quoted, no text takes fewer tokens than all of these."""
    return [_label([name], 2, 2, "", bare) for name in ("x", "я") for bare in (False, True)]


def _joined(names: Sequence[str], last: str) -> str:
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def _said(snippet: Snippet, links: Sequence[str], max_tokens: int) -> str:
    return lesson(snippet.text or "", links=links, outcome=snippet.outcome, max_tokens=max_tokens)


@dataclass(frozen=True, slots=True)
class Lessons:
    """Lessons, in the order to tell them: what nearly repeats a better one comes last (`stages.repeats`).

    Which it is is found out only as far as they are asked for.

    Attributes:
        by_score: All of them, highest score first.
        endings: Of each, how its best record ended, if it tells that.
    """

    by_score: Sequence[Draft]
    endings: Sequence[str | None]

    def __iter__(self) -> Iterator[Draft]:
        """Each draft once."""
        lines = [(draft.text, ending) for draft, ending in zip(self.by_score, self.endings, strict=True)]
        return (self.by_score[place] for place in repeats_last(lines))


def lessons_from(
    snippets: Sequence[Snippet],
    scores: Sequence[float],
    names: Mapping[int, str] | None = None,
    *,
    delta: float = DELTA,
    max_tokens: int = MAX_TOKENS,
    note_tokens: int = NOTE_TOKENS,
) -> Lessons:
    """One lesson per record of those who agreed to be quoted, highest score first, of equal ones the newest.

    The confidence is the record's part of exp(score), at most delta. A record that says the same
    as a better one is not repeated but becomes its source.

    Args:
        snippets: The records found.
        scores: Of each, as from `search.rank_records`; those that are not finite are left out.
        names: Display names of links to mention where the text itself does not.
        delta: The most a lesson's confidence can be, in (0, 1].
        max_tokens: Of each lesson.
        note_tokens: Of one that tells neither an outcome nor links.

    Raises:
        ValueError: Snippets and scores differ in length.
    """
    pairs = [(s, score) for s, score in zip(snippets, scores, strict=True) if isfinite(score)]
    pairs = sorted(
        ((s, x) for s, x in pairs if s.level == Level.RECORDS and s.text), key=lambda p: (-p[1], -p[0].at, p[0].source)
    )
    if not pairs:
        return Lessons((), ())
    mass = [exp(score - pairs[0][1]) for _, score in pairs]
    total = sum(mass)
    said: dict[str, list[tuple[Snippet, float, float]]] = {}
    for (snippet, score), part in zip(pairs, mass, strict=True):
        links = _unsaid([name for link in snippet.links if (name := (names or {}).get(link))], snippet.text or "")
        plain = not links and not snippet.outcome
        line = note(snippet.text or "", max_tokens=note_tokens) if plain else _said(snippet, links[:_NAMES], max_tokens)
        if line:
            said.setdefault(line, []).append((snippet, score, part / total))
    drafts = [_lesson(line, behind, delta) for line, behind in said.items()]
    return Lessons(drafts, [behind[0][0].outcome for behind in said.values()])


def _unsaid(names: Sequence[str], text: str) -> list[str]:
    """Names that a text does not say itself, in whatever inflection, joined or apart."""
    lowered = text.casefold()
    left = [name for name in names if name.casefold() not in lowered]
    if not left:
        return left
    whole = lower(normal(text)).replace("'", "")
    if not any(all(map(whole.__contains__, _fixed(name))) for name in left):
        return left
    said = frozenset(terms(text))
    return [name for name in left if not said >= _words_of(_JOINTS.sub(" ", name))]


@lru_cache(maxsize=1 << 13)
def _fixed(name: str) -> tuple[str, ...]:
    """What of a name's terms no ending changes: up to the last digit or sign; words of letters alone have none."""
    found = (_BEFORE_ENDING.match(term) for term in _words_of(_JOINTS.sub(" ", name)))
    return tuple(match.group() for match in found if match)


def _lesson(line: str, behind: Sequence[tuple[Snippet, float, float]], delta: float) -> Draft:
    best, score, _ = behind[0]
    share = sum(part for _, _, part in behind)
    return Draft(
        key=best.source,
        text=line,
        confidence=min(share, delta),
        score=score,
        links=best.links,
        sources=tuple((s.source, s.owner, part / share) for s, _, part in behind),
        at={s.source: s.at for s, _, _ in behind},
    )


def query_facet(
    ranked: Sequence[Snippet],
    names: Mapping[int, str],
    *,
    min_contributors: int = MIN_CONTRIBUTORS,
    delta: float = DELTA,
) -> Draft | None:
    """What the best records of a query have in common: their 6 commonest links, each as n of 12.

    Meant for small budgets; owners weigh the same. A link must be in two records at least. The
    confidence is that of the best supported link shown.

    Args:
        ranked: Records, best first; the first 12 are read.
        names: Display names of links; a link without one is not shown.
        min_contributors: As for `facets`.
        delta: As for `facets`.

    Returns:
        None if no link may be shown.
    """
    best = [replace(s, weight=1.0) for s in ranked[:QUERY_RECORDS]]
    held = pool(best, min_contributors=min_contributors, delta=delta)
    shown: list[tuple[int, str, list[Snippet], Support]] = []
    for link, snippets in held.by_link.items():
        name = _short(" ".join(names.get(link, "").split()))
        backed = support(held, (s.voice for s in snippets)) if name else None
        counted = [s for s in snippets if backed and s.voice in backed.owners]
        if backed and len(counted) > 1:
            shown.append((link, name, counted, backed))
    shown = sorted(shown, key=lambda one: (-len(one[2]), -round(one[3].mass, 9), one[1], one[0]))[:QUERY_LINKS]
    if not shown:
        return None
    used = {s.source: s for _, _, counted, _ in shown for s in counted}
    owners = frozenset(s.voice for s in used.values())
    sources = _sources(held, used.values(), owners)
    listed = ", ".join(f"{name} {len(counted)}/{len(best)}" for _, name, counted, _ in shown)
    head = "Чаще всего в лучших записях" if mostly_cyrillic(listed) else "Most common in the best records"
    return Draft(
        key=QUERY_KEY,
        text=f"{head}: {listed}",
        confidence=max(backed.confidence for _, _, _, backed in shown),
        score=max(backed.mass for _, _, _, backed in shown),
        links=tuple(link for link, _, _, _ in shown),
        sources=sources,
        at={source: used[source].at for source, _, _ in sources},
    )


__all__ = ["Lessons", "cost", "facets", "lessons_from", "query_facet", "shortest"]
