"""A stand-in for a memory model: it says again the sentence that the events it is shown have in common.

In:   the prompt of `stages.asked.updates`, as any model gets it.
Out:  for each receiver that sentence, of the events that it may be told of, with the events that
      share enough words with it.
Never: knowledge of what was planted, randomness, a network. It is a poor model: one that writes
better reaches no fact that this one was not shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from collab_layer.errors import ModelReplyError
from collab_layer.ports.models import Answered, Reply
from collab_layer.stages.lessons import mostly_cyrillic
from collab_layer.stages.tokens import terms
from collab_layer.types.asking import Prompt, Usage
from collab_layer.types.tokens import estimate_tokens

ALIKE = 0.2
"""Jaccard of stems from which an event says the same as the chosen one."""
_EVENT = re.compile(r'^(e\d+)(?: about r\d+:)? ("[^\n]*")$', re.M)
_RECEIVER = re.compile(r"^(r\d+) [^\n]*; may be told of ([e\d ]+)$", re.M)


class Summarizer:
    """Answers every question about updates; any other is refused."""

    @property
    def name(self) -> str:
        """As stored with what it makes."""
        return "stand-in:summarizer"

    async def complete(self, prompt: Prompt, reply: type[Reply], /) -> Answered[Reply]:
        """Answer at once.

        Raises:
            ModelReplyError: The question is not about updates.
        """
        if prompt.stage != "propagate":
            raise ModelReplyError(self.name, f"it knows nothing of `{prompt.stage}`", calls=1)
        said = {"updates": summarize(prompt.data)}
        spent = prompt.tokens + _schema_tokens(reply)
        answer = estimate_tokens(json.dumps(said, ensure_ascii=False))
        usage = Usage(model=self.name, input_tokens=spent, output_tokens=answer, estimated=True)
        return Answered(reply.model_validate(said), usage)


def summarize(data: str) -> list[dict[str, object]]:
    """One update per receiver, of the events in a prompt."""
    words: dict[str, str] = {id_: json.loads(line) for id_, line in _EVENT.findall(data)}
    stems = {id_: frozenset(terms(text)) for id_, text in words.items()}
    out: list[dict[str, object]] = []
    for receiver, told in _RECEIVER.findall(data):
        heard = [id_ for id_ in told.split() if id_ in words]
        best = _middle(heard, stems)
        same = [id_ for id_ in heard if id_ == best or _jaccard(stems[id_], stems[best]) >= ALIKE]
        lead = "Отмечено часто:" if mostly_cyrillic(words[best]) else "Noted often:"
        text = words[best].split(" -> ")[0]
        out.append({"receiver": receiver, "text": f"{lead} {text}", "events": same, "old": []})
    return out


def _middle(ids: Sequence[str], stems: Mapping[str, frozenset[str]]) -> str:
    """The event most alike to all others, the first of equals."""
    return max(ids, key=lambda one: (sum(_jaccard(stems[one], stems[other]) for other in ids), -int(one[1:])))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def _schema_tokens(reply: type[BaseModel]) -> int:
    return estimate_tokens(json.dumps(reply.model_json_schema(), ensure_ascii=False))


__all__ = ["Summarizer", "summarize"]
