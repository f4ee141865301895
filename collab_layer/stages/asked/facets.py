"""Ask a model what neighbours have in common; take from its answer only what they back.

In:   `Snippet`s the reader may use, display names of their links, perhaps a query.
Out:  a `Question` over aliases; and from a reply `Draft`s whose sources were all shown.
Pure. Never shown: owners that share only facets, real ids, names of owners, candidates.

One line stands for all snippets that say the same, so that a cited line counts everybody behind
it. The model gives words and evidence, never the confidence: that is `stages.support` over the
owners of the evidence. A record is evidence where it shares a word with the facet; if none does, the
facet is the model's own abstraction, rests on all it cites, and is no surer than delta. Support
moves by at most delta with one owner, and that of one owner alone is at most delta, so this moves
by at most delta too. What fits into the prompt and what the model chooses to say is not bounded by
it, only how sure that is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel

from collab_layer.stages.asked import schema
from collab_layer.stages.asked.memories import Page, lay_out
from collab_layer.stages.asked.question import Question
from collab_layer.stages.fence import RULES_OF_DATA, Fence, clean
from collab_layer.stages.lessons import mostly_cyrillic
from collab_layer.stages.support import Support, pool, support
from collab_layer.stages.tokens import fold, terms
from collab_layer.types.asking import Prompt
from collab_layer.types.graph import Draft, Snippet
from collab_layer.types.scope import Level
from collab_layer.types.tokens import estimate_tokens

VERSION = "1"
"""Of the prompt; facets made with another one are made again."""
MAX_FACETS = 7
BUDGET_TOKENS = 1_200
TEXT_CHARS = 96
SUPPORT = 4
"""Lines a facet may cite; each may stand for many owners."""
MAX_LINKS = 8
_TEXT_TOKENS = 50
_QUERY_TOKENS = 60
_FRAME_TOKENS = 12
_NUMBER = re.compile(r"\d+")
_ALIKE = 0.75
"""Share of stems in common from which two facets say the same."""
_TRIED = 4
"""Facets looked at, for each that may be returned."""

_INSTRUCTIONS = """\
You condense what several owners noted into a few short facets that help a similar owner.
{rules}
Under `memories` each line is one memory: its id (m1, m2, ...), then its owners (p1, p2, ...) and their words, or how \
many owners have a thing. `->` shows how it ended.
Write at most {most} facets, the most widely shared first.
- `text`: one plain statement of at most 14 words: what several owners share, or one concrete thing that an owner \
learnt and others can use. Of things, name their kind and two or three of them. Keep the memories' words, names, \
numbers and language. Add nothing: no guess, no advice, no order, no link, no id.
- `support`: ids of one to {lines} memories that say so, the clearest first; without one leave the facet out.
{asked}If nothing is of use, give an empty list.
Reply with one JSON object on one line: `facets`, a list of objects with the keys `text` and `support`."""
_FOR_QUERY = "Only facets that help with what is asked under `question`.\n"


class _Facet(schema.Lenient):
    text: schema.Text = ""
    support: schema.Ids = ()


class Facets(schema.Lenient):
    """The reply as it is taken."""

    facets: Annotated[tuple[_Facet, ...], schema.Parts] = ()


@dataclass(frozen=True, slots=True)
class FacetQuestion(Question[Snippet]):
    """What was shown: the line `m1` stands for `m1`, `m1.2`, … of `shown`, each with its own words in short.

    Attributes:
        stems: As `shown`, to the stems of the whole memory, its outcome and the names of its links.
    """

    stems: Mapping[str, frozenset[str]]


def ask(
    snippets: Sequence[Snippet],
    names: Mapping[int, str],
    *,
    query: str | None = None,
    nonce: str,
    max_facets: int = MAX_FACETS,
    budget_tokens: int = BUDGET_TOKENS,
) -> Question[Snippet] | None:
    """Lay out what may be quoted, as much of it as fits.

    Args:
        snippets: What the neighbours hold; only those at RECORDS level with a weight > 0 are read.
        names: Display names of links; a link without one is not shown.
        query: What the facets should help with; quoted, never an instruction.
        nonce: Of the fence.
        max_facets: The most asked for, >= 1.
        budget_tokens: Of the whole: instructions, data and the schema of the reply.

    Returns:
        None if nothing can be shown.

    Raises:
        ValueError: The nonce is none, or `max_facets` is below 1.
    """
    if max_facets < 1:
        raise ValueError(f"max_facets is {max_facets}, it must be at least 1")
    fence = Fence(nonce)
    wanted = fence.said(query, _QUERY_TOKENS) if query else None
    asked = [f"question: {wanted}"] if wanted else []
    around = [_instructions(max_facets, wanted), fence.block("data", [*asked, "memories:"])]
    around.append(json.dumps(_schema([], max_facets)))
    page = Page(fence, budget_tokens - _FRAME_TOKENS - sum(map(estimate_tokens, around)))
    lay_out(page, snippets, names, query)
    if not page.lines:
        return None
    most = min(max_facets, len(page.lines))
    data = fence.block("data", [*asked, "memories:", *page.lines])
    longest = schema.reply_tokens(most, TEXT_CHARS, SUPPORT, cyrillic=mostly_cyrillic(data))
    prompt = Prompt("synthesize", _instructions(most, wanted), data, longest)
    reply = schema.closed(Facets, _schema([id_ for id_ in page.shown if "." not in id_], most))
    return FacetQuestion(prompt, reply, page.shown, page.stems)


def read(
    reply: BaseModel,
    question: Question[Snippet],
    *,
    min_contributors: int,
    delta: float,
    max_facets: int = MAX_FACETS,
) -> tuple[list[Draft], int]:
    """Keep what the shown memories back, the surest first.

    Args:
        reply: Of any shape; what is missing or of another type counts as empty.
        question: As `ask` gave it.
        min_contributors: As for `support.pool`.
        delta: The most one owner moves a confidence, in (0, 1].
        max_facets: The most returned.

    Returns:
        The drafts, and how many parts of the reply were put right or left out: facets without
        words or evidence, with a number that their lines do not have, said twice or nearly, or too
        many; texts changed; ids that were not shown; owners whose cited lines share no word with a
        facet where others' do.

    Raises:
        ValueError: `delta` or `min_contributors` is out of range.
    """
    judge = _Judge(question, min_contributors, delta)
    given = schema.taken(Facets, reply).facets
    repaired = max(0, len(given) - _TRIED * max_facets)
    found: dict[str, tuple[str, dict[str, None]]] = {}
    for facet in given[: _TRIED * max_facets]:
        text = clean(schema.without_ids(facet.text), max_tokens=_TEXT_TOKENS)
        lines = [line for line in dict.fromkeys(facet.support) if line in judge.members]
        repaired += len(facet.support) - len(lines)
        if text is None or not lines or judge.invented(text, lines):
            repaired += 1
            continue
        repaired += (fold(text) in found) + (text != " ".join(facet.text.split()))
        found.setdefault(fold(text), (text, {}))[1].update(dict.fromkeys(lines))
    judged = [judge.draft(text, list(lines)) for text, lines in found.values()]
    surest = sorted((draft for draft, _ in judged if draft), key=lambda draft: -round(draft.confidence, 9))
    drafts = _distinct(surest)[:max_facets]
    return drafts, repaired + sum(refused for _, refused in judged) + len(judged) - len(drafts)


class _Judge:
    """Finds out what backs a facet."""

    def __init__(self, question: Question[Snippet], min_contributors: int, delta: float) -> None:
        shown = {id_: s for id_, s in question.shown.items() if s.level >= Level.RECORDS and s.weight > 0}
        self.held = pool(shown.values(), min_contributors=min_contributors, delta=delta)
        self.stems: Mapping[str, frozenset[str]] = question.stems if isinstance(question, FacetQuestion) else {}
        self.members: dict[str, list[tuple[str, Snippet]]] = {}
        for id_, snippet in shown.items():
            self.members.setdefault(id_.partition(".")[0], []).append((id_, snippet))

    def invented(self, text: str, lines: Sequence[str]) -> bool:
        """Whether it gives a number that none of the lines it cites has."""
        cited = [member for line in lines for member in self.members[line]]
        there = [f"{_words(snippet)} {' '.join(self.stems.get(id_, ()))}" for id_, snippet in cited]
        return not set(_NUMBER.findall(text)) <= set(_NUMBER.findall(" ".join(there)))

    def draft(self, text: str, lines: Sequence[str]) -> tuple[Draft | None, int]:
        """The facet with all its sources, and how many owners cited for it are no evidence."""
        about = frozenset(terms(text))
        cited = [member for line in lines for member in self.members[line]]
        sharing = [s for id_, s in cited if not about.isdisjoint(self.stems.get(id_, ()))]
        used = sharing or [snippet for _, snippet in cited]
        owners = {snippet.voice for snippet in used}
        backed = support(self.held, owners)
        if backed is None:
            return None, 0
        confidence = backed.confidence if sharing else min(backed.confidence, self.held.delta)
        return self._made(text, used, backed, confidence), len({s.voice for _, s in cited} - owners)

    def _made(self, text: str, used: Sequence[Snippet], backed: Support, confidence: float) -> Draft:
        count = Counter(snippet.voice for snippet in used)
        whole = sum(self.held.share[owner] for owner in sorted(backed.owners))
        parts = [(s.source, s.owner, self.held.share[s.voice] / whole / count[s.voice]) for s in used]
        return Draft(
            key=f"model:{hashlib.blake2b(fold(text).encode(), digest_size=12).hexdigest()}",
            text=text,
            confidence=confidence,
            score=backed.mass,
            links=_links(used),
            sources=tuple(sorted(parts, key=lambda part: (-round(part[2], 9), part[0]))),
            quotes={s.source: words for s in used if (words := _words(s))},
            at={s.source: s.at for s in used},
        )


def _distinct(drafts: Sequence[Draft]) -> list[Draft]:
    """Those that say something else than every surer one."""
    kept: dict[str, frozenset[str]] = {}
    out: list[Draft] = []
    for draft in drafts:
        stems = frozenset(terms(draft.text)) or frozenset((fold(draft.text),))
        if all(len(stems & other) < _ALIKE * len(stems | other) for other in kept.values()):
            kept[draft.key] = stems
            out.append(draft)
    return out


def _words(snippet: Snippet) -> str:
    return " → ".join(part for part in (snippet.text, snippet.outcome) if part)


def _links(used: Sequence[Snippet]) -> tuple[int, ...]:
    """What at least two of the snippets refer to, the commonest first; of one snippet all."""
    count = Counter(link for snippet in used for link in dict.fromkeys(snippet.links))
    least = min(2, len(used))
    shared = [link for link, number in count.items() if number >= least]
    return tuple(sorted(shared, key=lambda link: (-count[link], link))[:MAX_LINKS])


def _instructions(most: int, wanted: str | None) -> str:
    asked = _FOR_QUERY if wanted else ""
    return _INSTRUCTIONS.format(rules=RULES_OF_DATA, most=most, lines=SUPPORT, asked=asked)


def _schema(ids: Sequence[str], most: int) -> schema.JsonSchema:
    facet = schema.obj(text=schema.text(TEXT_CHARS), support=schema.some_of(ids, SUPPORT, least=1))
    return schema.obj(facets=schema.many(facet, most))


__all__ = ["BUDGET_TOKENS", "MAX_FACETS", "SUPPORT", "VERSION", "FacetQuestion", "ask", "read"]
