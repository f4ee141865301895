"""Ask a model to rank candidates, all at once or one at a time, with reasons that cite facets.

In:   `Choice`s with the rules' own score, facets, the entity's own things, perhaps an instruction.
Out:  a `Question` over aliases; and from a reply a score in [0, 1] and a reason per candidate.
Pure. Real ids never enter a prompt. A candidate that a model leaves out gets no score here; the
caller's rules fill its place.

Candidates stand in the order of the rules' score, so that a model that merely copies the order
changes nothing. A text in quarantine is not shown; a candidate with such a name is not asked about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Annotated

from pydantic import BaseModel

from collab_layer.stages.asked import schema
from collab_layer.stages.asked.profile import FACETS_SHOWN, Profile, with_about
from collab_layer.stages.asked.question import Question
from collab_layer.stages.fence import RULES_OF_DATA, Fence, clean
from collab_layer.stages.lessons import mostly_cyrillic
from collab_layer.stages.tokens import terms
from collab_layer.types.asking import Prompt
from collab_layer.types.facet import Facet
from collab_layer.types.tokens import estimate_tokens

BEST, BEST_ONE = 100, 9
"""The highest score asked for, of many and of one."""
WHY_CHARS = 60
CITED = 2
BUDGET_TOKENS = 800
"""Of up to ten candidates: instructions, data and the schema of the reply."""
_MORE_TOKENS = 24
_WHY_TOKENS = 40
_LABEL_TOKENS = 14

_GIVEN = """\
{rules}
`own` is what the owner has or noted, newest first. `facets` is what similar owners noted (e1, e2, ...), each with its \
support from 0 to 1; weak support counts little. `request`, if given, counts most."""
_VERDICT = """\
- `facets`: ids of at most {cited} facets that speak for or against it; empty if none does.
- `why`: what speaks for or against it, at most 8 words of the data; empty if nothing does. No ids, no links.
- `score`: 0 (does not fit) to {best} (fits best)"""
_MANY = f"""\
You judge how well candidates fit one owner.
{_GIVEN} `candidates` (c1, c2, ...) stand in the order of a first guess.
For every candidate, each id once:
{_VERDICT}; different scores where anything tells them apart.
{{known}}
Reply with one JSON object on one line: `scores`, a list of objects with the keys `id`, `facets`, `why`, `score`."""
_ONE = f"""\
You judge how well one `candidate` fits one owner.
{_GIVEN}
{_VERDICT}.
{{known}}
Reply with one JSON object on one line with the keys `facets`, `why`, `score`."""
_NONE_KNOWN = "No facets are known: judge by the rest, and leave `facets` empty."
_SOME_KNOWN = "Judge only by what is given; leave `facets` empty where they do not help."


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate.

    Attributes:
        label: Its name.
        about: What is known of it; None if nothing.
        prior: What the rules gave it, higher is better.
    """

    label: str
    about: str | None
    prior: float


@dataclass(frozen=True, slots=True)
class Scored:
    """What a model says of one candidate.

    Attributes:
        score: In [0, 1].
        rationale: One line; empty if it gave none that may be shown.
        cites: Ids of facets that it rests on.
    """

    score: float
    rationale: str
    cites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankQuestion(Question[int]):
    """What is asked; `shown` is alias to place among the choices.

    Attributes:
        facets: Alias to the id of a facet.
        words: Stems of all that was shown.
    """

    facets: Mapping[str, str]
    words: frozenset[str]


class _Verdict(schema.Lenient):
    facets: schema.Ids = ()
    why: schema.Text = ""
    score: schema.Number = None


class Verdict(_Verdict):
    """The reply about one candidate, as it is taken."""


class _Row(_Verdict):
    id: schema.Id = ""


class Scores(schema.Lenient):
    """The reply about all candidates, as it is taken."""

    scores: Annotated[tuple[_Row, ...], schema.Parts] = ()


def ask(
    choices: Sequence[Choice],
    facets: Sequence[Facet],
    own: Sequence[str],
    *,
    instruction: str | None,
    nonce: str,
    budget_tokens: int = BUDGET_TOKENS,
) -> Question[int]:
    """Ask for a score of every candidate, 0 to 100.

    Args:
        choices: Any order; a prior that is not finite counts lowest.
        facets: What is known of similar owners, strongest first; the first that fit are shown.
        own: The entity's own things or notes, newest first.
        instruction: What is wanted now, in the caller's words; quoted.
        nonce: Of the fence.
        budget_tokens: Of the whole with up to ten candidates; each further one adds 24. Names of
            candidates are always shown, what is known of them as far as it fits.

    Returns:
        A question about those choices whose name may be shown, perhaps none.

    Raises:
        ValueError: The nonce is none.
    """
    fence = Fence(nonce)
    order = sorted(range(len(choices)), key=lambda at: (-_finite(choices[at].prior), at))
    named = [(at, label) for at in order if (label := fence.said(choices[at].label, _LABEL_TOKENS)) is not None]
    ids = [f"c{place}" for place in range(1, len(named) + 1)]
    lines = [f"{id_} {label}" for id_, (_, label) in zip(ids, named, strict=True)]
    page = Profile(fence, own, facets, instruction)
    around = [_rules(_MANY, BEST), *lines, json.dumps(_many(ids, ["e00"] * FACETS_SHOWN))]
    budget = budget_tokens + _MORE_TOKENS * max(0, len(named) - 10)
    room = page.fill(budget - sum(map(estimate_tokens, around)) - len(lines))
    data = page.data("candidates", with_about(fence, lines, [choices[at].about for at, _ in named], room))
    prompt = Prompt("rank", _rules(_MANY, BEST, page), data, _longest(len(named), data))
    shown = {id_: at for id_, (at, _) in zip(ids, named, strict=True)}
    reply = schema.closed(Scores, _many(ids, list(page.ids)))
    return RankQuestion(prompt, reply, shown, page.ids, frozenset(terms(data)))


