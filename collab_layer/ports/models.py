"""Texts in, vectors out; prompt in, reply out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

if TYPE_CHECKING:
    from collab_layer.types.graph import Vectors

Reply = TypeVar("Reply", bound=BaseModel)


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors. `id` and `dim` are stored with every vector."""

    @property
    def id(self) -> str:
        """Name and version; vectors of different ids are never compared."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """Unit float32 vectors, shape (len(texts), dim); zeros for a text without content."""
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model call cost."""

    calls: int = 1
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answered(Generic[Reply]):
    """A validated reply and what it cost."""

    value: Reply
    usage: Usage


@runtime_checkable
class LanguageModel(Protocol):
    """One method: a prompt and a pydantic type to a validated object."""

    @property
    def name(self) -> str:
        """Provider and model, as printed and stored with what it made."""
        ...

    async def complete(self, prompt: str, reply: type[Reply], /, *, max_tokens: int) -> Answered[Reply]:
        """Ask once.

        Raises:
            BackendError: The model cannot be reached or does not give a valid reply.
        """
        ...
