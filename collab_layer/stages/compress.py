"""Less text for a model: what many texts say, once, and of each the sentences that say most.

In:   texts, strongest first; a budget; perhaps a query.
Out:  some of them, shortened to whole sentences, in the order given.
Pure: no model, no randomness; the same texts give the same words.

The idea that a memory should be filtered and compressed before a language model reads it, since
most of what is noted is said twice or says little, is LightMem's (arXiv 2510.18866); only the
idea: LightMem asks a small model which tokens to keep, here whole sentences are chosen by
counting. Sentences are taken greedily by the weight of the words they bring, a word counting
less each time it was brought before: maximal marginal relevance over a budget.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from math import log1p

from collab_layer.stages.lessons import shorten
from collab_layer.stages.tokens import lower, normal, sentences, stem, terms, words
from collab_layer.types.tokens import estimate_tokens

PER_TEXT = 60
ALIKE = 0.8
"""Jaccard of word pairs from which a text only repeats an earlier one."""
WANTED = 3.0
"""What a word of the query weighs beside another of the same rarity."""
_SEEN_AGAIN = 0.5
_SECOND_SENTENCE = 0.5
_FIRST_PLACE = 1.25
_SINGLE = 0.5
_LEAST = 8
_CHARS = 6_000
_SENTENCES = 60
_GAP = " … "
_NOT = re.compile(r"\b(?:not?|never|none|without|cannot|\w+n't|не|нет|ни|никогда|без|нельзя)\b")


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One sentence of a text; `cost` in tokens, the gap before it included."""

    source: int
    place: int
    text: str
    terms: frozenset[str]
    cost: int


def compress(
    texts: Sequence[str],
    *,
    budget_tokens: int,
    query: str | None = None,
    per_text: int = PER_TEXT,
    beside: Sequence[int] = (),
    weight: Sequence[float] = (),
    keep_repeats: bool = False,
) -> list[tuple[int, str]]:
    """Keep what says most within the budget.

    A text that repeats an earlier one is dropped, see `repeats`. Then sentences are taken by

        gain = weight * sum over words of idf * 0.5 ** (times the word was taken) / sqrt(tokens)

    where a word of the query weighs three times as much, a word of one text alone half, the first
    sentence of a text a quarter more, and each further sentence of the same text half. Sentences
    left out between two that are kept leave `…`.

    Args:
        texts: The first 6,000 characters of each are read.
        budget_tokens: For all that is kept, by `estimate_tokens`, >= 0.
        query: Words that matter more.
        per_text: The most tokens of one text, >= 8; a longer sentence is cut after a whole word.
        beside: What else each kept text costs, such as the id in front of it; 0 where it is missing.
        weight: How much each text matters, > 0; 1 where it is missing.
        keep_repeats: Drop no text for repeating another, where each may be evidence; it only gains less.

    Returns:
        (index in `texts`, its words), by index; each index at most once.

    Raises:
        ValueError: `per_text` is below 8.

    Source:
        Greedy choice of a monotone submodular gain under a budget, scaled by cost: Lin and Bilmes,
        NAACL 2010. Marginal relevance: Carbonell and Goldstein, SIGIR 1998.
    """
    if per_text < _LEAST:
        raise ValueError(f"the budget of {per_text} tokens for a text is too small, at least {_LEAST} are needed")
    heads = [text[:_CHARS] for text in texts]
    dropped = {} if keep_repeats else repeats(heads)
    found = [s for at, text in enumerate(heads) if at not in dropped for s in _sentences(at, text, per_text)]
    weights = _weights(found, frozenset(terms(query or "")))
    costs = dict.fromkeys(range(len(texts)), 0) | dict(enumerate(beside))
    matters = dict.fromkeys(range(len(texts)), 1.0) | dict(enumerate(weight))
    chosen = _greedy(found, weights, budget_tokens, per_text, costs, matters)
    return [(at, _joined(chosen[at])) for at in sorted(chosen)]


