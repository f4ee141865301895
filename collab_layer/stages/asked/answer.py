"""Ask a model a question about what is known; take from its answer only what the facets say.

In:   a question in the caller's words, facets.
Out:  a `Question` over aliases; and from a reply `Claim`s, each with the facets it rests on.
Pure. No claim without a citation, none that shares no word with what it cites. No claim at all
means: not known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel

from collab_layer.stages.asked import schema
from collab_layer.stages.asked.question import Question
from collab_layer.stages.fence import RULES_OF_DATA, Fence, clean
from collab_layer.stages.lessons import mostly_cyrillic
from collab_layer.stages.tokens import fold, sentences, terms
from collab_layer.types.answer import Claim
from collab_layer.types.asking import Prompt
from collab_layer.types.facet import Facet
from collab_layer.types.tokens import estimate_tokens

MAX_CLAIMS = 6
CLAIM_CHARS = 160
CITED = 3
BUDGET_TOKENS = 1_200
_CLAIM_TOKENS = 80
_QUESTION_TOKENS = 100
_FACET_TOKENS, _QUOTE_TOKENS = 60, 40
_QUOTES = 2
_TRIED = 4
NO_FACETS = "no facets are known"
NOTHING_ASKED = "nothing is asked"

_INSTRUCTIONS = """\
You answer a question from notes, and from nothing else.
{rules}
Under `facets` each line is one note: its id (e1, e2, ...), its support from 0 to 1, its words; what follows `from` is \
a record that it rests on. `question` is what is asked.
Give at most {most} claims that together answer the question, the most useful first.
- `text`: one sentence of at most 25 words, in the words and the language of the notes. Add nothing: no knowledge of \
your own, no link, no id.
- `facets`: ids of one to {cited} notes that say so; a sentence that no note says is left out.
If the notes do not answer the question, give an empty list; that is a good answer.
Reply with one JSON object on one line: `claims`, a list of objects with the keys `text` and `facets`."""


@dataclass(frozen=True, slots=True)
class AnswerQuestion(Question[str]):
    """What is asked; `shown` is alias to the id of a facet.

    Attributes:
        words: Alias to all that was shown of the facet.
    """

    words: Mapping[str, str]


class _Said(schema.Lenient):
    text: schema.Text = ""
    facets: schema.Ids = ()


class Claims(schema.Lenient):
    """The reply as it is taken."""

    claims: Annotated[tuple[_Said, ...], schema.Parts] = ()


def ask(
    question_text: str, facets: Sequence[Facet], *, nonce: str, budget_tokens: int = BUDGET_TOKENS
) -> Question[str]:
    """Lay out the question and the facets that fit.

    Args:
        question_text: In the caller's words; quoted. One in quarantine is not shown, and nothing
            answers it.
        facets: Strongest first.
        nonce: Of the fence.
        budget_tokens: Of the whole: instructions, data and the schema of the reply.

    Raises:
        ValueError: The nonce is none.
    """
    fence = Fence(nonce)
    wanted = fence.said(question_text, _QUESTION_TOKENS)
    rules = _INSTRUCTIONS.format(rules=RULES_OF_DATA, most=MAX_CLAIMS, cited=CITED)
    asked = f"question: {wanted or NOTHING_ASKED}"
    around = [rules, fence.block("data", [asked, "facets:", NO_FACETS]), json.dumps(_schema([]))]
    room = budget_tokens - sum(map(estimate_tokens, around))
    shown: dict[str, str] = {}
    words: dict[str, str] = {}
    lines: list[str] = []
    for facet in facets if wanted else ():
        id_ = f"e{len(lines) + 1}"
        for spoken in _tellings(fence, facet):
            line = _line(id_, facet, spoken)
            if (cost := estimate_tokens(line) + 3) <= room:
                room -= cost
                shown[id_], words[id_] = facet.id, "\n".join(spoken)
                lines.append(line)
                break
    data = fence.block("data", ["facets:", *(lines or [NO_FACETS]), asked])
    longest = schema.reply_tokens(MAX_CLAIMS, CLAIM_CHARS, CITED, cyrillic=mostly_cyrillic(data))
    prompt = Prompt("answer", rules, data, longest)
    return AnswerQuestion(prompt, schema.closed(Claims, _schema(list(shown))), shown, words)


def read(reply: BaseModel, question: Question[str]) -> tuple[list[Claim], int]:
    """Claims in the order given, at most six.

    Args:
        reply: Of any shape.
        question: As `ask` gave it.

    Returns:
        The claims, and how many parts of the reply were put right or left out: claims that may not
        be shown, said twice, without a facet that has a word of theirs, or too many; sentences
        after the first; ids of unknown facets and of facets that share no word with the claim.
    """
    words: Mapping[str, str] = question.words if isinstance(question, AnswerQuestion) else {}
    given = schema.taken(Claims, reply).claims
    out: dict[str, Claim] = {}
    repaired = max(0, len(given) - _TRIED * MAX_CLAIMS)
    for claim in given[: _TRIED * MAX_CLAIMS]:
        text = _sentence(claim.text)
        about = frozenset(terms(text or ""))
        backing = [id_ for id_ in dict.fromkeys(claim.facets) if not about.isdisjoint(terms(words.get(id_, "")))]
        repaired += len(claim.facets) - len(backing)
        if text is None or not backing or fold(text) in out or len(out) == MAX_CLAIMS:
            repaired += 1
        else:
            repaired += text != " ".join(claim.text.split())
            out[fold(text)] = Claim(text=text, facets=tuple(dict.fromkeys(question.shown[id_] for id_ in backing)))
    return list(out.values()), repaired


def _sentence(text: str) -> str | None:
    """The first sentence, if all of the text may be shown."""
    whole = clean(schema.without_ids(text), max_tokens=_CLAIM_TOKENS * 4)
    first = next(sentences(whole or ""), None)
    return clean(first, max_tokens=_CLAIM_TOKENS) if first else None


def _tellings(fence: Fence, facet: Facet) -> list[list[str]]:
    """What may be shown of a facet: its words with those of its records, or alone where there is less room."""
    text = fence.said(facet.text, _FACET_TOKENS)
    if text is None:
        return []
    quotes = [item.quote for item in facet.evidence if item.quote and item.quote != facet.text]
    spoken = [line for quote in quotes if (line := fence.said(quote, _QUOTE_TOKENS)) is not None][:_QUOTES]
    return [[text, *spoken], [text]] if spoken else [[text]]


def _line(id_: str, facet: Facet, spoken: Sequence[str]) -> str:
    return " ".join([f"{id_} ({facet.confidence:.1f}) {spoken[0]}", *(f"from {quote}" for quote in spoken[1:])])


def _schema(ids: Sequence[str]) -> schema.JsonSchema:
    claim = schema.obj(text=schema.text(CLAIM_CHARS), facets=schema.some_of(ids, CITED, least=1))
    return schema.obj(claims=schema.many(claim, MAX_CLAIMS if ids else 0))


__all__ = ["CITED", "MAX_CLAIMS", "AnswerQuestion", "ask", "read"]
