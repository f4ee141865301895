"""Ask a model what to tell the entities around some events; take from its answer only what they back.

In:   the events, who may be told of them, and of each receiver its own old memory.
Out:  a `Question` over aliases; and from a reply at most one `Written` per receiver.
Pure. Never shown: names or ids of entities, the old memory of a receiver that the actor may not read.

Who may be told what is not for the model to keep: an update that rests on an event its receiver
may not read, or on somebody else's old memory, is refused; so is one with a word, number or name
that is neither in the events it cites nor in that receiver's own old memory that it cites
(`stages.asked.backing`). The old memory of one receiver thus never reaches another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel

from collab_layer.stages.asked import schema
from collab_layer.stages.asked.backing import backed
from collab_layer.stages.asked.question import Question
from collab_layer.stages.asked.telling import Memory, Noted, Receiver, Written
from collab_layer.stages.compress import compress
from collab_layer.stages.fence import RULES_OF_DATA, Fence, clean, said
from collab_layer.stages.lessons import shorten
from collab_layer.stages.tokens import fold
from collab_layer.types.asking import Prompt

VERSION = "1"
"""Of the prompt; stored with what was made with it."""
EVENTS = 12
FANOUT = 8
"""Neighbours told at once; the cap of the released MemRec configuration."""
TEXT_TOKENS = 60
TEXT_CHARS = 240
_EVENT_TOKENS = 44
_ENDED_TOKENS = 14
_LABEL_TOKENS = 12
_OLD_TOKENS = 40
_OTHER_TOKENS = 36
"""Of an update beside its text: ids and marks of JSON."""

_INSTRUCTIONS = f"""\
You keep the short memories of a group up to date.
{RULES_OF_DATA}
`events` are things that happened: an id (e1, e2, ...), what it was about (r2, ...) if anything, then the words; `->` \
shows how it ended. `receivers` are those whose memory you keep: an id (r1, r2, ...), what it is, which events it may \
be told of; then its old memory, a line each (o1, o2, ...).
Write at most one update for each receiver, where an event says something that is worth keeping for it; leave out a \
receiver for which there is nothing. For a receiver that the events are about: what became known about it.
- `receiver`: its id.
- `text`: one plain statement of at most 30 words in the language of the events. Use only words, names and numbers of \
the events and old memory that you cite. Where several events say the same in other words, say it once. If the old \
memory says the same, bring both into one statement. No advice of your own, no orders, no links, no ids.
- `events`: ids of the events that say so; only such as the receiver may be told of.
- `old`: ids of old memory that you took up; only the receiver's own. Empty if none.
Never tell one receiver what another's old memory says.
If nothing is worth keeping, give an empty list.
Reply with one JSON object that has one key, `updates`: a list of objects with the keys `receiver`, `text`, `events` \
and `old`."""


Shown = Noted | Receiver | Memory


@dataclass(frozen=True, slots=True)
class UpdateQuestion(Question[Shown]):
    """What was shown.

    Attributes:
        words: Of each event and old memory, as shown, by id.
        owner: Of each old memory the receiver's id.
    """

    words: Mapping[str, str]
    owner: Mapping[str, str]


class _Update(schema.Lenient):
    receiver: schema.Id = ""
    text: schema.Text = ""
    events: schema.Ids = ()
    old: schema.Ids = ()


class Updates(schema.Lenient):
    """The reply as it is taken."""

    updates: Annotated[tuple[_Update, ...], schema.Parts] = ()


def ask(
    events: Sequence[Noted], receivers: Sequence[Receiver], *, nonce: str, fanout: int = FANOUT
) -> UpdateQuestion | None:
    """Lay out the events and who may be told of them.

    Args:
        events: Most important first; the first `EVENTS` that may be shown are.
        receivers: The actor, things, neighbours; of the neighbours the nearest `fanout` are kept.
        nonce: Of the fence.
        fanout: The most neighbours told, >= 0.

    Returns:
        None if no event can be shown, or nobody but the actor could be told of one.

    Raises:
        ValueError: The nonce is none.
    """
    fence = Fence(nonce)
    shown: dict[str, Shown] = {}
    words: dict[str, str] = {}
    quoted = _quoted(events, fence)
    told = [one for one in _nearest(receivers, fanout) if any(one.may_hear(event) for event, _ in quoted)]
    if all(one.part == "actor" for one in told):
        return None
    names = {one.id: f"r{at}" for at, one in enumerate(told, 1)}
    lines: list[str] = []
    for at, (event, line) in enumerate(quoted, 1):
        shown[f"e{at}"], words[f"e{at}"] = event, json.loads(line)
        about = names.get(event.about) if event.about is not None else None
        lines.append(f"e{at} about {about}: {line}" if about else f"e{at} {line}")
    heard = {names[one.id]: [id_ for id_, event in shown.items() if isinstance(event, Noted) and one.may_hear(event)]
             for one in told}  # fmt: skip
    around, owner = _receivers(told, names, heard, fence, shown, words)
    data = "\n".join([fence.block("events", lines), fence.block("receivers", around)])
    most = 40 + len(told) * (TEXT_TOKENS + _OTHER_TOKENS)
    reply = schema.closed(Updates, _schema(list(names.values()), len(lines), list(owner)))
    return UpdateQuestion(Prompt("propagate", _INSTRUCTIONS, data, most), reply, shown, words, owner)


def read(reply: BaseModel, question: UpdateQuestion) -> tuple[list[Written], int]:
    """Keep what the cited events and old memory back.

    Args:
        reply: Of any shape; what is missing or of another type counts as empty.
        question: As `ask` gave it.

    Returns:
        At most one update per receiver, in the order of the receivers, and how many parts of the
        reply were put right or left out: unknown receivers and second updates for one; ids that
        were not shown; texts that are empty, too long, instruct, carry a link, say nothing new,
        or say more than what they cite.
    """
    given = schema.taken(Updates, reply).updates
    most = 2 * sum(isinstance(one, Receiver) for one in question.shown.values())
    repaired = max(0, len(given) - most)
    kept: dict[str, Written] = {}
    for update in given[:most]:
        written, wrong = _read(update, question)
        if written is None or update.receiver in kept:
            repaired += 1
        else:
            kept[update.receiver] = written
            repaired += wrong
    return [kept[id_] for id_ in question.shown if id_ in kept], repaired


def _read(update: _Update, question: UpdateQuestion) -> tuple[Written | None, int]:
    """One update, and how many of its parts were put right; None if it is refused."""
    shown = question.shown
    receiver = shown.get(update.receiver)
    events = {id_: one for id_ in update.events if isinstance(one := shown.get(id_), Noted)}
    old = {id_: one for id_ in update.old if isinstance(one := shown.get(id_), Memory)}
    text = clean(schema.without_ids(update.text), max_tokens=TEXT_TOKENS)
    if not isinstance(receiver, Receiver) or not events or text is None:
        return None, 0
    own = all(question.owner[id_] == update.receiver for id_ in old)
    if not own or not all(receiver.may_hear(event) for event in events.values()):
        return None, 0
    known = any(fold(text) == fold(question.words[id_]) for id_ in old)
    if known or not backed(text, [question.words[id_] for id_ in (*events, *old)]):
        return None, 0
    wrong = len(update.events) + len(update.old) - len(events) - len(old)
    wrong += text != " ".join(update.text.split())
    return Written(receiver, text, tuple(events.values()), tuple(old.values())), wrong


def _nearest(receivers: Sequence[Receiver], fanout: int) -> list[Receiver]:
    near = sorted((one for one in receivers if one.part == "neighbour"), key=lambda one: (-one.nearness, one.id))
    return [*(one for one in receivers if one.part != "neighbour"), *near[:fanout]]


def _quoted(events: Sequence[Noted], fence: Fence) -> list[tuple[Noted, str]]:
    """Events with their words as one quoted line each, as many as may be shown."""
    texts = [event.text for event in events]
    # Together, so that what they have in common stays; a text that only repeats another is shortened alone.
    short = dict(compress(texts, budget_tokens=_EVENT_TOKENS * len(texts), per_text=_EVENT_TOKENS))
    out: list[tuple[Noted, str]] = []
    for at, event in enumerate(events):
        parts = [short.get(at) or shorten(event.text, _EVENT_TOKENS)]
        fresh = [label for label in event.labels if fold(label) not in fold(parts[0])]
        parts += [f"({shorten(', '.join(fresh), _LABEL_TOKENS)})"] if fresh else []
        parts += [f"-> {shorten(event.ended, _ENDED_TOKENS)}"] if event.ended else []
        line = said(" ".join(parts), _EVENT_TOKENS + _LABEL_TOKENS + _ENDED_TOKENS)
        if line is not None and fence.holds(line) and said(event.text, _EVENT_TOKENS) is not None:
            out.append((event, line))
    return out[:EVENTS]


def _receivers(
    told: Sequence[Receiver],
    names: Mapping[int, str],
    heard: Mapping[str, Sequence[str]],
    fence: Fence,
    shown: dict[str, Shown],
    words: dict[str, str],
) -> tuple[list[str], dict[str, str]]:
    """Their lines, and whose each old memory is; what was shown is added to `shown` and `words`."""
    what = {"actor": "the one whose events these are", "thing": "what events are about", "neighbour": "a neighbour"}
    lines: list[str] = []
    owner: dict[str, str] = {}
    for one in told:
        id_ = names[one.id]
        shown[id_] = one
        lines.append(f"{id_} {what[one.part]}; may be told of {' '.join(heard[id_])}")
        for memory in one.old:
            line = said(memory.text, _OLD_TOKENS)
            if line is not None and fence.holds(line):
                old = f"o{len(owner) + 1}"
                owner[old], shown[old], words[old] = id_, memory, json.loads(line)
                lines.append(f"  {old} {line}")
    return lines, owner


def _schema(receivers: Sequence[str], events: int, old: Sequence[str]) -> schema.JsonSchema:
    update = schema.obj(
        receiver=schema.one_of(receivers),
        text=schema.text(TEXT_CHARS),
        events=schema.some_of([f"e{at}" for at in range(1, events + 1)], events, 1),
        old=schema.some_of(old, 2),
    )
    return schema.obj(updates=schema.many(update, len(receivers)))


__all__ = ["EVENTS", "FANOUT", "VERSION", "Memory", "Noted", "Receiver", "UpdateQuestion", "Written", "ask", "read"]
