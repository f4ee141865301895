"""What the memory model makes of a neighbourhood: asked once for the same material, then kept.

load:   snippets that may be quoted, and what was made of them before;
ask:    at most once, outside of any snapshot;
check:  against a new snapshot: grants, erasures and versions may have moved on meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from collab_layer.flows import view
from collab_layer.flows.ask import ask
from collab_layer.flows.made import Made
from collab_layer.flows.making import Maker, permitted
from collab_layer.flows.tools import Tools
from collab_layer.graph import syntheses
from collab_layer.graph.derived import Item
from collab_layer.plugins.specs import Leaving
from collab_layer.stages.asked import facets
from collab_layer.stages.asked.question import Question
from collab_layer.stages.lessons import shorten
from collab_layer.types.asking import Usage
from collab_layer.types.facet import FacetKind
from collab_layer.types.graph import Draft, Snippet
from collab_layer.types.scope import Level

FOUND_READ = 16
"""Of the records that answer a query, the best that a model reads."""
QUOTE_TOKENS = 30
QUERY_FACETS = 3
"""Beside the lessons of a query; without one, the stage's own seven."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A question not asked yet: under which key its answer is kept, and when it was put together."""

    key: str
    question: Question[Snippet]
    made_by: str
    generation: int
    min_contributors: int
    delta: float


@dataclass(frozen=True, slots=True)
class Worded:
    """What came of it: drafts, or why there are none."""

    wording: Wording
    drafts: Sequence[Draft]
    usage: tuple[Usage, ...]
    why: str | None = None


def look(tools: Tools, maker: Maker, snippets: Sequence[Snippet]) -> list[Made] | Wording:
    """Facets made of the same material before, or a question to ask; nothing where no model can help."""
    asked = tools.models.get("memory")
    if asked is None:
        return []
    usable = _leaving(tools, maker, [snippet for snippet in snippets if snippet.level >= Level.RECORDS])
    if not usable:
        return []
    made_by = f"{asked.model.name}, prompt {facets.VERSION}"
    key = _key(maker, usable, made_by)
    before = syntheses.find(maker.reading.connection, maker.reading.tenant, key)
    if before is not None:
        return _again(tools, maker, usable, before)
    names = maker.displays(usable)
    question = facets.ask(usable, names, query=maker.query, nonce=secrets.token_hex(8), max_facets=_most(maker.query))
    if question is None:
        return []
    sharing, generation = maker.sharing, maker.reading.index.generation
    return Wording(key, question, made_by, generation, sharing.min_contributors, sharing.delta)


async def put_into_words(tools: Tools, tenant: str, wording: Wording) -> Worded:
    """Ask the memory model."""
    said = await ask(tools, tenant, "memory", wording.question.prompt, wording.question.reply)
    if said.value is None:
        return Worded(wording, (), () if said.usage is None else (said.usage,), said.why)
    drafts, repaired = facets.read(
        said.value, wording.question, min_contributors=wording.min_contributors, delta=wording.delta
    )
    usage = () if said.usage is None else (said.usage.model_copy(update={"repaired": repaired}),)
    return Worded(wording, drafts, usage)


def check(maker: Maker, worded: Worded) -> list[Made]:
    """The drafts that may still be told: nothing erased since, everybody behind them still quotable."""
    if maker.reading.index.generation != worded.wording.generation:
        return []
    sources = [source for draft in worded.drafts for source, _, _ in draft.sources if source.startswith("c")]
    there = view.cards_of(maker.reading, list(dict.fromkeys(sources)))
    good = [
        draft
        for draft in worded.drafts
        if permitted(maker.opened, draft.contributors, Level.RECORDS)
        and all(source in there for source, _, _ in draft.sources if source.startswith("c"))
    ]
    return maker.made(good, FacetKind.FACET, made_by=worded.wording.made_by)


def kept(worded: Worded, maker: Maker, ids: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """Under which key to keep the facets, perhaps none; not where there was no reply or something was erased."""
    if worded.why is not None or maker.reading.index.generation != worded.wording.generation:
        return None
    return worded.wording.key, ids


def _leaving(tools: Tools, maker: Maker, snippets: Sequence[Snippet]) -> list[Snippet]:
    """Snippets as their owners let them go: a provider is shown no more than the reader may be."""
    if not tools.filters:
        return list(snippets)
    said = [(snippet, part) for snippet in snippets for part in ("text", "outcome") if getattr(snippet, part)]
    owners = [view.entity_of(maker.reading, snippet.owner) for snippet, _ in said]
    asked = [Leaving(o, maker.reader, getattr(snippet, part)) for o, (snippet, part) in zip(owners, said, strict=True)]
    kept: dict[str, dict[str, str | None]] = {}
    for (snippet, part), text in zip(said, tools.leaving(asked), strict=True):
        kept.setdefault(snippet.source, {})[part] = text
    vetoed = {source for source, parts in kept.items() if None in parts.values()}
    return [replace(s, **kept.get(s.source, {})) for s in snippets if s.source not in vetoed]


def _again(tools: Tools, maker: Maker, snippets: Sequence[Snippet], items: Sequence[Item]) -> list[Made]:
    """Facets made before, with the words of their sources as they are now."""
    said = {snippet.source: shorten(snippet.text, QUOTE_TOKENS) for snippet in snippets if snippet.text}
    at = {snippet.source: snippet.at for snippet in snippets}
    out: list[Made] = []
    for item in items:
        if permitted(maker.opened, item.principals, item.level):
            of = [source for source, _, _ in item.sources]
            quotes = {source: said[source] for source in of if source in said}
            times = {source: at[source] for source in of if source in at}
            score = item.confidence
            draft = Draft(item.key, item.text, score, score, item.links, item.sources, quotes, times)
            for told in view.filtered(tools, maker.reading, maker.reader, [draft]):
                out.append(Made.ready(view.facet(maker.reading, told, item.id, item.kind, item.made_by)))
    return out


def _most(query: str | None) -> int:
    return QUERY_FACETS if query else facets.MAX_FACETS


def _key(maker: Maker, snippets: Sequence[Snippet], made_by: str) -> str:
    shown = sorted([snippet.source, snippet.text or "", *map(str, snippet.links)] for snippet in snippets)
    rules = [maker.sharing.min_contributors, maker.sharing.delta]
    whole = [str(maker.reader), maker.opened.focus, made_by, maker.query, rules, shown]
    return hashlib.blake2b(json.dumps(whole).encode(), key=maker.salt.encode()[:64], digest_size=24).hexdigest()