def repeats(texts: Sequence[str]) -> dict[int, int]:
    """Texts that say again what an earlier one says: index to the index of the earlier.

    Two texts are alike from a Jaccard of 0.8 of their pairs of neighbouring words, and only if both
    negate or neither does. A repetition is not thereby a second witness: in a long text one word
    may make the difference.
    """
    pairs = [_pairs(text) for text in texts]
    denies = [negated(text) for text in texts]
    found: dict[int, int] = {}
    holders: dict[tuple[str, str], list[int]] = {}
    for at, mine in enumerate(pairs):
        shared = Counter(other for pair in mine for other in holders.get(pair, ()))
        for other, count in sorted(shared.items()):
            together = len(mine) + len(pairs[other]) - count
            if count >= ALIKE * together and denies[at] == denies[other]:
                found[at] = other
                break
        else:
            for pair in mine:
                holders.setdefault(pair, []).append(at)
    return found


def negated(text: str) -> bool:
    """Whether a text has a word of negation, in English or Russian; counting words alone does not see it."""
    return bool(_NOT.search(lower(normal(text))))


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    said = [stem(lower(word)) for word, _, _ in words(normal(text))]
    return frozenset(pairwise(["", *said, ""])) if said else frozenset()


def _sentences(source: int, text: str, per_text: int) -> list[_Sentence]:
    """What may be taken of a text: sentences with two content words, or else the one with most."""
    found: list[_Sentence] = []
    for place, sentence in enumerate(islice(sentences(text), _SENTENCES)):
        short = shorten(sentence, per_text)
        if short:
            found.append(_Sentence(source, place, short, frozenset(terms(short)), estimate_tokens(short)))
    telling = [one for one in found if len(one.terms) > 1]
    return telling or sorted((one for one in found if one.terms), key=lambda one: -len(one.terms))[:1]


def _weights(found: Iterable[_Sentence], wanted: frozenset[str]) -> Mapping[str, float]:
    """What each word counts: rarer more, but a word of one text alone half, since nobody shares it."""
    holders: dict[str, set[int]] = {}
    for sentence in found:
        for term in sentence.terms:
            holders.setdefault(term, set()).add(sentence.source)
    total = len({source for sources in holders.values() for source in sources})
    return {
        term: log1p(total / len(sources))
        * (WANTED if term in wanted else 1.0)
        * (_SINGLE if len(sources) == 1 and total > 1 and term not in wanted else 1.0)
        for term, sources in holders.items()
    }


def _greedy(
    found: Sequence[_Sentence],
    weights: Mapping[str, float],
    budget: int,
    per_text: int,
    beside: Mapping[int, int],
    matters: Mapping[int, float],
) -> dict[int, list[_Sentence]]:
    """Best gain first; gains only ever fall, so that a stale one at the top is enough to look at."""
    times: Counter[str] = Counter()
    chosen: dict[int, list[_Sentence]] = {}
    spent: Counter[int] = Counter()

    def gain(one: _Sentence) -> float:
        # In a fixed order: sums of floats differ by order, and sets have none.
        brought = sum(weights[term] * _SEEN_AGAIN ** times[term] for term in sorted(one.terms))
        scale = matters[one.source] * _SECOND_SENTENCE ** len(chosen.get(one.source, ()))
        scale *= _FIRST_PLACE if one.place == 0 else 1.0
        return brought * scale / one.cost**0.5

    heap = [(-gain(one), at) for at, one in enumerate(found)]
    heapq.heapify(heap)
    while heap:
        at = heapq.heappop(heap)[1]
        one = found[at]
        further = one.source in chosen
        cost = one.cost + (_gap_cost() if further else beside[one.source])
        if cost > budget or (further and spent[one.source] + cost > per_text):
            continue
        now = (-gain(one), at)
        if heap and now > heap[0]:
            heapq.heappush(heap, now)
            continue
        chosen.setdefault(one.source, []).append(one)
        spent[one.source] += cost if further else one.cost
        times.update(one.terms)
        budget -= cost
    return chosen


def _gap_cost() -> int:
    return estimate_tokens(_GAP)


def _joined(chosen: Sequence[_Sentence]) -> str:
    ordered = sorted(chosen, key=lambda one: one.place)
    out = ordered[0].text
    for before, one in pairwise(ordered):
        out += (" " if one.place == before.place + 1 else _GAP) + one.text
    return out


__all__ = ["PER_TEXT", "compress", "negated", "repeats"]