def ask_one(
    choice: Choice,
    facets: Sequence[Facet],
    own: Sequence[str],
    *,
    instruction: str | None,
    nonce: str,
    budget_tokens: int = BUDGET_TOKENS,
) -> Question[int]:
    """Ask for a score of one candidate, 0 to 9; as `ask` otherwise."""
    fence = Fence(nonce)
    label = fence.said(choice.label, _LABEL_TOKENS)
    lines = [] if label is None else [f"c1 {label}"]
    page = Profile(fence, own, facets, instruction)
    around = [_rules(_ONE, BEST_ONE), *lines, json.dumps(_one(["e00"] * FACETS_SHOWN))]
    room = page.fill(budget_tokens - sum(map(estimate_tokens, around)) - len(lines))
    data = page.data("candidate", with_about(fence, lines, [choice.about], room))
    prompt = Prompt("rank", _rules(_ONE, BEST_ONE, page), data, _longest(1, data))
    reply = schema.closed(Verdict, _one(list(page.ids)))
    shown = {} if label is None else {"c1": 0}
    return RankQuestion(prompt, reply, shown, page.ids, frozenset(terms(data)))


def read(reply: BaseModel, question: Question[int]) -> tuple[dict[int, Scored], int]:
    """Scores by place among the choices.

    Args:
        reply: Of any shape.
        question: As `ask` gave it.

    Returns:
        One for each candidate that got a usable score, the first if it got several; and how many
        parts of the reply were put right or left out: candidates named twice, never or unknown,
        scores that are no number or out of range, ids of unknown facets, reasons that may not be
        shown or share no word with what was shown.
    """
    out: dict[int, Scored] = {}
    named: set[str] = set()
    repaired = 0
    for row in schema.taken(Scores, reply).scores:
        known = row.id in question.shown
        named.update([row.id] if known else [])
        if not known or question.shown[row.id] in out or row.score is None:
            repaired += 1
            continue
        out[question.shown[row.id]], mended = _scored(row, question, BEST)
        repaired += mended
    return out, repaired + len(question.shown.keys() - named)


def read_one(reply: BaseModel, question: Question[int]) -> tuple[Scored | None, int]:
    """The score of the one candidate, None if there is none; the count as in `read`."""
    said_of_it = schema.taken(Verdict, reply)
    if said_of_it.score is None or not question.shown:
        return None, 1
    return _scored(said_of_it, question, BEST_ONE)


def _scored(row: _Verdict, question: Question[int], best: int) -> tuple[Scored, int]:
    known: Mapping[str, str] = question.facets if isinstance(question, RankQuestion) else {}
    words = question.words if isinstance(question, RankQuestion) else frozenset[str]()
    cites = tuple(dict.fromkeys(known[id_] for id_ in row.facets if id_ in known))
    given = row.score or 0.0
    score = min(max(given, 0.0), float(best))
    why = clean(schema.without_ids(row.why), max_tokens=_WHY_TOKENS) or ""
    why = "" if words.isdisjoint(terms(why)) else why
    mended = len(row.facets) - len(cites) + (score != given) + (why != " ".join(row.why.split()))
    return Scored(score / best, why, cites), mended


def _rules(template: str, best: int, page: Profile | None = None) -> str:
    known = _NONE_KNOWN if page is None or not page.ids else _SOME_KNOWN
    return template.format(rules=RULES_OF_DATA, known=known, cited=CITED, best=best)


def _finite(prior: float) -> float:
    return prior if isfinite(prior) else float("-inf")


def _verdict(ids: Sequence[str], best: int) -> dict[str, schema.JsonSchema]:
    return {
        "facets": schema.some_of(ids, CITED),
        "why": schema.text(WHY_CHARS),
        "score": schema.whole(0, best),
    }


def _many(candidates: Sequence[str], facets: Sequence[str]) -> schema.JsonSchema:
    row = schema.obj(id=schema.one_of(candidates), **_verdict(facets, BEST))
    return schema.obj(scores=schema.many(row, len(candidates), len(candidates)))


def _one(facets: Sequence[str]) -> schema.JsonSchema:
    return schema.obj(**_verdict(facets, BEST_ONE))


def _longest(rows: int, data: str) -> int:
    return schema.reply_tokens(max(1, rows), WHY_CHARS, CITED + 1, cyrillic=mostly_cyrillic(data))


__all__ = ["Choice", "RankQuestion", "Scored", "ask", "ask_one", "read", "read_one"]
