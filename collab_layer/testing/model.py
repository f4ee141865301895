"""A language model that says what a test wrote down.

In:   replies, in order, or one function from prompt to reply.
Out:  validated replies with a token count; the prompts it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from pydantic import BaseModel, ValidationError

from collab_layer.errors import BackendError
from collab_layer.ports.models import Answered, Reply, Usage
from collab_layer.types.prompt import estimate_tokens

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

    def __init__(self, replies: Iterable[Scripted] | Callable[[str], Scripted], *, name: str = "scripted") -> None:
        self._make = replies if callable(replies) else _in_order(name, replies)
        self._name = name
        self._lock = Lock()
        self.prompts: list[str] = []

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    async def complete(self, prompt: str, reply: type[Reply], /, *, max_tokens: int) -> Answered[Reply]:
        """Give the next reply.

        Raises:
            BackendError: No reply is left, or the next one does not fit the type or the limit.
        """
        with self._lock:
            self.prompts.append(prompt)
            said = self._make(prompt)
        if isinstance(said, Exception):
            raise said
        try:
            value = reply.model_validate(said.model_dump() if isinstance(said, BaseModel) else said)
        except ValidationError as error:
            raise BackendError(self._name, f"the reply does not fit {reply.__name__}: {error}") from error
        spoken = estimate_tokens(value.model_dump_json())
        if spoken > max_tokens:
            raise BackendError(self._name, f"the reply has {spoken} tokens, {max_tokens} are allowed")
        return Answered(value, Usage(calls=1, input_tokens=estimate_tokens(prompt), output_tokens=spoken))


def _in_order(name: str, replies: Iterable[Scripted]) -> Callable[[str], Scripted]:
    rest = iter(tuple(replies))
    over = BackendError(name, "the script has no further reply")
    return lambda _prompt: next(rest, over)


__all__ = ["Scripted", "ScriptedModel"]
