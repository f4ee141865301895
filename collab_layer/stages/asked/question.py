"""A prompt, the type of its reply, and what each id in it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from collab_layer.types.asking import Prompt

Shown = TypeVar("Shown")


@dataclass(frozen=True, slots=True)
class Question(Generic[Shown]):
    """What a stage asks.

    Attributes:
        prompt: Our words and the fenced data.
        reply: A type that validates leniently; its JSON schema carries the closed ids and the bounds.
        shown: Every id that the reply may name, and what it stands for. Anything else is no evidence.
    """

    prompt: Prompt
    reply: type[BaseModel]
    shown: Mapping[str, Shown]


__all__ = ["Question"]
