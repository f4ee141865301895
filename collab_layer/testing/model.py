"""A language model that says what a test wrote down.

In:   replies, in order, or one function from prompt to reply.
Out:  validated replies with a token count; the prompts it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from pydantic import BaseModel, ValidationError

from collab_layer.errors import ModelReplyError
from collab_layer.ports.models import Answered, Reply
from collab_layer.types.asking import Prompt, Usage
from collab_layer.types.tokens import estimate_tokens

Scripted = BaseModel | dict[str, Any] | Exception
"""One reply: a value, its fields, or an error to raise instead."""


class ScriptedModel:
    """Answers each call with the next reply; tokens are estimated from prompt and reply.

    Args:
        replies: Replies in order, or a function that makes one of each prompt.
        name: As printed and stored with what it made.

    Attributes:
        prompts: What it was asked, in order.
    """

    def __init__(self, replies: Iterable[Scripted] | Callable[[Prompt], Scripted], *, name: str = "scripted") -> None:
        self._make = replies if callable(replies) else _in_order(name, replies)
        self._name = name
        self._lock = Lock()
        self.prompts: list[Prompt] = []

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    async def complete(self, prompt: Prompt, reply: type[Reply], /) -> Answered[Reply]:
        """Give the next reply.

        Raises:
            ModelError: No reply is left, the next one does not fit the type or the limit, or is an error.
        """
        with self._lock:
            self.prompts.append(prompt)
            said = self._make(prompt)
        if isinstance(said, Exception):
            raise said
        spent = prompt.tokens
        try:
            value = reply.model_validate(said.model_dump() if isinstance(said, BaseModel) else said)
        except ValidationError as error:
            raise ModelReplyError(
                self._name, f"the reply does not fit {reply.__name__}: {error}", calls=1, input_tokens=spent
            ) from error
        spoken = estimate_tokens(value.model_dump_json())
        if spoken > prompt.max_tokens:
            why = f"the reply has {spoken} tokens, {prompt.max_tokens} are allowed"
            raise ModelReplyError(self._name, why, calls=1, input_tokens=spent, output_tokens=spoken)
        return Answered(value, Usage(model=self._name, input_tokens=spent, output_tokens=spoken, estimated=True))


def _in_order(name: str, replies: Iterable[Scripted]) -> Callable[[Prompt], Scripted]:
    rest = iter(tuple(replies))
    over = ModelReplyError(name, "the script has no further reply")
    return lambda _prompt: next(rest, over)


__all__ = ["Scripted", "ScriptedModel"]
